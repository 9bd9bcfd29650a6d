//! The walk along the ids finds old jobs behind any number of others.

use model::Timestamp;

use super::*;
use crate::Old;

/// Inserts finished jobs with these ids, submission times and finish times.
async fn done(store: &Postgres, (from, to): (i64, i64), (created, finished): (i64, i64)) {
    let sql = "INSERT INTO finished (id, tenant, kind, state, fence, priority, attempts, failures, \
        losses, evictions, refusals, revived, created, finished, queue, document, payload) \
        SELECT id, 'a', 'kind', 'succeeded', 3, 0, 1, 0, 0, 0, 0, 0, $3, $4, 0, '{}', '' \
        FROM generate_series($1::bigint, $2) AS u(id)";
    let connection = store.desk.connection().await.unwrap();
    connection.execute(sql, &[&from, &to, &created, &finished]).await.unwrap();
}

#[tokio::test]
async fn old_jobs_are_deleted_behind_many_recent_ones() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    // Old submissions: many that finished late, and three that finished early. Then recent ones.
    done(&store, (1, 35_000), (10, 500)).await;
    done(&store, (35_001, 35_003), (10, 20)).await;
    done(&store, (35_004, 60_000), (500, 510)).await;
    let before = Timestamp(100);
    let mut forgotten = Vec::new();
    for _ in 0..3 {
        forgotten.push(store.forget(Old::from_before(before, 2)).await.unwrap());
    }
    assert_eq!(forgotten, [2, 1, 0]);
    // The next walk begins at the first id, and finds a new row there.
    done(&store, (-1, -1), (10, 30)).await;
    assert_eq!(store.forget(Old::from_before(before, 2)).await.unwrap(), 1);
    assert_eq!(store.forget(Old::from_before(Timestamp(501), 1_000_000)).await.unwrap(), 35_000);
    assert_eq!(store.forget(Old::from_before(Timestamp(501), 1_000_000)).await.unwrap(), 0);
}
