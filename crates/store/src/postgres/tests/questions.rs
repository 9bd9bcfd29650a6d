//! Queries of users take no connection from the renewal of leases.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::*;
use crate::Filter;

const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

#[tokio::test]
async fn user_queries_never_block_lease_renewal() {
    let (database, time) = (database(), Time::new());
    let store = Arc::new(open(&database, &time).await);
    let session = store.join(WorkerId::new("w"), Millis(1_000)).await.unwrap();
    let holder = open(&database, &time).await.desk.connection().await.unwrap();
    holder.batch_execute("BEGIN; LOCK TABLE finished IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let mut crowd = JoinSet::new();
    for _ in 0..100 {
        let store = Arc::clone(&store);
        let filter = Filter { max: 1, ..Filter::default() };
        crowd.spawn(async move { store.jobs(filter).await.map(drop) });
    }
    let watcher = open(&database, &time).await.desk.connection().await.unwrap();
    let n_waiting = async || watcher.query_one(WAITING, &[]).await.unwrap().get::<_, i64>(0);
    while n_waiting().await < 6 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let renewed = store.renew(vec![session.clone()], Millis(1_000)).await.unwrap();
    assert_eq!((renewed, n_waiting().await), (vec![true], 6));
    // The callers go. Their queries continue, and no other query gets their connections.
    crowd.shutdown().await;
    for _ in 0..20 {
        let renewed = store.renew(vec![session.clone()], Millis(1_000)).await.unwrap();
        assert_eq!(renewed, [true]);
    }
    holder.batch_execute("COMMIT").await.unwrap();
    store.jobs(Filter { max: 1, ..Filter::default() }).await.unwrap();
}
