//! Retention, also for data that comes into use at the moment of its deletion.

use model::Timestamp;

use super::*;
use crate::Old;

#[tokio::test]
async fn queue_that_is_confirmed_during_its_deletion_stays() {
    let (database, time) = (database(), Time::new());
    let (one, two) = (open(&database, &time).await, open(&database, &time).await);
    let gone = submission("a", "kind", 1);
    let job = one.submit(gone.clone()).await.unwrap().unwrap().jobs.remove(0).id;
    one.cancel(vec![job]).await.unwrap();
    time.pass(Millis::from_secs(48 * 3600));
    // A second transaction puts a job into the queue, and has not committed yet.
    let comes = two.desk.connection().await.unwrap();
    let used = format!("BEGIN; UPDATE queues SET used = {}", time.now().0);
    comes.batch_execute(&used).await.unwrap();
    let forget = async { one.forget(Old::from_before(Timestamp(0), 10)).await.unwrap() };
    let commit = async {
        let watcher = two.desk.connection().await.unwrap();
        while watcher.query_one(ONE_WAITS, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        comes.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(forget, commit);
    let n_queues = comes.query_one("SELECT count(*) FROM queues", &[]).await.unwrap();
    assert_eq!(n_queues.get::<_, i64>(0), 1);
    time.pass(Millis::from_secs(48 * 3600));
    one.forget(Old::from_before(Timestamp(0), 10)).await.unwrap();
    let n_queues = comes.query_one("SELECT count(*) FROM queues", &[]).await.unwrap();
    assert_eq!(n_queues.get::<_, i64>(0), 0, "an unused queue is deleted");
}

/// There are more histories than one step reads.
#[tokio::test]
async fn each_of_many_histories_is_trimmed() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    let connection = store.desk.connection().await.unwrap();
    let runs_max = i64::try_from(store.desk.options.runs_max).unwrap();
    let fill = "INSERT INTO runs (tenant, kind, history_key, at, wait, duration, ending, \
        out_of_memory, n_dependents) SELECT 'a', 'kind', key::text, $1, 0, 0, 'succeeded', false, \
        0 FROM generate_series(1, 12000) AS key, generate_series(1, $2::bigint) AS n";
    connection.execute(fill, &[&time.now().0, &(runs_max + 2)]).await.unwrap();
    let count = async || {
        let sql = "SELECT count(*) FROM runs";
        connection.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    let mut left = vec![count().await];
    for _ in 0..3 {
        store.forget(Old::from_before(Timestamp(0), 10)).await.unwrap();
        left.push(count().await);
    }
    assert!(left[1] < left[0] && left[2] < left[1], "a step at a time: {left:?}");
    assert_eq!(left[3], 12_000 * runs_max);
}
