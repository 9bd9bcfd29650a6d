//! A full disk causes errors, loses nothing, and ends when there is space.

use std::sync::Arc;

use model::{JobId, Millis, Record};
use store::conformance::{Time, options};
use store::{Error, Old, Options, Sqlite, Store};

use crate::place::Place;
use crate::submit::{block_on, submission, submit};

fn many(time: &Time) -> Options {
    Options { jobs_max: 1_000_000, tenant_jobs_max: 1_000_000, ..options(time) }
}

/// Submits jobs until the disk is full. Returns the acknowledged ones.
async fn fill(store: &Sqlite) -> Vec<Record> {
    let mut records = Vec::new();
    loop {
        match store.submit(submission(5, 2_000)).await {
            Ok(submitted) => records.extend(submitted.unwrap().jobs),
            Err(Error::Full { doing }) => {
                assert_eq!(doing, "take in jobs");
                return records;
            }
            Err(error) => panic!("{error}"),
        }
        assert!(records.len() < 10_000, "it never gets full");
    }
}

async fn look(store: &Sqlite) -> Vec<Record> {
    store.look(None, usize::MAX).await.unwrap()
}

#[test]
fn full_disk_loses_nothing_and_recovers_with_space() {
    let (place, time) = (Place::new(), Time::new());
    let store = Sqlite::open(&place.file(), many(&time)).unwrap();
    block_on(async {
        store.limit(Some(100)).await.unwrap();
        let records = fill(&store).await;
        assert!(records.len() > 20);
        assert_eq!(look(&store).await, records);
        // Writes fail as long as there is no space, and reads work.
        assert!(matches!(store.submit(submission(5, 2_000)).await, Err(Error::Full { .. })));
        assert_eq!(look(&store).await, records);

        store.limit(None).await.unwrap();
        let more = submit(&store, 50).await.unwrap();
        assert!(more[0].id > records[records.len() - 1].id);
        assert_eq!(look(&store).await, [records, more].concat());
    });
    let before = block_on(look(&store));
    store.close();
    let store = Sqlite::open(&place.file(), many(&time)).unwrap();
    assert_eq!(block_on(look(&store)), before);
}

#[test]
fn deletion_frees_space() {
    let (place, time) = (Place::new(), Time::new());
    let store = Sqlite::open(&place.file(), many(&time)).unwrap();
    block_on(async {
        store.limit(Some(200)).await.unwrap();
        let old = store.submit(submission(50, 2_000)).await.unwrap().unwrap().jobs;
        let ids: Vec<JobId> = old.iter().map(|record| record.id.clone()).collect();
        store.cancel(ids.clone()).await.unwrap();
        time.pass(Millis(1));
        let records = fill(&store).await;
        assert_eq!(store.forget(Old::from_before(time.now(), ids.len())).await.unwrap(), ids.len());
        let more = fill(&store).await;
        assert!(more.len() > 20);
        assert_eq!(look(&store).await, [records, more].concat());
    });
}

#[test]
fn submission_that_fits_is_accepted_beside_one_that_does_not() {
    let (place, time) = (Place::new(), Time::new());
    let store = Arc::new(Sqlite::open(&place.file(), many(&time)).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        store.limit(Some(400)).await.unwrap();
        let mut calls = Vec::new();
        for place in 0..100 {
            let n_bytes = if place == 50 { 4_000_000 } else { 10 };
            let store = Arc::clone(&store);
            calls.push(tokio::spawn(async move { store.submit(submission(1, n_bytes)).await }));
        }
        let mut taken = Vec::new();
        for (place, call) in calls.into_iter().enumerate() {
            match call.await.unwrap() {
                Ok(submitted) => taken.extend(submitted.unwrap().jobs),
                // The other submissions of the same commit get the same error, and are not stored.
                Err(Error::Full { .. }) => assert!(place <= 50, "{place} came later"),
                Err(error) => panic!("{error}"),
            }
        }
        assert!(taken.len() >= 49);
        assert!(taken.iter().all(|record| record.spec.payload.len() == 10));
        assert_eq!(look(&store).await, taken);
    });
}
