//! Reads the data after a run: the store's file, the clients' logs, the records of processes.

use std::fs;
use std::path::Path;

use checker::{Attempt, History, Job, Key, Mark};
use rusqlite::{Connection, Result as SqlResult, Row};
use serde::Deserialize;
use serde_json::Value;

use crate::Error;
use crate::notebook::lines;

/// The store's file and its log in a data directory.
pub(crate) const FILES: [&str; 2] = ["maitre.db", "maitre.db-wal"];
/// Defaults of tries and of the first backoff.
const ATTEMPTS_MAX: u32 = 3;

/// Copies the store's file and its log to a different directory, while no process writes.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).map_err(Error::system("make a directory for a copy"))?;
    for file in FILES {
        match fs::copy(from.join(file), to.join(file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::system(format!("copy `{file}`"))(error));
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Reads the copy of a store's file into `history`.
pub(crate) fn read_store(directory: &Path, history: &mut History) -> Result<(), Error> {
    let connection = Connection::open(directory.join(FILES[0]))?;
    let damage = list(&connection, "PRAGMA integrity_check", |row| row.get::<_, String>(0))?;
    history.damage = damage.into_iter().filter(|finding| finding != "ok").collect();
    let strays = list(&connection, "PRAGMA foreign_key_check", |row| row.get::<_, String>(0))?;
    history.damage.extend(strays.iter().map(|table| format!("a row of `{table}` points nowhere")));
    history.jobs = list(&connection, JOBS, job)?;
    history.attempts = list(&connection, ATTEMPTS, attempt)?;
    history.keys = list(&connection, "SELECT tenant, key, jobs FROM keys ORDER BY id", key)?;
    let completed = "SELECT COALESCE(SUM(completed), 0) FROM usage";
    history.n_completed = connection.query_row(completed, [], |row| row.get::<_, u32>(0))?.into();
    Ok(())
}

const JOBS: &str = "SELECT j.id, tenant, kind, state, NULL, attempts, failures, losses, refusals, \
    created, NULL, document, evictions, priority FROM jobs j LEFT JOIN specs s ON s.id = j.id \
    UNION ALL SELECT j.id, tenant, kind, state, cause, attempts, failures, losses, refusals, \
    created, finished, document, evictions, priority FROM finished j \
    LEFT JOIN specs s ON s.id = j.id ORDER BY 1";

const ATTEMPTS: &str = "SELECT job, number, worker, claimed, ended, ending, error FROM pasts \
    UNION ALL SELECT id, attempts, worker, claimed, NULL, '', NULL FROM jobs \
    WHERE worker IS NOT NULL ORDER BY 1, 2";

fn list<T>(
    connection: &Connection,
    sql: &str,
    read: impl Fn(&Row<'_>) -> SqlResult<T>,
) -> SqlResult<Vec<T>> {
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| read(row))?.collect()
}

fn job(row: &Row<'_>) -> SqlResult<Job> {
    let document: Option<String> = row.get(11)?;
    let document = document.and_then(|text| serde_json::from_str(&text).ok());
    let document: Document = document.unwrap_or_default();
    let retry = document.retry.unwrap_or_default();
    Ok(Job {
        id: number(row, 0)?,
        tenant: row.get(1)?,
        kind: row.get(2)?,
        state: row.get(3)?,
        cause: row.get(4)?,
        dedupe: document.dedupe_key,
        slots: document.slots.unwrap_or(1),
        attempts_max: retry.attempts_max,
        backoff_ms: retry.backoff_ms,
        n_attempts: row.get(5)?,
        n_failures: row.get(6)?,
        n_losses: row.get(7)?,
        n_refusals: row.get(8)?,
        created_ms: row.get(9)?,
        finished_ms: row.get(10)?,
        n_evictions: row.get(12)?,
        priority: row.get(13)?,
        ..Job::default()
    })
}

/// The fields of the store's documents that are checked.
#[derive(Default, Deserialize)]
struct Document {
    dedupe_key: Option<String>,
    slots: Option<u32>,
    retry: Option<Retry>,
}

#[derive(Deserialize)]
struct Retry {
    attempts_max: u32,
    backoff_ms: i64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts_max: ATTEMPTS_MAX, backoff_ms: 0 }
    }
}

fn attempt(row: &Row<'_>) -> SqlResult<Attempt> {
    Ok(Attempt {
        job: number(row, 0)?,
        number: row.get(1)?,
        worker: row.get(2)?,
        claimed_ms: row.get(3)?,
        ended_ms: row.get(4)?,
        heard_ms: row.get(4)?,
        ending: row.get(5)?,
        error: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
    })
}

fn key(row: &Row<'_>) -> SqlResult<Key> {
    let ids: Value = serde_json::from_str(&row.get::<_, String>(2)?).unwrap_or_default();
    let ids = ids.as_array().map(|ids| ids.iter().filter_map(Value::as_u64).collect());
    Ok(Key { tenant: row.get(0)?, key: row.get(1)?, ids: ids.unwrap_or_default() })
}

fn number(row: &Row<'_>, column: usize) -> SqlResult<u64> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

/// Records of processes: `start 17 2 w1 12345.67`. `at_ms` parses the times.
pub fn read_marks(path: &Path, at_ms: impl Fn(&str) -> Option<i64>) -> Result<Vec<Mark>, Error> {
    lines(path, |line| {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, job, attempt, worker, at] = words[..] else { return None };
        Some(Mark {
            what: what.to_owned(),
            job: job.parse().ok()?,
            attempt: attempt.parse().ok()?,
            worker: worker.to_owned(),
            at_ms: at_ms(at)?,
        })
    })
}
