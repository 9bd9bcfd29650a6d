//! Queries of single jobs and of past attempts.

use model::{Ending, JobId, Measured, Record, Timestamp, WorkerId};
use rusqlite::{Connection, Result, Row};

use super::fault::unreadable;
use super::row;
use crate::{Past, number};

pub(super) fn job(connection: &Connection, id: &JobId) -> Result<Option<Record>> {
    match number::of(id) {
        Some(number) => row::either(connection, number),
        None => Ok(None),
    }
}

const ATTEMPTS: &str = "SELECT number, worker, claimed, started, ended, ending, error, exit_code, \
    why, ram_peak_mb, cpu_ms, disk_bytes, out_of_memory \
    FROM pasts WHERE job = ?1 ORDER BY number";

/// One statement for each job: the file is local, so one statement for all would gain nothing.
pub(super) fn attempts(connection: &Connection, jobs: &[JobId]) -> Result<Vec<Vec<Past>>> {
    let mut statement = connection.prepare_cached(ATTEMPTS)?;
    let mut attempts = |job: &JobId| match number::of(job) {
        Some(number) => statement.query_map([number], past)?.collect(),
        None => Ok(Vec::new()),
    };
    jobs.iter().map(&mut attempts).collect()
}

fn past(row: &Row<'_>) -> Result<Past> {
    Ok(Past {
        number: row.get(0)?,
        worker: WorkerId::new(row.get_ref(1)?.as_str()?),
        claimed: Timestamp(row.get(2)?),
        started: row::moment(row, 3)?,
        ended: Timestamp(row.get(4)?),
        ending: ending(row, 5)?,
        error: row.get(6)?,
        exit_code: row.get(7)?,
        why: row.get(8)?,
        measured: measured(row, 9)?,
    })
}

pub(super) fn ending(row: &Row<'_>, column: usize) -> Result<Ending> {
    row::named(row, column, Ending::named)?.ok_or_else(|| unreadable("an ending"))
}

/// The measured usage, in four columns from `column` on.
pub(super) fn measured(row: &Row<'_>, column: usize) -> Result<Measured> {
    let number = |place: usize| {
        Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column + place)?.map(i64::unsigned_abs))
    };
    Ok(Measured {
        ram_peak_mb: number(0)?,
        cpu_ms: number(1)?,
        disk_bytes: number(2)?,
        out_of_memory: row.get(column + 3)?,
    })
}
