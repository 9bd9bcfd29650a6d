//! A store that is opened again continues where it was.

use model::{JobId, Millis, WorkerId};
use store::conformance::{Time, options};
use store::{Old, Options, Sqlite, Store};

use crate::place::Place;
use crate::submit::{block_on, submission, submit};

#[test]
fn store_time_never_goes_back() {
    let place = Place::new();
    let (early, late) = (Time::new(), Time::new());
    late.pass(Millis(3_600_000));
    let store = Sqlite::open(&place.file(), options(&late)).unwrap();
    let record = block_on(submit(&store, 1)).unwrap().remove(0);
    store.close();

    let store = Sqlite::open(&place.file(), options(&early)).unwrap();
    assert_eq!(store.now(), record.created);
    early.pass(Millis(5));
    assert_eq!(store.now(), record.created + Millis(5));
    assert_eq!(block_on(submit(&store, 1)).unwrap()[0].created, record.created + Millis(5));
}

#[test]
fn numbers_and_generations_go_on_after_everything_is_forgotten() {
    let (place, time) = (Place::new(), Time::new());
    let session = |store: &Sqlite| block_on(store.join(WorkerId::new("w"), Millis(10))).unwrap();
    let mut generation = 0;
    for round in 0..3 {
        let store = Sqlite::open(&place.file(), options(&time)).unwrap();
        let id = block_on(submit(&store, 1)).unwrap().remove(0).id;
        assert_eq!(id, JobId::number(round + 1));
        let session = session(&store);
        assert!(session.generation > generation);
        generation = session.generation;
        block_on(store.cancel(vec![id])).unwrap();
        time.pass(Millis(1_000));
        assert_eq!(block_on(store.forget(Old::from_before(time.now(), 9))).unwrap(), 1);
    }
}

#[test]
fn a_number_that_was_taken_ahead_does_not_come_again_after_a_crash() {
    let (place, after, time) = (Place::new(), Place::new(), Time::new());
    let store = Sqlite::open(&place.file(), options(&time)).unwrap();
    let tenant = submission(1, 0).tenant;
    assert_eq!(store.number(&tenant, 1), None, "nothing is kept for it yet");
    let written = block_on(submit(&store, 1)).unwrap().remove(0).id;
    let ahead = store.number(&tenant, 1).expect("one is kept");
    assert!(ahead > written);
    // The files as a crash leaves them.
    for suffix in ["", "-wal"] {
        let named = |place: &Place| {
            let mut name = place.file().into_os_string();
            name.push(suffix);
            name
        };
        std::fs::copy(named(&place), named(&after)).unwrap();
    }
    let crashed = Sqlite::open(&after.file(), options(&time)).unwrap();
    let next = block_on(submit(&crashed, 1)).unwrap().remove(0).id;
    assert!(next > ahead, "{next} comes after {ahead}");
    // A store that is closed properly skips no number.
    store.close();
    let store = Sqlite::open(&place.file(), options(&time)).unwrap();
    let next = block_on(submit(&store, 1)).unwrap().remove(0).id;
    assert_eq!(next.as_number(), ahead.as_number().map(|ahead| ahead + 1));
}

#[test]
fn the_log_is_copied_to_the_file_before_it_grows_large() {
    let (place, time) = (Place::quick(), Time::new());
    let many = Options { jobs_max: 100_000, tenant_jobs_max: 100_000, ..options(&time) };
    let store = Sqlite::open(&place.file(), many).unwrap();
    for _ in 0..80 {
        block_on(store.submit(submission(1, 1 << 20))).unwrap().unwrap();
    }
    let mut wal = place.file().into_os_string();
    wal.push("-wal");
    let n_bytes = std::fs::metadata(&wal).unwrap().len();
    assert!(n_bytes < 30 << 20, "the log has {n_bytes} bytes");
    store.close();
    assert!(!std::path::Path::new(&wal).exists(), "the log is left behind");
}

#[test]
fn read_only_store_reads_beside_its_owner_and_changes_nothing() {
    let (place, time) = (Place::new(), Time::new());
    let missing = Sqlite::open_to_read(&place.file(), options(&time));
    assert!(missing.is_err() && !place.file().exists(), "a missing file is not made");
    let owner = Sqlite::open(&place.file(), options(&time)).unwrap();
    let id = block_on(submit(&owner, 1)).unwrap().remove(0).id;
    let reader = Sqlite::open_to_read(&place.file(), options(&time)).unwrap();
    assert_eq!(block_on(reader.job(id.clone())).unwrap().unwrap().id, id);
    assert!(block_on(reader.cancel(vec![id.clone()])).is_err(), "it cannot write");
    let next = block_on(submit(&owner, 1)).unwrap().remove(0).id;
    assert!(block_on(reader.job(next)).unwrap().is_some(), "it sees what its owner does");
    drop(reader);
    assert_eq!(block_on(owner.look(None, 9)).unwrap().len(), 2);
}
