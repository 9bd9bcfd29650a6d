//! A database for each test, on the server that all tests share.

use cluster::{Cluster, Database};
use store::{Options, Postgres};

/// An empty database.
pub(crate) fn database() -> Database {
    let cluster = Cluster::shared().unwrap_or_else(|error| panic!("{error}"));
    cluster.database().unwrap_or_else(|error| panic!("{error}"))
}

/// A runtime for a store.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A store in the database.
pub(crate) async fn open(database: &Database, options: Options) -> Postgres {
    Postgres::connect(database.url(), options).await.unwrap_or_else(|error| panic!("{error}"))
}

const WIPE: &str = "TRUNCATE maitre.jobs, maitre.finished, maitre.attempts, maitre.logs, \
    maitre.sessions, maitre.settings, maitre.usage, maitre.runs, maitre.keys, maitre.keyed, \
    maitre.waits, maitre.queues, maitre.holdings, maitre.leads, maitre.notes, \
    maitre.notices, maitre.minutes RESTART IDENTITY; ALTER SEQUENCE maitre.job_ids RESTART; \
    UPDATE maitre.generations SET highest = 0";

/// Empties the database: quicker than making a new one.
pub(crate) fn wipe(database: &Database) {
    database.say(WIPE).unwrap();
}
