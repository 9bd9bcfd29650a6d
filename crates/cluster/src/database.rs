//! A database for one test, on any server.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;
use crate::programs::{self, Programs};

/// An empty database. On an external server, a drop removes it.
#[derive(Debug)]
pub struct Database {
    pub(crate) url: String,
    pub(crate) named: Option<Named>,
}

/// The database to remove, and the connection for that.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) base: String,
    pub(crate) name: String,
}

impl Database {
    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs SQL without a result.
    pub fn say(&self, sql: &str) -> Result<(), Error> {
        say("say something to the database", &self.url, sql)
    }

    /// Dumps a schema to a file, as an operator would.
    pub fn dump(&self, schema: &str, file: &Path) -> Result<(), Error> {
        let mut dump = Command::new(Programs::find()?.path("pg_dump"));
        dump.args(["-Fc", "-n", schema, "-f"]).arg(file).arg(&self.url);
        programs::run("copy a database", &mut dump)
    }

    /// Restores such a file.
    pub fn restore(&self, file: &Path) -> Result<(), Error> {
        let mut restore = Command::new(Programs::find()?.path("pg_restore"));
        restore.args(["--exit-on-error", "-d", &self.url]).arg(file);
        programs::run("restore a database", &mut restore)
    }
}

impl Drop for Database {
    /// Does not wait: `DROP DATABASE` would wait up to a minute for connections that this process
    /// is still opening, while this process is blocked. The operator of that server can remove the
    /// database too.
    fn drop(&mut self) {
        let (Some(named), Ok(programs)) = (&self.named, Programs::find()) else { return };
        let drop = format!("DROP DATABASE IF EXISTS {}", named.name);
        let mut psql = Command::new(programs.path("psql"));
        psql.process_group(0).args(["-X", "-q", "-d", &named.base]);
        // A role may lack the privilege to end the server's own processes. The second statement
        // works then, because the server ends them itself.
        psql.args(["-c", &format!("{drop} WITH (FORCE)"), "-c", &drop]);
        psql.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _started = psql.spawn();
    }
}

pub(crate) fn say(doing: &'static str, url: &str, sql: &str) -> Result<(), Error> {
    let mut psql = Command::new(Programs::find()?.path("psql"));
    programs::run(doing, psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]))
}

/// The URL of a different database on the same server.
pub(crate) fn with_database(url: &str, database: &str) -> String {
    let (base, question) = url.split_once('?').map_or((url, ""), |(base, rest)| (base, rest));
    let scheme = base.find("://").map_or(0, |at| at + 3);
    let end = base[scheme..].find('/').map_or(base.len(), |at| scheme + at);
    let question = if question.is_empty() { String::new() } else { format!("?{question}") };
    format!("{}/{database}{question}", &base[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_replaces_the_one_in_the_url() {
        for (url, expected) in [
            ("postgres://h/a", "postgres://h/b"),
            ("postgres://u:p@h:5/a?sslmode=require", "postgres://u:p@h:5/b?sslmode=require"),
            ("postgresql://h", "postgresql://h/b"),
        ] {
            assert_eq!(with_database(url, "b"), expected);
        }
    }
}
