//! Schedulers that share a store have minutes of their own, and a restart loses none.

use model::Millis;
use store::Store as _;
use store::conformance::{Time, options};

use crate::place::Place;
use crate::postgres;
use crate::submit::block_on;

#[test]
fn schedulers_on_one_postgres_store_the_same_minute_beside_each_other() {
    let (time, database, runtime) = (Time::new(), postgres::database(), postgres::runtime());
    runtime.block_on(async {
        let one = postgres::open(&database, options(&time)).await;
        let other = postgres::open(&database, options(&time)).await;
        let now = time.now();
        one.keep_minute(now, "one".to_owned()).await.unwrap();
        other.keep_minute(now, "other".to_owned()).await.unwrap();
        one.keep_minute(now, "one, again".to_owned()).await.unwrap();
        let minutes = one.minutes(now, now + Millis(60_000)).await.unwrap();
        assert_eq!(minutes.len(), 2);
        assert!(minutes[0].at == minutes[1].at && minutes[0].scheduler < minutes[1].scheduler);
        let mut documents: Vec<&str> = minutes.iter().map(|minute| &*minute.document).collect();
        documents.sort_unstable();
        assert_eq!(documents, ["one, again", "other"]);
    });
}

#[test]
fn minutes_of_a_file_are_there_when_it_is_opened_again() {
    let (time, place) = (Time::new(), Place::quick());
    let open = || store::Sqlite::open(&place.file(), options(&time)).unwrap();
    block_on(open().keep_minute(time.now(), "one".to_owned())).unwrap();
    let minutes = block_on(open().minutes(time.now(), time.now() + Millis(60_000))).unwrap();
    assert_eq!(minutes.iter().map(|minute| &*minute.document).collect::<Vec<_>>(), ["one"]);
}
