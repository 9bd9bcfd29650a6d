//! Rows of grants name a worker's attempts, and are deleted with the last of them.

use model::Timestamp;

use super::*;
use crate::{Ended, Old};

/// Each row: the worker, and how many jobs it names.
async fn granted(store: &Postgres) -> Vec<(String, i32)> {
    let connection = store.desk.connection().await.unwrap();
    let sql = "SELECT worker, cardinality(jobs) FROM grants ORDER BY worker, 2";
    let rows = connection.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn row(worker: &str, n_jobs: i32) -> (String, i32) {
    (worker.to_owned(), n_jobs)
}

fn numbers(numbers: &[u64]) -> Vec<JobId> {
    numbers.iter().map(|number| JobId::number(*number)).collect()
}

#[tokio::test]
async fn grants_are_deleted_by_the_next_claim_after_their_last_end() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    submit(&store, submission("a", "kind", 5)).await;
    let jobs = numbers(&[1, 2, 3, 4, 5]);
    store
        .claim(vec![claim(&jobs[0], "w"), claim(&jobs[1], "w"), claim(&jobs[2], "v")])
        .await
        .unwrap();
    assert_eq!(granted(&store).await, [row("v", 1), row("w", 2)]);
    store.complete(vec![end(&jobs[0], "w"), end(&jobs[2], "v")]).await.unwrap();
    store.claim(vec![claim(&jobs[3], "w")]).await.unwrap();
    assert_eq!(granted(&store).await, [row("v", 1), row("w", 1), row("w", 2)], "one goes on");
    store.complete(vec![end(&jobs[1], "w")]).await.unwrap();
    store.claim(vec![claim(&jobs[4], "w")]).await.unwrap();
    assert_eq!(granted(&store).await, [row("w", 1), row("w", 1)]);
}

#[tokio::test]
async fn uncounted_grants_are_deleted_and_live_ones_stay() {
    let (database, time) = (database(), Time::new());
    let (one, two) = (open(&database, &time).await, open(&database, &time).await);
    submit(&one, submission("a", "kind", 3)).await;
    let jobs = numbers(&[1, 2, 3]);
    one.claim(vec![claim(&jobs[0], "w")]).await.unwrap();
    one.claim(vec![claim(&jobs[1], "v")]).await.unwrap();
    // The worker moved to the other scheduler, which does not know the call.
    let ended = two.complete(vec![end(&jobs[0], "w")]).await.unwrap();
    assert!(matches!(ended[..], [Ended::Accepted { .. }]), "{ended:?}");
    two.claim(vec![claim(&jobs[0], "u")]).await.unwrap();
    assert_eq!(granted(&two).await, [row("u", 1), row("v", 1), row("w", 1)]);
    time.pass(Millis::from_secs(61));
    two.forget(Old::from_before(Timestamp(0), 1)).await.unwrap();
    assert_eq!(granted(&two).await, [row("v", 1)], "a worker without won claims has no row");
    one.claim(vec![claim(&jobs[2], "w")]).await.unwrap();
    one.complete(vec![end(&jobs[1], "v"), end(&jobs[2], "w")]).await.unwrap();
    one.forget(Old::from_before(Timestamp(0), 1)).await.unwrap();
    assert_eq!(granted(&one).await, []);
}

/// The page of each job, and whether the job has a place in its queue.
async fn pages(store: &Postgres) -> Vec<(i64, String, bool)> {
    let connection = store.desk.connection().await.unwrap();
    let sql = "SELECT id, split_part(ctid::text, ',', 1), place IS NOT NULL FROM jobs ORDER BY id";
    let rows = connection.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

#[tokio::test]
async fn claimed_job_keeps_its_place_until_it_starts() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    submit(&store, submission("a", "kind", 1_000)).await;
    let jobs: Vec<JobId> = (1..=1_000).map(JobId::number).collect();
    let before = pages(&store).await;
    for some in jobs.chunks(250) {
        let claimed = store.claim(some.iter().map(|job| claim(job, "w")).collect()).await.unwrap();
        assert!(claimed.iter().all(|claimed| matches!(claimed, Claimed::Won(_))));
    }
    assert_eq!(pages(&store).await, before);
    assert!(store.window(all(0, 1)).await.unwrap().own.is_empty(), "nobody waits");
    let start =
        |job: &JobId| crate::Start { job: job.clone(), attempt: 1, worker: WorkerId::new("w") };
    store.start(jobs.iter().map(start).collect()).await.unwrap();
    assert!(pages(&store).await.iter().all(|(.., has_place)| !has_place));
}

/// Rows of several calls are not deleted by the age of the oldest.
#[tokio::test]
async fn grants_of_a_call_are_deleted_when_all_are_old_and_ended() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    submit(&store, submission("a", "kind", 1)).await;
    store.claim(vec![claim(&JobId::number(1), "w")]).await.unwrap();
    let old = "UPDATE maitre.grants SET call = 7; \
        INSERT INTO maitre.grants (call, worker, at, jobs) VALUES (7, 'gone', 0, '{99}')";
    database.say(old).unwrap();
    store.forget(Old::from_before(Timestamp(0), 1)).await.unwrap();
    assert_eq!(granted(&store).await, [row("gone", 1), row("w", 1)]);
    time.pass(Millis::from_secs(61));
    store.forget(Old::from_before(Timestamp(0), 1)).await.unwrap();
    assert_eq!(granted(&store).await, [row("gone", 1), row("w", 1)], "one goes on");
}
