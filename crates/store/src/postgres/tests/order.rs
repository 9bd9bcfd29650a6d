//! Transactions lock shared rows in one order, so that they do not deadlock.
//!
//! Two transactions want the same three rows, one from the first to the last and one from the last
//! to the first. A third one holds the middle row until both block. If each locked in its own
//! order, each would then hold the row that the other wants next.

use std::collections::BTreeMap;

use deadpool_postgres::Object;
use model::Millis;
use tokio_postgres::types::ToSql;

use super::*;
use crate::{Amend, Idempotency, Limit, Start};

const FORTH: [u64; 3] = [1, 2, 3];
const BACK: [u64; 3] = [3, 2, 1];
/// The middle job of three.
const JOB: &str = "SELECT FROM jobs WHERE id = 2 FOR UPDATE";

/// Two schedulers with three jobs, and the connections that observe them.
struct Scene {
    one: Postgres,
    two: Postgres,
    holder: Object,
    watcher: Object,
    _database: Database,
}

impl Scene {
    async fn new() -> Self {
        let (database, time) = (database(), Time::new());
        let (one, two) = (open(&database, &time).await, open(&database, &time).await);
        submit(&one, submission("a", "kind", 3)).await;
        let pool = connect::pool(database.url()).unwrap();
        let (holder, watcher) = (pool.get().await.unwrap(), pool.get().await.unwrap());
        Self { one, two, holder, watcher, _database: database }
    }

    /// The jobs are claimed by the worker `w`.
    async fn claimed() -> Self {
        let scene = Self::new().await;
        scene.one.claim(FORTH.map(|job| claim(&JobId::number(job), "w")).to_vec()).await.unwrap();
        scene
    }

    /// Both call, and wait for the connection that holds the lock of `statement`.
    async fn cross(self, statement: &str, call: impl AsyncFn(&Postgres, [u64; 3])) {
        self.holder.batch_execute(&format!("BEGIN; {statement}")).await.unwrap();
        tokio::join!(call(&self.one, FORTH), call(&self.two, BACK), async {
            while self.number(WAITING).await < 2 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            self.holder.batch_execute("ROLLBACK").await.unwrap();
        });
        assert_eq!(self.n_circles().await, 0, "of those who wait for {statement:?}");
    }

    /// The number of deadlocks. A connection reports its statistics when it ends.
    async fn n_circles(self) -> i64 {
        drop((self.one, self.two, self.holder));
        let number = async |sql| self.watcher.query_one(sql, &[]).await.unwrap().get::<_, i64>(0);
        while number(CONNECTED).await > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").await
    }

    async fn number(&self, sql: &str) -> i64 {
        self.watcher.query_one(sql, &[]).await.unwrap().get(0)
    }
}

const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock'";
const CONNECTED: &str = "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() \
    AND datname = current_database() AND backend_type = 'client backend'";

fn numbers(jobs: [u64; 3]) -> Vec<JobId> {
    jobs.map(JobId::number).to_vec()
}

#[tokio::test]
async fn jobs_are_claimed_in_one_order() {
    let call = async |store: &Postgres, jobs: [u64; 3]| {
        let claims = numbers(jobs).iter().map(|job| claim(job, "w")).collect();
        store.claim(claims).await.unwrap();
    };
    Scene::new().await.cross(JOB, call).await;
}

#[tokio::test]
async fn attempts_start_in_one_order() {
    let call = async |store: &Postgres, jobs: [u64; 3]| {
        let start = |job| Start { job, attempt: 1, worker: WorkerId::new("w") };
        store.start(numbers(jobs).into_iter().map(start).collect()).await.unwrap();
    };
    Scene::claimed().await.cross(JOB, call).await;
}

#[tokio::test]
async fn attempts_end_in_one_order() {
    let call = async |store: &Postgres, jobs: [u64; 3]| {
        let ends = numbers(jobs).iter().map(|job| end(job, "w")).collect();
        store.complete(ends).await.unwrap();
    };
    Scene::claimed().await.cross(JOB, call).await;
    let call = async |store: &Postgres, jobs: [u64; 3]| {
        let ending = model::Ending::Lost;
        let lost = |job| crate::End { ending, ..end(&JobId::number(job), "w") };
        store.complete(jobs.map(lost).to_vec()).await.unwrap();
    };
    Scene::claimed().await.cross(JOB, call).await;
}

