//! Queries of single jobs and of past attempts.

use std::collections::HashMap;

use model::{Ending, JobId, Measured, Record, Timestamp, WorkerId};
use tokio_postgres::Row;

use super::desk::Desk;
use super::fault::{Fault, unreadable};
use super::row::{self, finished_columns, finished_these, jobs_columns};
use crate::{Past, number};

pub(super) async fn job(desk: &Desk, id: &JobId) -> Result<Option<Record>, Fault> {
    Ok(these(desk, std::slice::from_ref(id)).await?.pop())
}

/// In one snapshot, a job is in exactly one of the two tables.
pub(super) const THESE: &str = concat!(
    "SELECT ",
    jobs_columns!(),
    " FROM jobs j WHERE j.id = ANY($1) UNION ALL SELECT ",
    finished_columns!(),
    " FROM ",
    finished_these!()
);

pub(super) async fn these(desk: &Desk, ids: &[JobId]) -> Result<Vec<Record>, Fault> {
    let numbers: Vec<i64> = ids.iter().filter_map(number::of).collect();
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(THESE).await?;
    row::read_all(&connection.query(&statement, &[&numbers]).await?)
}

/// Attempts with a row of their own, and attempts in the row of their job.
pub(super) const ATTEMPTS: &str = concat!(
    "SELECT number, worker, claimed, started, ended, ending, error, exit_code, why, ram_peak_mb, \
     cpu_ms, disk_bytes, out_of_memory, job FROM attempts WHERE job = ANY($1) UNION ALL \
     SELECT j.attempts, j.last_worker, j.claimed, j.started, j.finished, 'succeeded', NULL, \
     j.exit_code, j.why, NULL, NULL, NULL, false, j.id FROM ",
    finished_these!(),
    " WHERE j.claimed IS NOT NULL ORDER BY job, number"
);

pub(super) async fn attempts(desk: &Desk, jobs: &[JobId]) -> Result<Vec<Vec<Past>>, Fault> {
    let numbers: Vec<i64> = jobs.iter().filter_map(number::of).collect();
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(ATTEMPTS).await?;
    let mut pasts: HashMap<i64, Vec<Past>> = HashMap::with_capacity(numbers.len());
    for row in connection.query(&statement, &[&numbers]).await? {
        pasts.entry(row.try_get(13)?).or_default().push(past(&row)?);
    }
    let of = |job| number::of(job).and_then(|number| pasts.get(&number).cloned());
    Ok(jobs.iter().map(|job| of(job).unwrap_or_default()).collect())
}

fn past(row: &Row) -> Result<Past, Fault> {
    Ok(Past {
        number: row::small(row, 0)?,
        worker: WorkerId::new(row.try_get(1)?),
        claimed: Timestamp(row.try_get(2)?),
        started: row::moment(row, 3)?,
        ended: Timestamp(row.try_get(4)?),
        ending: ending(row, 5)?,
        error: row.try_get(6)?,
        exit_code: row.try_get(7)?,
        why: row.try_get(8)?,
        measured: measured(row, 9)?,
    })
}

pub(super) fn ending(row: &Row, column: usize) -> Result<Ending, Fault> {
    row::named(row, column, Ending::named)?.ok_or_else(|| unreadable("an ending"))
}

/// The measured usage, in four columns from `column` on.
pub(super) fn measured(row: &Row, column: usize) -> Result<Measured, Fault> {
    let count = |place: usize| {
        let read = row.try_get::<_, Option<i64>>(column + place);
        read.map(|read| read.map(number::size))
    };
    Ok(Measured {
        ram_peak_mb: count(0)?,
        cpu_ms: count(1)?,
        disk_bytes: count(2)?,
        out_of_memory: row.try_get(column + 3)?,
    })
}
