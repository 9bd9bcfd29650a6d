//! The settings of connections and tables, as the database reports them.

use std::collections::BTreeMap;

use tokio::io::AsyncReadExt as _;

use super::*;

/// The settings of every connection. Without a test, a missing timeout shows only when a call waits
/// forever.
const SETTINGS: [(&str, &str); 5] = [
    ("statement_timeout", "30s"),
    ("lock_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "30s"),
    ("search_path", "maitre"),
    ("default_transaction_isolation", "read committed"),
];

#[tokio::test]
async fn every_connection_has_timeouts() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    for (name, expected) in SETTINGS {
        let connection = store.desk.connection().await.unwrap();
        let row = connection.query_one(&format!("SHOW {name}"), &[]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), expected, "{name}");
    }
}

/// The listening connection is not in the pool, but requests the same settings.
#[tokio::test]
async fn listening_connection_has_the_settings_of_the_pool() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    let door = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = door.local_addr().unwrap().port();
    let url = format!("postgres://maitre@127.0.0.1:{port}/maitre?sslmode=disable");
    let _news = tell::listen(&url, &store.desk, 1);
    let (mut caller, _) = door.accept().await.unwrap();
    let n_bytes = usize::try_from(caller.read_u32().await.unwrap()).unwrap() - 4;
    let mut packet = vec![0; n_bytes];
    caller.read_exact(&mut packet).await.unwrap();
    // After the protocol number: names and values, each with a final zero.
    let mut words = packet[4..].split(|byte| *byte == 0);
    let options = words.find(|word| *word == b"options").and_then(|_| words.next());
    let pooled = connect::config(database.url()).unwrap().0;
    assert_eq!(options, pooled.get_options().map(str::as_bytes));
}

/// The storage parameters that the migrations set on tables with frequent changes. Postgres resets
/// a parameter that a rewrite does not repeat, and only the latency shows it.
const STORED: &[(&str, &[&str])] = &[
    ("jobs", &["fillfactor=40", VACUUM_NO_SCALE, "autovacuum_vacuum_threshold=10000", VACUUM_FAST]),
    ("jobs_pkey", &["fillfactor=90"]),
    ("queues", &["fillfactor=80"]),
    ("sessions", &["fillfactor=50", VACUUM_NO_SCALE, VACUUM_SOON, VACUUM_FAST]),
    ("usage", &["fillfactor=50"]),
    ("schedulers", &["fillfactor=50", VACUUM_NO_SCALE, VACUUM_SOON]),
    ("holdings", &["fillfactor=50", VACUUM_NO_SCALE, VACUUM_SOON, VACUUM_FAST]),
    ("leads", &["fillfactor=50"]),
    ("grants", &["toast_tuple_target=8160", VACUUM_NO_SCALE, VACUUM_SOON, VACUUM_FAST]),
];

const VACUUM_NO_SCALE: &str = "autovacuum_vacuum_scale_factor=0";
const VACUUM_SOON: &str = "autovacuum_vacuum_threshold=1000";
const VACUUM_FAST: &str = "autovacuum_vacuum_cost_delay=0";

#[tokio::test]
async fn hot_tables_have_fillfactor_and_eager_vacuum() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    let connection = store.desk.connection().await.unwrap();
    let sql = "SELECT relname::text, reloptions FROM pg_class \
        WHERE relnamespace = 'maitre'::regnamespace AND reloptions IS NOT NULL";
    let rows = connection.query(sql, &[]).await.unwrap();
    let sorted = |mut options: Vec<String>| {
        options.sort_unstable();
        options
    };
    let stored: BTreeMap<String, Vec<String>> =
        rows.iter().map(|row| (row.get(0), sorted(row.get(1)))).collect();
    let expected: BTreeMap<String, Vec<String>> = STORED
        .iter()
        .map(|(name, options)| {
            let options = options.iter().map(|option| (*option).to_owned()).collect();
            ((*name).to_owned(), sorted(options))
        })
        .collect();
    assert_eq!(stored, expected);
}