#[tokio::test]
async fn jobs_are_amended_and_cancelled_in_one_order() {
    let call = async |store: &Postgres, jobs: [u64; 3]| {
        store.amend(numbers(jobs), Amend::Priority(7)).await.unwrap();
    };
    Scene::new().await.cross(JOB, call).await;
    let call = async |store: &Postgres, jobs: [u64; 3]| {
        store.cancel(numbers(jobs)).await.unwrap();
    };
    Scene::new().await.cross(JOB, call).await;
}

/// A job that counts under three limits.
fn under(job: u64, limits: [u64; 3]) -> Claim {
    let limit = |n| Limit { name: format!("limit {n}"), amount: 1, max: 9, spent: None };
    Claim { limits: limits.map(limit).to_vec(), ..claim(&JobId::number(job), "w") }
}

#[tokio::test]
async fn limits_are_taken_in_one_order() {
    // Each call claims a different job.
    let call = async |store: &Postgres, limits: [u64; 3]| {
        store.claim(vec![under(limits[0], limits)]).await.unwrap();
    };
    let new = "INSERT INTO holdings (name, held) VALUES ('limit 2', 0)";
    Scene::new().await.cross(new, call).await;
    let scene = Scene::new().await;
    scene.one.claim(vec![under(2, FORTH)]).await.unwrap();
    scene.cross("SELECT FROM holdings WHERE name = 'limit 2' FOR UPDATE", call).await;
}

/// With any collation of the database.
#[tokio::test]
async fn limits_are_taken_in_one_order_where_texts_have_another() {
    let cluster = Cluster::shared().unwrap_or_else(|error| panic!("{error}"));
    let database = cluster.database_as("LOCALE_PROVIDER icu ICU_LOCALE 'en-US' TEMPLATE template0");
    let database = database.unwrap_or_else(|error| panic!("{error}"));
    let store = open(&database, &Time::new()).await;
    let connection = store.desk.connection().await.unwrap();
    // The first in bytes, and the last in the collation.
    let names = vec!["Beta", "acme"];
    let make = "INSERT INTO holdings (name, held) SELECT unnest($1::text[]), 0";
    connection.execute(make, &[&names]).await.unwrap();
    let by_word = "SELECT name FROM holdings ORDER BY name";
    let read = async |sql: &str, values: &[&(dyn ToSql + Sync)]| {
        let rows = connection.query(sql, values).await.unwrap();
        rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>()
    };
    assert_eq!(read(by_word, &[]).await, ["acme", "Beta"], "its own order is another");
    assert_eq!(read(limits::LOCK, &[&names]).await, names);
    for worker in &names {
        store.join(WorkerId::new(worker), Millis(1_000)).await.unwrap();
    }
    let workers: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(read(lease::HEARD, &[&workers, &store.desk.told_time()]).await, names);
}

#[tokio::test]
async fn leases_are_renewed_in_one_order() {
    let scene = Scene::new().await;
    let mut sessions = BTreeMap::new();
    for n in FORTH {
        let joined = scene.one.join(WorkerId::new(&format!("w{n}")), Millis(1_000)).await;
        sessions.insert(n, joined.unwrap());
    }
    let call = async |store: &Postgres, workers: [u64; 3]| {
        let sessions = workers.map(|n| sessions[&n].clone()).to_vec();
        assert_eq!(store.renew(sessions, Millis(1_000)).await.unwrap(), [true; 3]);
    };
    scene.cross("SELECT FROM sessions WHERE worker = 'w2' FOR UPDATE", call).await;
}

#[tokio::test]
async fn keys_are_taken_in_one_order() {
    let deduped = async |store: &Postgres, keys: [u64; 3]| {
        let mut jobs = submission("a", "kind", 3);
        for (job, key) in jobs.jobs.iter_mut().zip(keys) {
            job.spec.dedupe_key = Some(format!("key {key}"));
        }
        submit(store, jobs).await;
    };
    let other = "UPDATE jobs SET dedupe_key = 'key 2' WHERE id = 1";
    Scene::new().await.cross(other, deduped).await;
    let again = async |store: &Postgres, keys: [u64; 3]| {
        let one = async |key| {
            let idempotency = Some(Idempotency { key: format!("key {key}"), body: [7; 32] });
            submit(store, Submission { idempotency, ..submission("a", "kind", 1) }).await;
        };
        tokio::join!(one(keys[0]), one(keys[1]), one(keys[2]));
    };
    let other = "INSERT INTO keys (tenant, key, body, jobs) VALUES ('a', 'key 2', '', '{1}')";
    Scene::new().await.cross(other, again).await;
}
