//! Workers join, send heartbeats and leave. The reaper finds the attempts of those that stop.
//!
//! **Invariant:** the database compares leases with its own clock. No scheduler's clock can end a
//! lease.

use std::collections::{BTreeSet, HashSet};

use model::{Millis, Record, WorkerId};
use tokio_postgres::types::ToSql;

use super::desk::{Desk, Sheet};
use super::fault::Fault;
use super::grants::theirs;
use super::row::{self, jobs_columns};
use crate::{Session, number};

/// The time: the value of a test, or the database's clock.
macro_rules! now {
    ($value:literal) => {
        concat!(
            "coalesce(",
            $value,
            "::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
        )
    };
}

/// A generation above all before it, those of deleted workers included.
const JOIN: &str = concat!(
    "INSERT INTO sessions AS s (worker, generation, lease_until, has_left) \
     VALUES ($1, (SELECT highest + 1 FROM generations), $2 + ",
    now!("$3"),
    ", false) ON CONFLICT (worker) DO UPDATE SET generation = s.generation + 1, \
     lease_until = excluded.lease_until, has_left = false RETURNING generation"
);

pub(super) async fn join(desk: &Desk, worker: &WorkerId, lease: Millis) -> Result<Session, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(JOIN).await?;
    let values: [&(dyn ToSql + Sync); 3] = [&worker.to_string(), &lease.0, &desk.told_time()];
    let row = connection.query_one(&statement, &values).await?;
    Ok(Session { worker: worker.clone(), generation: number::size(row.try_get(0)?) })
}

const RENEW: &str = concat!(
    "UPDATE sessions s SET lease_until = $3 + ",
    now!("$4"),
    " FROM unnest($1::text[], $2::bigint[]) AS u(worker, generation) \
     WHERE s.worker = u.worker AND s.generation = u.generation AND NOT s.has_left \
     RETURNING s.worker, s.generation"
);

pub(super) async fn renew(
    desk: &Desk,
    sessions: &[Session],
    lease: Millis,
) -> Result<Vec<bool>, Fault> {
    let mut sorted: Vec<(String, i64)> = sessions
        .iter()
        .map(|session| (session.worker.to_string(), number::signed(session.generation)))
        .collect();
    sorted.sort_unstable();
    sorted.dedup();
    let (workers, generations): (Vec<String>, Vec<i64>) = sorted.into_iter().unzip();
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(RENEW).await?;
    let values: [&(dyn ToSql + Sync); 4] = [&workers, &generations, &lease.0, &desk.told_time()];
    let rows = connection.query(&statement, &values).await?;
    let renewed: HashSet<(String, u64)> = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, number::size(row.try_get(1)?))))
        .collect::<Result<_, Fault>>()?;
    let is_renewed =
        |session: &Session| renewed.contains(&(session.worker.to_string(), session.generation));
    Ok(sessions.iter().map(is_renewed).collect())
}

/// Workers that left get no lease.
pub(super) const RENEW_ALL: &str = concat!(
    "UPDATE sessions s SET lease_until = $1 + ",
    now!("$2"),
    " WHERE NOT s.has_left AND EXISTS (SELECT 1 FROM grants g WHERE g.worker = s.worker)"
);

pub(super) async fn renew_all(desk: &Desk, lease: Millis) -> Result<(), Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(RENEW_ALL).await?;
    connection.execute(&statement, &[&lease.0, &desk.told_time()]).await?;
    Ok(())
}

const LEAVE: &str = concat!(
    "UPDATE sessions SET has_left = true, lease_until = ",
    now!("$3"),
    " WHERE worker = $1 AND generation = $2 AND NOT has_left"
);

pub(super) async fn leave(desk: &Desk, session: &Session) -> Result<bool, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(LEAVE).await?;
    let generation = number::signed(session.generation);
    let values: [&(dyn ToSql + Sync); 3] =
        [&session.worker.to_string(), &generation, &desk.told_time()];
    Ok(connection.execute(&statement, &values).await? == 1)
}

/// Locks in the order of names, so that no two transactions deadlock. The locks block heartbeats.
pub(super) const HEARD: &str = concat!(
    "WITH known AS MATERIALIZED (SELECT s.worker, s.lease_until > ",
    now!("$2"),
    " AS is_heard FROM sessions s WHERE s.worker = ANY($1) \
     ORDER BY s.worker COLLATE \"C\" FOR UPDATE) \
     SELECT worker FROM known WHERE is_heard"
);

/// The workers that sent a heartbeat within their lease. The locks block the others until the
/// commit.
pub(super) async fn heard(
    sheet: &Sheet<'_>,
    workers: &BTreeSet<String>,
) -> Result<HashSet<String>, Fault> {
    if workers.is_empty() {
        return Ok(HashSet::new());
    }
    let workers: Vec<&String> = workers.iter().collect();
    let statement = sheet.transaction.prepare_cached(HEARD).await?;
    let values: [&(dyn ToSql + Sync); 2] = [&workers, &sheet.desk.told_time()];
    let rows = sheet.transaction.query(&statement, &values).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

const CLOSE: &str = "UPDATE sessions SET has_left = true WHERE worker = ANY($1)";

/// Closes the sessions of these workers with their leases, so that later heartbeats are rejected.
pub(super) async fn close(sheet: &Sheet<'_>, workers: &BTreeSet<String>) -> Result<(), Fault> {
    if workers.is_empty() {
        return Ok(());
    }
    let workers: Vec<&String> = workers.iter().collect();
    let statement = sheet.transaction.prepare_cached(CLOSE).await?;
    sheet.transaction.execute(&statement, &[&workers]).await?;
    Ok(())
}

/// Few leases have run out and each worker has few jobs, so the query starts with the sessions.
pub(super) const EXPIRED: &str = concat!(
    "SELECT ",
    jobs_columns!(),
    " FROM (SELECT DISTINCT s.worker, u.id FROM sessions s JOIN grants g ON g.worker = s.worker \
     CROSS JOIN LATERAL unnest(g.jobs) AS u(id) WHERE s.lease_until <= ",
    now!("$1"),
    ") u CROSS JOIN LATERAL ",
    theirs!(),
    " ORDER BY j.id LIMIT $2"
);

pub(super) async fn expired(desk: &Desk, max: usize) -> Result<Vec<Record>, Fault> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(EXPIRED).await?;
    row::read_all(&connection.query(&statement, &[&desk.told_time(), &max]).await?)
}
