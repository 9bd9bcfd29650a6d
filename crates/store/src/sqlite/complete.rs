//! Attempts end: the attempt goes to the past, and its job waits again or is done with.

use model::{Ending, Fixed, Record, WorkerId};
use rusqlite::{Connection, OptionalExtension as _, Result, params};

use super::row;
use super::writer::Desk;
use super::{history, settle};
use crate::transition::After;
use crate::{End, Ended, Past, number, transition};

pub(super) fn complete(desk: &mut Desk, ends: &[End]) -> Result<Vec<Ended>> {
    ends.iter().map(|end| one(desk, end)).collect()
}

fn one(desk: &mut Desk, end: &End) -> Result<Ended> {
    let Some(id) = number::of(&end.job) else {
        return Ok(Ended::Stale);
    };
    match row::job(&desk.connection, id)? {
        Some(record) if transition::is_current(&record, end.attempt, &end.worker) => {
            accept(desk, id, record, end)
        }
        Some(_) | None => ended_before(&desk.connection, id, end),
    }
}

fn accept(desk: &mut Desk, id: i64, mut record: Record, end: &End) -> Result<Ended> {
    let now = desk.now();
    let (fence, edges) = (record.fence, settle::Edges::of(&record));
    let patience = desk.options.patience;
    let Some(after) = transition::end(&mut record, end, &patience, now) else {
        return Ok(Ended::Stale);
    };
    insert_past(&desk.connection, id, &after.past)?;
    let has_succeeded = end.ending == Ending::Succeeded;
    if after.charged != Fixed::ZERO || has_succeeded {
        let tenant = &record.spec.tenant;
        let n_completed = i64::from(has_succeeded);
        history::charge(&desk.connection, tenant, (after.charged, n_completed), now)?;
    }
    if let Some(run) = &after.run {
        history::insert_run(&desk.connection, run)?;
    }
    let settled = if record.state.is_terminal() {
        settle::finish(desk, &record, edges)?
    } else {
        requeue(&desk.connection, (id, fence), &record)?;
        settle::Settled::default()
    };
    let settle::Settled { released, cancelled, changed } = settled;
    let record = Box::new(record);
    let After { charged, run, .. } = after;
    Ok(Ended::Accepted { record, charged, run, released, cancelled, changed })
}

const ENDING: &str = "SELECT worker, ending FROM attempts WHERE job = ?1 AND number = ?2";

fn ended_before(connection: &Connection, id: i64, end: &End) -> Result<Ended> {
    let mut statement = connection.prepare_cached(ENDING)?;
    let past = statement.query_row(params![id, end.attempt], |row| {
        Ok((WorkerId::new(row.get_ref(0)?.as_str()?), row::named(row, 1, Ending::named)?))
    });
    Ok(match past.optional()? {
        Some((worker, Some(ending))) if worker == end.worker && ending == end.ending => {
            Ended::Repeated
        }
        Some(_) | None => Ended::Stale,
    })
}

const INSERT_PAST: &str = "INSERT INTO attempts (job, number, worker, claimed, started, ended, \
    ending, error, exit_code, ram_peak_mb, cpu_ms, disk_bytes, out_of_memory, why) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";

fn insert_past(connection: &Connection, id: i64, past: &Past) -> Result<()> {
    connection.prepare_cached(INSERT_PAST)?.execute(params![
        id,
        past.number,
        past.worker.to_string(),
        past.claimed.0,
        past.started.map(|moment| moment.0),
        past.ended.0,
        past.ending.name(),
        past.error,
        past.exit_code,
        past.measured.ram_peak_mb.map(row::count),
        past.measured.cpu_ms.map(row::count),
        past.measured.disk_bytes.map(row::count),
        past.measured.out_of_memory,
        past.why,
    ])?;
    Ok(())
}

const REQUEUE: &str = "UPDATE jobs SET state = ?3, fence = ?4, failures = ?5, losses = ?6, \
    evictions = ?7, refusals = ?8, backoff_until = ?9, last_worker = ?10, error = ?11, \
    exit_code = ?12, cost = ?13, worker = NULL, claimed = NULL, started = NULL, holds = NULL, \
    fraction = NULL, note = NULL, why = NULL, pool = NULL WHERE id = ?1 AND fence = ?2";

fn requeue(connection: &Connection, (id, fence): (i64, u64), record: &Record) -> Result<()> {
    let counts = &record.counts;
    row::one(connection.prepare_cached(REQUEUE)?.execute(params![
        id,
        fence.cast_signed(),
        record.state.name(),
        record.fence.cast_signed(),
        counts.failures,
        counts.losses,
        counts.evictions,
        counts.refusals,
        record.backoff_until.map(|moment| moment.0),
        record.last_worker.as_ref().map(WorkerId::to_string),
        record.error,
        record.exit_code,
        record.cost.map(Fixed::in_thousandths),
    ])?)
}
