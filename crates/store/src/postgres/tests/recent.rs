//! What was read or claimed lately is not read again; what others did to it meanwhile counts.

use model::{Ending, State};

use super::*;
use crate::{Amend, Ended};

/// Two that share a store, of which the first has seen a job.
async fn two_with_a_job(database: &Database, time: &Time) -> (Postgres, Postgres, JobId) {
    let (one, two) = (open(database, time).await, open(database, time).await);
    submit(&two, submission("a", "kind", 1)).await;
    let seen = one.window(all(0, 1)).await.unwrap().own;
    (one, two, seen[0].id.clone())
}

#[tokio::test]
async fn a_record_that_is_known_is_the_same_as_one_that_is_read() {
    let (database, time) = (database(), Time::new());
    let (one, two, job) = two_with_a_job(&database, &time).await;
    let claimed = one.claim(vec![claim(&job, "w")]).await.unwrap();
    let Claimed::Won(known) = &claimed[0] else { panic!("{claimed:?}") };
    let read = two.job(job.clone()).await.unwrap();
    assert_eq!(read.as_ref(), Some(&**known));
    let start = crate::Start { job: job.clone(), attempt: 1, worker: WorkerId::new("w") };
    assert_eq!(one.start(vec![start.clone(), start]).await.unwrap(), [true, true]);
    let ended = one.complete(vec![end(&job, "w")]).await.unwrap();
    let [Ended::Accepted { record, .. }] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!(two.job(job).await.unwrap().as_ref(), Some(&**record));
}

#[tokio::test]
async fn a_job_that_another_changed_is_not_claimed_as_it_was() {
    let (database, time) = (database(), Time::new());
    let (one, two, job) = two_with_a_job(&database, &time).await;
    two.amend(vec![job.clone()], Amend::Priority(7)).await.unwrap();
    let claimed = one.claim(vec![claim(&job, "w")]).await.unwrap();
    let Claimed::Lost(Some(record)) = &claimed[0] else { panic!("{claimed:?}") };
    assert_eq!((record.priority, record.state), (7, State::Queued));
}

#[tokio::test]
async fn an_attempt_that_another_called_off_ends_as_cancelled() {
    let (database, time) = (database(), Time::new());
    let (one, two, job) = two_with_a_job(&database, &time).await;
    one.claim(vec![claim(&job, "w")]).await.unwrap();
    two.cancel(vec![job.clone()]).await.unwrap();
    let ended = one.complete(vec![end(&job, "w")]).await.unwrap();
    let [Ended::Accepted { record, .. }] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!(record.state, State::Cancelled);
}

#[tokio::test]
async fn an_attempt_that_another_ended_is_stale() {
    let (database, time) = (database(), Time::new());
    let (one, two, job) = two_with_a_job(&database, &time).await;
    one.claim(vec![claim(&job, "w")]).await.unwrap();
    let lost = crate::End { ending: Ending::Lost, ..end(&job, "w") };
    two.complete(vec![lost]).await.unwrap();
    let ended = one.complete(vec![end(&job, "w")]).await.unwrap();
    assert!(matches!(ended[..], [Ended::Stale]), "{ended:?}");
    let record = two.job(job).await.unwrap().unwrap();
    assert_eq!((record.state, record.counts.losses), (State::Queued, 1));
}
