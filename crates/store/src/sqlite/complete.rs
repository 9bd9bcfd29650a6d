//! Ends of attempts: the attempt is stored, and its job is queued again or final.

use std::sync::Arc;

use model::{Ending, Fixed, Patience, Record, TenantId, Timestamp, WorkerId};
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Result, params};

use super::history;
use super::lease;
use super::row;
use super::settle::{Before, Finish, Settled};
use super::writer::Desk;
use crate::recent::Recent;
use crate::sums::{Sums, charge, newest};
use crate::transition::After;
use crate::{End, Ended, Past, Provided, number, transition};

pub(super) fn complete(desk: &mut Desk, ends: &[End]) -> Result<Vec<Ended>> {
    let now = desk.now();
    let (mut sums, mut finished) = (Sums::new(), Vec::new());
    let mut stage = Stage {
        connection: &desk.connection,
        recent: &mut desk.recent,
        patience: desk.options.patience,
        now,
        finder: row::finder(&desk.connection)?,
        insert_past: desk.connection.prepare_cached(INSERT_PAST)?,
        finish: Finish::begin(&desk.connection, now)?,
    };
    let mut answers = Vec::with_capacity(ends.len());
    for end in ends {
        let answer = stage.one(end, &mut finished)?;
        charge(&mut sums, end, &answer);
        answers.push(answer);
    }
    drop(stage);
    for (tenant, sum) in sums {
        history::charge(&desk.connection, &tenant, sum, now)?;
    }
    for (_, run) in newest(&answers, desk.options.runs_max) {
        history::insert_run(&desk.connection, run)?;
    }
    for tenant in &finished {
        desk.room.remove(tenant);
    }
    Ok(answers)
}

/// The parts that all ends share, prepared once.
struct Stage<'c> {
    connection: &'c Connection,
    recent: &'c mut Recent<()>,
    patience: Patience,
    now: Timestamp,
    finder: CachedStatement<'c>,
    insert_past: CachedStatement<'c>,
    finish: Finish<'c>,
}

impl Stage<'_> {
    /// Ends one attempt. If its job is final, its tenant is added to `finished`.
    fn one(&mut self, end: &End, finished: &mut Vec<TenantId>) -> Result<Ended> {
        let Some(id) = number::of(&end.job) else {
            return Ok(Ended::Stale);
        };
        let is_current = |record: &Record| transition::is_current(record, end.attempt, &end.worker);
        if let Some((record, ())) = self.recent.take(id).filter(|(record, ())| is_current(record))
            && let Some(answer) = self.accept((id, record), end, finished)?
        {
            return Ok(answer);
        }
        match row::found(&mut self.finder, id)?.filter(is_current) {
            Some(record) => {
                let answer = self.accept((id, Arc::new(record)), end, finished)?;
                answer.ok_or(rusqlite::Error::StatementChangedRows(0))
            }
            None => ended_before(self.connection, id, end),
        }
    }

    /// `None`: the row has a different fence, and nothing is changed.
    fn accept(
        &mut self,
        (id, mut record): (i64, Arc<Record>),
        end: &End,
        all_finished: &mut Vec<TenantId>,
    ) -> Result<Option<Ended>> {
        if end.provided == Provided::Silence
            && !lease::is_silent(self.connection, &end.worker, self.now)?
        {
            return Ok(Some(Ended::Stale));
        }
        let before = Before::of(&record);
        let is_forgotten = transition::is_forgotten(&record, end) && !self.has_more(id)?;
        let Some(after) =
            transition::end(Arc::make_mut(&mut record), end, &self.patience, self.now)
        else {
            return Ok(Some(Ended::Stale));
        };
        let plain = Some(&after.past).filter(|past| past.is_plain(&record));
        let settled = if is_forgotten {
            self.finish.forget(&record, before)?
        } else if record.state.is_terminal() {
            self.finish.finish(&record, before, plain)?
        } else {
            requeue(self.connection, (id, before.fence), &record)?.then(Settled::default)
        };
        let Some(settled) = settled else { return Ok(None) };
        if end.provided == Provided::Silence {
            lease::close(self.connection, &end.worker)?;
        }
        if plain.is_none() && !is_forgotten {
            insert_past(&mut self.insert_past, id, &after.past)?;
        }
        let Settled { released, cancelled, changed, finished } = settled;
        all_finished.extend(finished);
        let After { charged, run, .. } = after;
        Ok(Some(Ended::Accepted { record, charged, run, released, cancelled, changed }))
    }

    /// Whether a job has further data.
    fn has_more(&self, id: i64) -> Result<bool> {
        self.connection.prepare_cached(HAS_MORE)?.query_row([id], |row| row.get(0))
    }
}

const HAS_MORE: &str = "SELECT EXISTS (SELECT 1 FROM keyed WHERE job = ?1) \
    OR EXISTS (SELECT 1 FROM logs WHERE job = ?1)";

const ENDING: &str = "SELECT worker, ending FROM pasts WHERE job = ?1 AND number = ?2";

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

fn insert_past(statement: &mut CachedStatement<'_>, id: i64, past: &Past) -> Result<()> {
    statement.execute(params![
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
    fraction = NULL, note = NULL, stage = NULL, why = NULL, pool = NULL \
    WHERE id = ?1 AND fence = ?2";

fn requeue(connection: &Connection, (id, fence): (i64, u64), record: &Record) -> Result<bool> {
    let counts = &record.counts;
    let n_rows = connection.prepare_cached(REQUEUE)?.execute(params![
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
    ])?;
    Ok(n_rows == 1)
}
