//! Deletes data after its retention, a step at a time.

use model::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::writer::Desk;
use crate::{Old, minute};

/// Rows of usage and history that one step deletes.
const ROWS_MAX: i64 = 10_000;
/// Histories that one step reads. The next step continues after them.
const HISTORIES_MAX: usize = 1_000;

pub(super) fn forget(desk: &mut Desk, old: Old) -> Result<usize> {
    let Old { before, charged_before, counted_before, max } = old;
    let n_jobs = jobs(&desk.connection, before, max)?;
    let minute = minute::of(charged_before);
    desk.connection.prepare_cached(USAGE)?.execute([minute, ROWS_MAX])?;
    let minutes = [minute::of(counted_before), ROWS_MAX];
    desk.connection.prepare_cached(MINUTES)?.execute(minutes)?;
    desk.connection.prepare_cached(RUNS)?.execute([before.0, ROWS_MAX])?;
    desk.connection.prepare_cached(NOTES)?.execute([before.0])?;
    desk.connection.prepare_cached(NOTICES)?.execute([before.0, ROWS_MAX])?;
    trim(desk)?;
    sessions(&desk.connection, before)?;
    Ok(n_jobs)
}

/// Usage of minutes before the limit.
const USAGE: &str = "DELETE FROM usage WHERE (minute, tenant) IN \
    (SELECT minute, tenant FROM usage WHERE minute < ?1 ORDER BY minute LIMIT ?2)";

/// Counts of schedulers.
const MINUTES: &str = "DELETE FROM minutes WHERE (minute, scheduler) IN \
    (SELECT minute, scheduler FROM minutes WHERE minute < ?1 ORDER BY minute LIMIT ?2)";

/// Notices that no scheduler could deliver in all this time.
const NOTICES: &str = "DELETE FROM notices WHERE id IN \
    (SELECT id FROM notices WHERE finished < ?1 ORDER BY finished LIMIT ?2)";

/// Ids are in the order of time, so the oldest are first.
const RUNS: &str = "DELETE FROM runs \
    WHERE id IN (SELECT id FROM runs ORDER BY id LIMIT ?2) AND at < ?1";

/// A topic has few notes of each kind, so this reads few rows.
const NOTES: &str = "DELETE FROM notes WHERE ages = 1 AND at < ?1";

const OLD: &str = "SELECT id FROM finished WHERE finished < ?1 ORDER BY finished, id LIMIT ?2";

/// The key of a submission is deleted with the first of its jobs.
const FORGET: &[&str] = &[
    "DELETE FROM keys WHERE id IN (SELECT key FROM keyed WHERE job = ?1)",
    "DELETE FROM logs WHERE job = ?1",
    "DELETE FROM attempts WHERE job = ?1",
    "DELETE FROM specs WHERE id = ?1",
    "DELETE FROM finished WHERE id = ?1",
];

fn jobs(connection: &Connection, before: Timestamp, max: usize) -> Result<usize> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let mut old = connection.prepare_cached(OLD)?;
    let numbers: Vec<i64> =
        old.query_map([before.0, max], |row| row.get(0))?.collect::<Result<_>>()?;
    for number in &numbers {
        for sql in FORGET {
            connection.prepare_cached(sql)?.execute([number])?;
        }
    }
    Ok(numbers.len())
}

/// Tenant, type and key.
pub(super) type History = (String, String, String);

const NEXT_HISTORY: &str = "SELECT tenant, kind, history_key FROM runs \
    WHERE (tenant, kind, history_key) > (?1, ?2, ?3) \
    ORDER BY tenant, kind, history_key LIMIT 1";

const FIRST_HISTORY: &str = "SELECT tenant, kind, history_key FROM runs \
    ORDER BY tenant, kind, history_key LIMIT 1";

/// Deletes all but the newest runs of one history.
const TRIM: &str = "DELETE FROM runs WHERE tenant = ?1 AND kind = ?2 AND history_key = ?3 \
    AND id <= (SELECT id FROM runs WHERE tenant = ?1 AND kind = ?2 AND history_key = ?3 \
    ORDER BY id DESC LIMIT 1 OFFSET ?4)";

fn trim(desk: &mut Desk) -> Result<()> {
    let runs_max = i64::try_from(desk.options.runs_max).unwrap_or(i64::MAX);
    for _ in 0..HISTORIES_MAX {
        let next = next_history(&desk.connection, desk.trimmed.as_ref())?;
        let Some((tenant, kind, key)) = &next else {
            desk.trimmed = None;
            break;
        };
        let values = params![tenant, kind, key, runs_max];
        desk.connection.prepare_cached(TRIM)?.execute(values)?;
        desk.trimmed = next;
    }
    Ok(())
}

fn next_history(connection: &Connection, after: Option<&History>) -> Result<Option<History>> {
    let history = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    if let Some((tenant, kind, key)) = after {
        let mut statement = connection.prepare_cached(NEXT_HISTORY)?;
        return statement.query_row([tenant, kind, key], history).optional();
    }
    connection.prepare_cached(FIRST_HISTORY)?.query_row([], history).optional()
}

const OLD_SESSIONS: &str = "lease_until < ?1 \
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.worker = sessions.worker)";

/// Sessions of workers that were away for this time. If a worker returns, its generation is still
/// higher than any before.
fn sessions(connection: &Connection, before: Timestamp) -> Result<()> {
    let keep = format!(
        "UPDATE meta SET generations = max(generations, \
         (SELECT max(generation) FROM sessions WHERE {OLD_SESSIONS})) \
         WHERE EXISTS (SELECT 1 FROM sessions WHERE {OLD_SESSIONS})"
    );
    if connection.prepare_cached(&keep)?.execute([before.0])? > 0 {
        let delete = format!("DELETE FROM sessions WHERE {OLD_SESSIONS}");
        connection.prepare_cached(&delete)?.execute([before.0])?;
    }
    Ok(())
}
