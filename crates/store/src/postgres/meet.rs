//! The list of live schedulers, and the reports that they exchange.

use model::{JobId, Record, Timestamp, WorkerId};
use tokio_postgres::types::ToSql;

use super::desk::Desk;
use super::fault::Fault;
use super::grants::theirs;
use super::row::{self, jobs_columns};
use crate::{Meeting, Peer, number};

/// A scheduler that did not report for this time is gone.
const GONE_AFTER_MS: i64 = 5_000;

/// The time is the database's, so that a wrong clock of a scheduler does not make it look gone.
const SAY: &str = "INSERT INTO schedulers (id, said, at) VALUES ($1, $2, \
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint) \
    ON CONFLICT (id) DO UPDATE SET said = excluded.said, at = excluded.at RETURNING at";
const HEAR: &str = "SELECT id, said, at FROM schedulers WHERE at > $1 ORDER BY id";
const FORGET: &str = "DELETE FROM schedulers WHERE at < $1";

pub(super) async fn meet(desk: &Desk, id: i64, said: &str) -> Result<Meeting, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(SAY).await?;
    let now_ms: i64 = connection.query_one(&statement, &[&id, &said]).await?.try_get(0)?;
    let statement = connection.prepare_cached(HEAR).await?;
    let rows = connection.query(&statement, &[&(now_ms - GONE_AFTER_MS)]).await?;
    let mut meeting = Meeting { place: 0, all: Vec::with_capacity(rows.len()) };
    for (place, row) in rows.iter().enumerate() {
        if row.try_get::<_, i64>(0)? == id {
            meeting.place = place;
        }
        meeting.all.push(Peer { said: row.try_get(1)?, at: Timestamp(row.try_get(2)?) });
    }
    let statement = connection.prepare_cached(FORGET).await?;
    connection.execute(&statement, &[&(now_ms - 100 * GONE_AFTER_MS)]).await?;
    Ok(meeting)
}

pub(super) const HELD: &str = concat!(
    "SELECT ",
    jobs_columns!(),
    " FROM (SELECT DISTINCT g.worker, n.id FROM grants g \
     CROSS JOIN LATERAL unnest(g.jobs) AS n(id) WHERE g.worker = $1) u CROSS JOIN LATERAL ",
    theirs!(),
    " ORDER BY j.id"
);

pub(super) async fn held(desk: &Desk, worker: &WorkerId) -> Result<Vec<Record>, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(HELD).await?;
    row::read_all(&connection.query(&statement, &[&worker.to_string()]).await?)
}

pub(super) const UNSTARTED: &str = concat!(
    "SELECT ",
    jobs_columns!(),
    " FROM (SELECT DISTINCT g.worker, n.id FROM grants g \
     CROSS JOIN LATERAL unnest(g.jobs) AS n(id) WHERE g.at <= $1) u CROSS JOIN LATERAL ",
    theirs!(),
    " WHERE j.state = 'claimed' AND j.claimed <= $1 ORDER BY j.id LIMIT $2"
);

pub(super) async fn unstarted(
    desk: &Desk,
    before: Timestamp,
    max: usize,
) -> Result<Vec<Record>, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(UNSTARTED).await?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    row::read_all(&connection.query(&statement, &[&before.0, &max]).await?)
}

pub(super) const CALLED_OFF: &str = "SELECT id FROM jobs WHERE cancelling AND worker = ANY($1)";

pub(super) async fn called_off(desk: &Desk, workers: &[WorkerId]) -> Result<Vec<JobId>, Fault> {
    let workers: Vec<String> = workers.iter().map(WorkerId::to_string).collect();
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(CALLED_OFF).await?;
    let values: [&(dyn ToSql + Sync); 1] = [&workers];
    let rows = connection.query(&statement, &values).await?;
    rows.iter().map(|row| Ok(number::id(row.try_get(0)?))).collect()
}
