//! An empty database on a server that the caller names, for a benchmark. The caller removes it
//! again.

use std::sync::atomic::{AtomicU32, Ordering};

use super::connect;
use super::fault::{Doubt, Fault};
use crate::Error;

/// The statements of a benchmark may take longer than those of a scheduler.
const NO_TIMEOUT: &str = "SET statement_timeout = 0";

/// An empty database. Its name tells it apart from each other one of this process.
#[derive(Debug)]
pub struct Scratch {
    server: String,
    name: String,
}

impl Scratch {
    /// Creates a database on the server at this address. The user needs `CREATEDB`.
    pub async fn create(server: &str) -> Result<Self, Error> {
        static N_CREATED: AtomicU32 = AtomicU32::new(0);
        let n = N_CREATED.fetch_add(1, Ordering::Relaxed);
        let name = format!("maitre_bench_{}_{n}", std::process::id());
        let sql = format!("CREATE DATABASE {name} TEMPLATE template0");
        execute(server, "create a database", &sql).await?;
        Ok(Self { server: server.to_owned(), name })
    }

    /// The address of the database.
    pub fn url(&self) -> String {
        with_database(&self.server, &self.name)
    }

    /// Updates the planner's statistics, which Postgres itself does once a minute.
    pub async fn analyze(&self) -> Result<(), Error> {
        execute(&self.url(), "analyze a database", "ANALYZE").await
    }

    /// Drops the database, and ends the connections to it.
    pub async fn remove(&self) -> Result<(), Error> {
        let doing = "drop a database";
        let drop = format!("DROP DATABASE IF EXISTS {}", self.name);
        let forced = format!("{drop} WITH (FORCE)");
        // Only a superuser may end a process of the server itself. A plain drop waits for it.
        match execute(&self.server, doing, &forced).await {
            Err(_) => execute(&self.server, doing, &drop).await,
            forced => forced,
        }
    }
}

/// Executes one statement that has no answer, outside of a transaction.
async fn execute(url: &str, doing: &'static str, statement: &str) -> Result<(), Error> {
    let (config, seal) = connect::config(url)?;
    let failed = |error| Fault::Database(error).tell(doing, Doubt::None);
    let (client, connection) = config.connect(seal).await.map_err(failed)?;
    let all = async move {
        client.batch_execute(NO_TIMEOUT).await?;
        client.batch_execute(statement).await
    };
    // The connection ends when the statements drop their client.
    let (executed, _) = tokio::join!(all, connection);
    executed.map_err(failed)
}

/// The address of a different database on the same server.
fn with_database(url: &str, database: &str) -> String {
    let (base, options) = url.split_once('?').map_or((url, None), |(base, it)| (base, Some(it)));
    let scheme = base.find("://").map_or(0, |at| at + 3);
    let end = base[scheme..].find('/').map_or(base.len(), |at| scheme + at);
    let options = options.map(|options| format!("?{options}")).unwrap_or_default();
    format!("{}/{database}{options}", &base[..end])
}

#[cfg(test)]
mod tests {
    use cluster::Cluster;

    use super::*;

    #[test]
    fn a_database_replaces_the_one_of_the_address() {
        for (url, expected) in [
            ("postgres://h/a", "postgres://h/b"),
            ("postgres://u:p@h:5/a?sslmode=require", "postgres://u:p@h:5/b?sslmode=require"),
            ("postgresql://h", "postgresql://h/b"),
        ] {
            assert_eq!(with_database(url, "b"), expected);
        }
    }

    #[tokio::test]
    async fn a_removed_database_is_gone_although_a_client_was_connected() {
        let cluster = Cluster::shared().unwrap();
        let scratch = Scratch::create(&cluster.url("postgres")).await.unwrap();
        let (config, seal) = connect::config(&scratch.url()).unwrap();
        let (client, connection) = config.connect(seal).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute("SELECT 1").await.unwrap();
        scratch.analyze().await.unwrap();
        scratch.remove().await.unwrap();
        assert!(connection.await.unwrap().is_err(), "the server ended the connection");
        let told = execute(&scratch.url(), "connect", "SELECT 1").await.unwrap_err().to_string();
        assert!(told.contains("does not exist"), "{told}");
    }
}
