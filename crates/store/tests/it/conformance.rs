//! Every store keeps every promise.

use std::sync::Arc;

use store::conformance::{Site, Time, cases, options};
use store::{Memory, Sqlite, Store};

use crate::place::Place;
use crate::postgres;

fn keeps_every_promise(make: impl Fn(&Time, &Place) -> Arc<dyn Store>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let cases = cases();
    assert!(cases.len() >= 50);
    for case in cases {
        let (time, place) = (Time::new(), Place::new());
        let store = make(&time, &place);
        println!("{}", case.name);
        runtime.block_on((case.run)(Site { store, time }));
    }
}

#[test]
fn memory_keeps_every_promise() {
    keeps_every_promise(|time, _| Arc::new(Memory::new(options(time))));
}

#[test]
fn sqlite_in_memory_keeps_every_promise() {
    keeps_every_promise(|time, _| Arc::new(Sqlite::in_memory(options(time)).unwrap()));
}

#[test]
fn sqlite_in_a_file_keeps_every_promise() {
    keeps_every_promise(|time, place| {
        Arc::new(Sqlite::open(&place.file(), options(time)).unwrap())
    });
}

#[test]
fn postgres_keeps_every_promise() {
    let (database, runtime) = (postgres::database(), postgres::runtime());
    for case in cases() {
        let time = Time::new();
        let store = runtime.block_on(postgres::open(&database, options(&time)));
        println!("{}", case.name);
        runtime.block_on((case.run)(Site { store: Arc::new(store), time }));
        postgres::wipe(&database);
    }
}
