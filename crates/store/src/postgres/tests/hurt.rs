//! A database that does not answer in time, an exhausted pool, and two versions with one schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::super::fault::{Doubt, Fault};
use super::*;
use crate::Error;

/// Enough calls to need every connection many times.
const CROWD: usize = 200;

/// Holds all jobs locked until it is dropped.
struct Locked {
    connection: deadpool_postgres::Object,
}

async fn lock(store: &Postgres) -> Locked {
    let connection = store.desk.connection().await.unwrap();
    connection.batch_execute("BEGIN; LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE").await.unwrap();
    Locked { connection }
}

impl Locked {
    async fn end(self) {
        self.connection.batch_execute("COMMIT").await.unwrap();
    }
}

#[tokio::test]
async fn slow_statement_times_out_and_the_next_one_works() {
    let (database, time) = (database(), Time::new());
    let other = open(&database, &time).await;
    let url = format!("{}?options=-c%20statement_timeout%3D200ms", database.url());
    let store = Postgres::connect(&url, options(&time)).await.unwrap();
    let locked = lock(&other).await;
    let refused = store.submit(submission("a", "kind", 1)).await;
    assert!(matches!(&refused, Err(Error::Unavailable { .. })), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("timeout"));
    locked.end().await;
    submit(&store, submission("a", "kind", 1)).await;
    assert_eq!(store.look(None, 9).await.unwrap().len(), 1);
}

const END_LISTENERS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
    WHERE datname = current_database() AND query LIKE 'LISTEN%'";

#[tokio::test]
async fn lost_listener_reconnects_and_scans() {
    let (database, time) = (database(), Time::new());
    let (one, two) = (open(&database, &time).await, open(&database, &time).await);
    let mut news = two.listen();
    assert_eq!(next(&mut news).await, News::Listening);
    let connection = one.desk.connection().await.unwrap();
    assert_eq!(connection.execute(END_LISTENERS, &[]).await.unwrap(), 1);
    // Nothing changed. The receiver must scan, because it may have missed a notification.
    assert_eq!(next(&mut news).await, News::Listening);
    assert_eq!(next(&mut news).await, News::Missed);
    let setting = Setting { kind: SettingKind::Pool, name: "p".to_owned(), document: None };
    one.set(vec![setting]).await.unwrap();
    assert_eq!(next(&mut news).await, News::Settings);
}

#[tokio::test]
async fn pool_drops_connections_after_a_timeout() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    assert!(store.desk.n_connections() > 0);
    let told = store.desk.failed(Fault::Silence, "ask", Doubt::IfLost);
    assert!(matches!(told, Error::Unknown { .. }), "{told:?}");
    assert_eq!(store.desk.n_connections(), 0);
    submit(&store, submission("a", "kind", 1)).await;
}

/// One of many concurrent calls. Its number selects the method.
async fn call(store: &Postgres, n: usize) -> Result<(), Error> {
    let job = JobId::number(u64::try_from(n).unwrap() + 1);
    let limit = crate::Limit { name: "one".to_owned(), amount: 1, max: 9, spent: None };
    match n % 7 {
        0 => store.job(job).await.map(drop),
        1 => store.submit(submission("a", "kind", 1)).await.map(drop),
        2 => store.claim(vec![claim(&job, "w")]).await.map(drop),
        3 => store.claim(vec![limited(&job, "w", limit)]).await.map(drop),
        4 => store.window(all(0, 1)).await.map(drop),
        5 => store.cancel(vec![job]).await.map(drop),
        _ => store.complete(vec![end(&job, "w")]).await.map(drop),
    }
}

#[tokio::test]
async fn every_call_gets_a_connection_in_a_crowd() {
    let (database, time) = (database(), Time::new());
    let store = Arc::new(open(&database, &time).await);
    submit(&store, submission("a", "kind", CROWD)).await;
    // The jobs that are ended and cancelled are claimed: half of them under a limit.
    let (limit, ids) =
        (crate::Limit { name: "one".to_owned(), amount: 1, max: 99, spent: None }, 0..CROWD);
    let under_way = ids.filter(|n| n % 7 > 4).map(|n| {
        let job = JobId::number(u64::try_from(n).unwrap() + 1);
        if n % 2 == 0 { claim(&job, "w") } else { limited(&job, "w", limit.clone()) }
    });
    store.claim(under_way.collect()).await.unwrap();
    let other = open(&database, &time).await;
    let locked = lock(&other).await;
    let mut crowd = JoinSet::new();
    for n in 0..CROWD {
        let store = Arc::clone(&store);
        crowd.spawn(async move { call(&store, n).await });
    }
    // All connections are in use, and wait for the lock of a different connection.
    while store.desk.n_waiting() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    locked.end().await;
    while let Some(answered) = crowd.join_next().await {
        answered.unwrap().unwrap();
    }
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
    let (done, off) = (store.job(JobId::number(7)).await, store.job(JobId::number(6)).await);
    assert_eq!(done.unwrap().unwrap().state, model::State::Succeeded);
    assert!(off.unwrap().unwrap().cancelling);
}

/// The part of the schema that a version relies on: columns by table, with their types and whether
/// a row may leave them out.
async fn shape(store: &deadpool_postgres::Object) -> BTreeMap<(String, String), (String, bool)> {
    let sql = "SELECT table_name::text, column_name::text, data_type::text, \
        is_nullable = 'YES' OR column_default IS NOT NULL OR is_identity = 'YES' \
        FROM information_schema.columns WHERE table_schema = 'maitre'";
    let rows = store.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| ((row.get(0), row.get(1)), (row.get(2), row.get(3)))).collect()
}

