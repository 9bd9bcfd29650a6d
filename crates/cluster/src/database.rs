//! A database for one test, on whichever server.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;
use crate::programs::{self, Programs};

/// An empty database. One on somebody else's server is removed when this is dropped.
#[derive(Debug)]
pub struct Database {
    pub(crate) url: String,
    pub(crate) named: Option<Named>,
}

/// What is to be removed again, and by which way.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) base: String,
    pub(crate) name: String,
}

impl Database {
    /// How it is reached.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Says something to it that has no answer.
    pub fn say(&self, sql: &str) -> Result<(), Error> {
        say("say something to the database", &self.url, sql)
    }

    /// Copies a schema into a file, as an operator would.
    pub fn dump(&self, schema: &str, file: &Path) -> Result<(), Error> {
        let mut dump = Command::new(Programs::find()?.path("pg_dump"));
        dump.args(["-Fc", "-n", schema, "-f"]).arg(file).arg(&self.url);
        programs::run("copy a database", &mut dump)
    }

    /// Takes in what such a file holds.
    pub fn restore(&self, file: &Path) -> Result<(), Error> {
        let mut restore = Command::new(Programs::find()?.path("pg_restore"));
        restore.args(["--exit-on-error", "-d", &self.url]).arg(file);
        programs::run("restore a database", &mut restore)
    }
}

impl Drop for Database {
    /// Nobody waits for it: a connection that this process has begun to make, and does nothing for
    /// while it waits, would be waited for in turn, for a minute. Whoever runs that server can
    /// remove the database too.
    fn drop(&mut self) {
        let (Some(named), Ok(programs)) = (&self.named, Programs::find()) else { return };
        let drop = format!("DROP DATABASE IF EXISTS {}", named.name);
        let mut psql = Command::new(programs.path("psql"));
        psql.process_group(0).args(["-X", "-q", "-d", &named.base]);
        // Not everybody may end what the server itself does there; it then ends it for the second.
        psql.args(["-c", &format!("{drop} WITH (FORCE)"), "-c", &drop]);
        psql.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _started = psql.spawn();
    }
}

pub(crate) fn say(doing: &'static str, url: &str, sql: &str) -> Result<(), Error> {
    let mut psql = Command::new(Programs::find()?.path("psql"));
    programs::run(doing, psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]))
}

/// Another database on the same server.
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
    fn a_database_takes_the_place_of_the_one_in_the_url() {
        for (url, expected) in [
            ("postgres://h/a", "postgres://h/b"),
            ("postgres://u:p@h:5/a?sslmode=require", "postgres://u:p@h:5/b?sslmode=require"),
            ("postgresql://h", "postgresql://h/b"),
        ] {
            assert_eq!(with_database(url, "b"), expected);
        }
    }
}
