//! Workers join, send heartbeats and leave. The reaper finds the attempts of those that stop.

use model::{Millis, Record, Timestamp, WorkerId};
use rusqlite::{Connection, OptionalExtension as _, Result, params};

use super::row::{self, jobs_columns};
use super::writer::Desk;
use crate::Session;

/// A generation above all before it, those of deleted workers included.
const JOIN: &str = "INSERT INTO sessions (worker, generation, lease_until, has_left) \
    VALUES (?1, (SELECT generations + 1 FROM meta), ?2, 0) \
    ON CONFLICT DO UPDATE SET generation = generation + 1, lease_until = ?2, has_left = 0 \
    RETURNING generation";

pub(super) fn join(desk: &mut Desk, worker: WorkerId, lease: Millis) -> Result<Session> {
    let lease_until = desk.now() + lease;
    let values = params![worker.to_string(), lease_until.0];
    let mut statement = desk.connection.prepare_cached(JOIN)?;
    let generation: i64 = statement.query_row(values, |row| row.get(0))?;
    Ok(Session { worker, generation: generation.unsigned_abs() })
}

const RENEW: &str = "UPDATE sessions SET lease_until = ?3 \
    WHERE worker = ?1 AND generation = ?2 AND has_left = 0";

pub(super) fn renew(desk: &mut Desk, sessions: &[Session], lease: Millis) -> Result<Vec<bool>> {
    let lease_until = desk.now() + lease;
    let mut statement = desk.connection.prepare_cached(RENEW)?;
    let renew = |session: &Session| {
        let generation = row::count(session.generation);
        let values = params![session.worker.to_string(), generation, lease_until.0];
        Ok(statement.execute(values)? == 1)
    };
    sessions.iter().map(renew).collect()
}

/// Workers that left get no lease.
const RENEW_ALL: &str = "UPDATE sessions SET lease_until = ?1 WHERE has_left = 0 \
    AND EXISTS (SELECT 1 FROM jobs WHERE jobs.worker = sessions.worker)";

pub(super) fn renew_all(desk: &mut Desk, lease: Millis) -> Result<()> {
    let lease_until = desk.now() + lease;
    desk.connection.prepare_cached(RENEW_ALL)?.execute([lease_until.0])?;
    Ok(())
}

const LEAVE: &str = "UPDATE sessions SET lease_until = ?3, has_left = 1 \
    WHERE worker = ?1 AND generation = ?2 AND has_left = 0";

pub(super) fn leave(desk: &mut Desk, session: &Session) -> Result<bool> {
    let now = desk.now();
    let generation = row::count(session.generation);
    let values = params![session.worker.to_string(), generation, now.0];
    Ok(desk.connection.prepare_cached(LEAVE)?.execute(values)? == 1)
}

const IS_SILENT: &str = "SELECT lease_until <= ?2 FROM sessions WHERE worker = ?1";

/// Whether a worker's lease is over.
pub(super) fn is_silent(
    connection: &Connection,
    worker: &WorkerId,
    now: Timestamp,
) -> Result<bool> {
    let mut statement = connection.prepare_cached(IS_SILENT)?;
    let is_silent = statement.query_row(params![worker.to_string(), now.0], |row| row.get(0));
    Ok(is_silent.optional()?.unwrap_or(true))
}

const CLOSE: &str = "UPDATE sessions SET has_left = 1 WHERE worker = ?1";

/// Ends a worker's session with its lease.
pub(super) fn close(connection: &Connection, worker: &WorkerId) -> Result<()> {
    connection.prepare_cached(CLOSE)?.execute([worker.to_string()])?;
    Ok(())
}

/// A cross join forces the order: few leases have run out, and each worker has few jobs.
const EXPIRED: &str = concat!(
    "SELECT ",
    jobs_columns!(),
    "WHERE j.id IN (SELECT jobs.id FROM sessions CROSS JOIN jobs \
     ON jobs.worker = sessions.worker WHERE sessions.lease_until <= ?1) ORDER BY j.id LIMIT ?2"
);

pub(super) fn expired(connection: &Connection, now: Timestamp, max: usize) -> Result<Vec<Record>> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(EXPIRED)?;
    let rows = statement.query_map([now.0, max], row::read)?;
    rows.collect()
}
