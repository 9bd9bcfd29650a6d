//! Many concurrent calls.

use std::sync::atomic::{AtomicUsize, Ordering};

use model::WorkerId;
use store::conformance::{Time, options};
use store::{Claim, Claimed, Idempotency, Options, Sqlite, Store, Submission};

use crate::place::Place;
use crate::submit::{block_on, submission};

const N_CALLERS: usize = 16;

fn crowd(store: &Sqlite, call: impl Fn(&Sqlite, usize) -> bool + Sync) -> usize {
    let n_true = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for caller in 0..N_CALLERS {
            let (call, n_true) = (&call, &n_true);
            scope.spawn(move || {
                if call(store, caller) {
                    n_true.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    n_true.into_inner()
}

fn some_store(place: &Place) -> Sqlite {
    let many = Options { jobs_max: 100_000, tenant_jobs_max: 100_000, ..options(&Time::new()) };
    Sqlite::open(&place.file(), many).unwrap()
}

#[test]
fn one_of_many_equal_submissions_makes_the_job() {
    let place = Place::quick();
    let store = some_store(&place);
    for round in 0..20 {
        let key = Some(Idempotency { key: format!("key {round}"), body: [0; 32] });
        let n_new = crowd(&store, |store, _| {
            let submission = Submission { idempotency: key.clone(), ..submission(1, 10) };
            block_on(store.submit(submission)).unwrap().unwrap().is_new[0]
        });
        assert_eq!(n_new, 1);
        let n_new = crowd(&store, |store, _| {
            let mut submission = submission(1, 10);
            submission.jobs[0].spec.dedupe_key = Some(format!("key {round}"));
            block_on(store.submit(submission)).unwrap().unwrap().is_new[0]
        });
        assert_eq!(n_new, 1);
    }
    assert_eq!(block_on(store.look(None, 99)).unwrap().len(), 40);
}

#[test]
fn one_of_many_concurrent_claims_wins() {
    let place = Place::quick();
    let store = some_store(&place);
    let records = block_on(store.submit(submission(30, 10))).unwrap().unwrap().jobs;
    for record in records {
        let n_won = crowd(&store, |store, caller| {
            let claim = Claim {
                job: record.id.clone(),
                fence: record.fence,
                worker: WorkerId::new(&format!("worker {caller}")),
                limits: Vec::new(),
                holds: None,
                pool: model::Name::new("p"),
                why: String::new(),
            };
            let claimed = block_on(store.claim(vec![claim])).unwrap().remove(0);
            matches!(claimed, Claimed::Won(_))
        });
        assert_eq!(n_won, 1);
    }
}

#[test]
fn reader_sees_acknowledged_changes_at_once() {
    let place = Place::quick();
    let store = some_store(&place);
    let n_seen = crowd(&store, |store, _| {
        (0..30).all(|_| {
            let record = block_on(store.submit(submission(1, 10))).unwrap().unwrap().jobs.remove(0);
            block_on(store.job(record.id.clone())).unwrap() == Some(record)
        })
    });
    assert_eq!(n_seen, N_CALLERS);
}