/// Checks and keys, by table.
async fn rules(store: &deadpool_postgres::Object) -> BTreeMap<(String, String), String> {
    let sql = "SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid) \
        FROM pg_constraint WHERE connamespace = 'maitre'::regnamespace AND conrelid <> 0";
    let rows = store.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| ((row.get(0), row.get(1)), row.get(2))).collect()
}

/// The version before this one works with the schema of this one until it is replaced. All columns
/// that it uses still exist, and no new one is mandatory.
#[tokio::test]
async fn each_step_of_the_schema_leaves_room_for_the_version_before_it() {
    let database = database();
    let pool = connect::pool(database.url()).unwrap();
    let connection = pool.get().await.unwrap();
    connection.batch_execute("CREATE SCHEMA maitre").await.unwrap();
    let mut before = (BTreeMap::new(), BTreeMap::new());
    for step in migrate::STEPS {
        connection.batch_execute(step.sql).await.unwrap();
        let after = (shape(&connection).await, rules(&connection).await);
        let tables: Vec<&String> = before.0.keys().map(|(table, _): &(String, _)| table).collect();
        for (column, (kind, _)) in &before.0 {
            let now = after.0.get(column).map(|(kind, _)| kind);
            assert_eq!(now, Some(kind), "{} changes {column:?}", step.name);
        }
        for (column, (_, may_be_left_out)) in &after.0 {
            let is_new = !before.0.contains_key(column) && tables.contains(&&column.0);
            assert!(!is_new || *may_be_left_out, "{} demands {column:?}", step.name);
        }
        for (rule, text) in &after.1 {
            let is_old_table = tables.iter().any(|table| rule.0.ends_with(table.as_str()));
            let is_new = is_old_table && before.1.get(rule) != Some(text);
            assert!(!is_new, "{} adds the rule {rule:?}: {text}", step.name);
        }
        before = after;
    }
    assert!(!before.0.is_empty() && !before.1.is_empty());
}

/// A version that is two steps older would not notice the change.
#[tokio::test]
async fn schema_is_not_migrated_two_steps_under_a_live_scheduler() {
    let database = database();
    let pool = connect::pool(database.url()).unwrap();
    let connection = pool.get().await.unwrap();
    connection.batch_execute("CREATE SCHEMA maitre").await.unwrap();
    connection.batch_execute(migrate::PREPARE).await.unwrap();
    let n_applied = migrate::STEPS.len() - 2;
    for (place, step) in migrate::STEPS[..n_applied].iter().enumerate() {
        connection.batch_execute(step.sql).await.unwrap();
        let (number, sum) = (i64::try_from(place + 1).unwrap(), crate::checksum::of(step.sql));
        let sql = "INSERT INTO migrations (number, name, checksum) VALUES ($1, $2, $3)";
        connection.execute(sql, &[&number, &step.name, &sum]).await.unwrap();
    }
    let here = "INSERT INTO schedulers (id, said, at) \
        VALUES (1, '', (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";
    connection.batch_execute(here).await.unwrap();
    let refused = migrate::migrate(&pool).await.unwrap_err().to_string();
    assert!(refused.contains("stop all of them first"), "{refused}");
    connection.batch_execute("UPDATE schedulers SET at = at - 20000").await.unwrap();
    migrate::migrate(&pool).await.unwrap();
    let n: i64 = connection.query_one("SELECT count(*) FROM migrations", &[]).await.unwrap().get(0);
    assert_eq!(usize::try_from(n).unwrap(), migrate::STEPS.len());
}

/// The role needs no privilege for a migration that is done.
#[tokio::test]
async fn role_without_ddl_privilege_waits_for_the_migration() {
    let (database, time) = (database(), Time::new());
    drop(open(&database, &time).await);
    let owners = connect::pool(database.url()).unwrap();
    let owner = owners.get().await.unwrap();
    let role: String =
        owner.query_one("SELECT 'runs_' || current_database()", &[]).await.unwrap().get(0);
    let grants = format!(
        "CREATE ROLE {role}; GRANT USAGE ON SCHEMA maitre TO {role}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA maitre TO {role}"
    );
    owner.batch_execute(&grants).await.unwrap();
    let undone = "CREATE TABLE undone AS SELECT * FROM migrations ORDER BY number DESC LIMIT 1; \
        DELETE FROM migrations WHERE number = (SELECT number FROM undone)";
    owner.batch_execute(undone).await.unwrap();
    let begun = "BEGIN; SELECT pg_advisory_xact_lock(hashtext('maitre migrations')); \
        INSERT INTO migrations SELECT * FROM undone";
    owner.batch_execute(begun).await.unwrap();
    let url = format!("{}?options=-c%20role%3D{role}", database.url());
    let pool = connect::pool(&url).unwrap();
    let migrating = tokio::spawn(async move { migrate::migrate(&pool).await.map(|()| pool) });
    let watcher = owners.get().await.unwrap();
    while watcher.query_one(ONE_WAITS, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(!migrating.is_finished(), "{:?}", migrating.await);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    owner.batch_execute("COMMIT").await.unwrap();
    let pool = migrating.await.unwrap().unwrap();
    owner.batch_execute("DELETE FROM migrations").await.unwrap();
    let refused = migrate::migrate(&pool).await.unwrap_err().to_string();
    assert!(refused.contains("this user may not"), "{refused}");
    owner.batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await.unwrap();
}
