//! Recently read or claimed records are not read again, and changes of peers still count.

use model::{Ending, State};

use super::*;
use crate::{Amend, End, Ended};

/// Two schedulers on one store. The first has read a job.
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
async fn job_that_waits_again_is_scanned_with_its_history() {
    let (database, time) = (database(), Time::new());
    let (one, two, job) = two_with_a_job(&database, &time).await;
    one.claim(vec![claim(&job, "w")]).await.unwrap();
    let failed = End {
        error: Some("no".to_owned()),
        exit_code: Some(3),
        ..End::new(job.clone(), 1, WorkerId::new("w"), Ending::Transient)
    };
    one.complete(vec![failed]).await.unwrap();
    let mut waiter = submission("a", "kind", 1);
    waiter.jobs[0].spec.after = vec![job.clone()];
    submit(&two, waiter).await;
    two.amend(vec![job.clone()], Amend::Priority(7)).await.unwrap();
    time.pass(Millis::from_secs(3_600));
    one.window(all(0, 1)).await.unwrap();
    let seen = one.window(all(0, 1)).await.unwrap().own;
    let read = two.job(job).await.unwrap().unwrap();
    assert_eq!((read.n_dependents, read.counts.failures, read.exit_code), (1, 1, Some(3)));
    assert_eq!(seen.iter().map(|record| &**record).collect::<Vec<_>>(), [&read]);
}

#[tokio::test]
async fn unrelated_ends_do_not_wait_for_each_other() {
    let (database, time) = (database(), Time::new());
    let (one, two) = (open(&database, &time).await, open(&database, &time).await);
    submit(&one, submission("a", "kind", 2)).await;
    let jobs: Vec<JobId> = [1, 2].map(JobId::number).to_vec();
    one.window(all(0, 1)).await.unwrap();
    one.claim(jobs.iter().map(|job| claim(job, "w")).collect()).await.unwrap();
    let connection = two.desk.connection().await.unwrap();
    connection.batch_execute("BEGIN; SELECT FROM jobs WHERE id = 1 FOR UPDATE").await.unwrap();
    let mut first = one.complete(vec![end(&jobs[0], "w")]);
    let second = one.complete(vec![end(&jobs[1], "w")]);
    let second = tokio::select! {
        // First in the queue of locks. It waits for the transaction that holds its job.
        biased;
        _ = &mut first => panic!("an end changed a locked row"),
        ended = second => ended.unwrap(),
    };
    assert!(matches!(second[..], [Ended::Accepted { .. }]), "{second:?}");
    connection.batch_execute("COMMIT").await.unwrap();
    let first = first.await.unwrap();
    assert!(matches!(first[..], [Ended::Accepted { .. }]), "{first:?}");
}

#[tokio::test]
async fn job_that_a_peer_changed_is_not_claimed_by_old_fence() {
    let (database, time) = (database(), Time::new());
    let (one, two, job) = two_with_a_job(&database, &time).await;
    two.amend(vec![job.clone()], Amend::Priority(7)).await.unwrap();
    let claimed = one.claim(vec![claim(&job, "w")]).await.unwrap();
    let Claimed::Lost(Some(record)) = &claimed[0] else { panic!("{claimed:?}") };
    assert_eq!((record.priority, record.state), (7, State::Queued));
}

#[tokio::test]
async fn attempt_that_a_peer_cancelled_ends_as_cancelled() {
    let (database, time) = (database(), Time::new());
    let (one, two, job) = two_with_a_job(&database, &time).await;
    one.claim(vec![claim(&job, "w")]).await.unwrap();
    two.cancel(vec![job.clone()]).await.unwrap();
    let ended = one.complete(vec![end(&job, "w")]).await.unwrap();
    let [Ended::Accepted { record, .. }] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!(record.state, State::Cancelled);
}

#[tokio::test]
async fn attempt_that_a_peer_ended_is_stale() {
    let (database, time) = (database(), Time::new());
    let (one, two, job) = two_with_a_job(&database, &time).await;
    one.claim(vec![claim(&job, "w")]).await.unwrap();
    let lost = End { ending: Ending::Lost, ..end(&job, "w") };
    two.complete(vec![lost]).await.unwrap();
    let ended = one.complete(vec![end(&job, "w")]).await.unwrap();
    assert!(matches!(ended[..], [Ended::Stale]), "{ended:?}");
    let record = two.job(job).await.unwrap().unwrap();
    assert_eq!((record.state, record.counts.losses), (State::Queued, 1));
}
