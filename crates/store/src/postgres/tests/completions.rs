//! Completions, for users who read them with SQL.

use std::time::SystemTime;

use model::{Cause, Ending, Fixed};
use serde_json::{Value, json};

use super::*;

/// The query of docs/postgres.md.
const PAGE: &str = "SELECT id, finished_at FROM maitre.completions \
    WHERE (finished_at, id) > ($1, $2) ORDER BY finished_at, id LIMIT 10";
const INDEX: &str =
    "CREATE INDEX finished_for_readers ON maitre.finished (to_timestamp(finished / 1000.0), id)";

/// Jobs that all finish at one time.
async fn finish(store: &Postgres, n_jobs: usize) -> Vec<i64> {
    let jobs = store.submit(submission("a", "kind", n_jobs)).await.unwrap().unwrap().jobs;
    store.claim(jobs.iter().map(|job| claim(&job.id, "w")).collect()).await.unwrap();
    store.complete(jobs.iter().map(|job| end(&job.id, "w")).collect()).await.unwrap();
    jobs.iter().filter_map(|job| crate::number::of(&job.id)).collect()
}

#[tokio::test]
async fn reader_of_completions_sees_each_once_without_a_sort() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    let mut expected = finish(&store, 25).await;
    time.pass(Millis(1));
    expected.extend(finish(&store, 3_000).await);
    let connection = store.desk.connection().await.unwrap();
    // The planner settings of a plain connection.
    let plain = format!(
        "SET enable_seqscan = on; SET enable_bitmapscan = on; SET plan_cache_mode = auto; \
         {INDEX}; ANALYZE finished"
    );
    connection.batch_execute(&plain).await.unwrap();
    let (mut seen, mut spot) = (Vec::new(), (SystemTime::UNIX_EPOCH, 0_i64));
    for _ in 0..4 {
        for row in connection.query(PAGE, &[&spot.0, &spot.1]).await.unwrap() {
            spot = (row.get(1), row.get(0));
            seen.push(spot.1);
        }
    }
    assert_eq!(seen, expected[..40]);
    let explain = format!("EXPLAIN {}", PAGE.replace("($1, $2)", "(now() - interval '1 hour', 7)"));
    let rows = connection.query(explain.as_str(), &[]).await.unwrap();
    let plan: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(plan.contains("finished_for_readers") && !plan.contains("Sort"), "{plan}");
    assert!(plan.contains("Index Cond: (ROW("), "{plan}");
}

#[tokio::test]
async fn completion_row_has_all_columns_of_the_job() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    let mut jobs = submission("shop", "invoice", 1);
    let spec = &mut jobs.jobs[0].spec;
    spec.group = Some("g".to_owned());
    spec.labels = [("team".to_owned(), "red".to_owned())].into();
    let job = store.submit(jobs).await.unwrap().unwrap().jobs.remove(0).id;
    let finished = time.now() + Millis(1_234);
    store.claim(vec![claim(&job, "w")]).await.unwrap();
    time.pass(Millis(1_234));
    let failed = crate::End {
        ending: Ending::Permanent,
        error: Some("no paper".to_owned()),
        exit_code: Some(3),
        cost: Some(Fixed::thousandths(2_500)),
        ..end(&job, "w")
    };
    store.complete(vec![failed]).await.unwrap();
    let connection = store.desk.connection().await.unwrap();
    let row = "SELECT (to_jsonb(c) - 'created_at' - 'finished_at')::text, \
        (extract(epoch FROM finished_at) * 1000)::bigint, \
        (extract(epoch FROM finished_at - created_at) * 1000)::bigint FROM maitre.completions c";
    let row = connection.query_one(row, &[]).await.unwrap();
    let said: Value = serde_json::from_str(row.get(0)).unwrap();
    let expected = json!({
        "id": 1, "tenant": "shop", "type": "invoice", "state": "failed",
        "cause": Cause::Permanent.name(), "attempts": 1, "error": "no paper", "exit_code": 3,
        "result": null, "cost": 2.5, "group_name": "g", "labels": { "team": "red" },
    });
    assert_eq!(said, expected);
    assert_eq!((row.get::<_, i64>(1), row.get::<_, i64>(2)), (finished.0, 1_234));
}
