//! Moves a final job to the finished ones, and releases or cancels its dependents.

use std::collections::{BTreeMap, VecDeque};

use model::{Cause, IfFailed, JobId, Record, State, TenantId, Timestamp};
use rusqlite::{CachedStatement, Connection, Result, params};

use super::fault::unreadable;
use super::{notice, row};
use crate::{Past, number, transition};

/// Other jobs that changed when a job became final, each list by id.
#[derive(Default)]
pub(super) struct Settled {
    /// Queued now.
    pub(super) released: Vec<Record>,
    /// Cancelled with it.
    pub(super) cancelled: Vec<Record>,
    /// Unfinished, with fewer blockers or dependents.
    pub(super) changed: Vec<Record>,
    /// The tenants of all jobs that became final, one entry for each job.
    pub(super) finished: Vec<TenantId>,
}

/// A record before it is final: its fence, and whether its job has blockers and dependents.
#[derive(Clone, Copy)]
pub(super) struct Before {
    pub(super) fence: u64,
    has_blockers: bool,
    has_waiters: bool,
}

impl Before {
    pub(super) const fn of(record: &Record) -> Self {
        Self {
            fence: record.fence,
            has_blockers: record.n_blockers > 0,
            has_waiters: record.n_dependents > 0,
        }
    }
}

/// Moves jobs with final records to the finished ones. The shared statements are prepared once.
pub(super) struct Finish<'c> {
    connection: &'c Connection,
    now: Timestamp,
    delete: CachedStatement<'c>,
    insert: CachedStatement<'c>,
}

impl<'c> Finish<'c> {
    pub(super) fn begin(connection: &'c Connection, now: Timestamp) -> Result<Self> {
        let delete = connection.prepare_cached("DELETE FROM jobs WHERE id = ?1 AND fence = ?2")?;
        let insert = connection.prepare_cached(row::INSERT_FINISHED)?;
        Ok(Self { connection, now, delete, insert })
    }

    /// Moves one of them, with its last attempt if that is plain, and settles its dependents.
    /// `None`: the row has a different fence, and nothing is changed.
    pub(super) fn finish(
        &mut self,
        record: &Record,
        before: Before,
        plain: Option<&Past>,
    ) -> Result<Option<Settled>> {
        let mut cascade = Cascade::default();
        if !cascade.remove(self, (record, plain), before)? {
            return Ok(None);
        }
        while let Some((state, waiters)) = cascade.open.pop_front() {
            for waiter in waiters {
                cascade.settle(self, waiter, state)?;
            }
        }
        let records = |map: BTreeMap<i64, Record>| map.into_values().collect();
        Ok(Some(Settled {
            released: records(cascade.released),
            cancelled: records(cascade.cancelled),
            changed: records(cascade.changed),
            finished: cascade.finished,
        }))
    }

    /// Deletes a job that leaves nothing behind and has no dependents. `None`: as above.
    pub(super) fn forget(&mut self, record: &Record, before: Before) -> Result<Option<Settled>> {
        let id = number::of(&record.id).ok_or_else(|| unreadable("the id of a job"))?;
        if self.delete.execute(params![id, before.fence.cast_signed()])? == 0 {
            return Ok(None);
        }
        self.connection.prepare_cached("DELETE FROM specs WHERE id = ?1")?.execute([id])?;
        let finished = vec![record.spec.tenant.clone()];
        Ok(Some(Settled { finished, ..Settled::default() }))
    }
}

#[derive(Default)]
struct Cascade {
    /// Final states, and the dependents of each.
    open: VecDeque<(State, Vec<i64>)>,
    released: BTreeMap<i64, Record>,
    cancelled: BTreeMap<i64, Record>,
    changed: BTreeMap<i64, Record>,
    finished: Vec<TenantId>,
}

impl Cascade {
    /// A blocker of `waiter` came to `state`.
    fn settle(&mut self, to: &mut Finish<'_>, waiter: i64, state: State) -> Result<()> {
        // It may have been cancelled through a different blocker.
        let Some(mut record) = row::job(to.connection, waiter)? else {
            return Ok(());
        };
        let now = to.now;
        let before = Before::of(&record);
        self.changed.remove(&waiter);
        if state != State::Succeeded && record.spec.if_failed == IfFailed::Cancel {
            transition::finish(&mut record, State::Cancelled, Some(Cause::Dependency), now);
            row::one(usize::from(self.remove(to, (&record, None), before)?))?;
            self.cancelled.insert(waiter, record);
            return Ok(());
        }
        let is_released = transition::unblock(&mut record, now);
        row::update(to.connection, before.fence, &record)?;
        let list = if is_released { &mut self.released } else { &mut self.changed };
        list.insert(waiter, record);
        Ok(())
    }

    /// Removes a final job from the unfinished ones, with every edge.
    fn remove(
        &mut self,
        to: &mut Finish<'_>,
        (record, plain): (&Record, Option<&Past>),
        before: Before,
    ) -> Result<bool> {
        let id = number::of(&record.id).ok_or_else(|| unreadable("the id of a job"))?;
        if to.delete.execute(params![id, before.fence.cast_signed()])? == 0 {
            return Ok(false);
        }
        self.changed.remove(&id);
        let take = |is_any: bool, sql: &str| {
            if is_any { take(to.connection, sql, id) } else { Ok(Vec::new()) }
        };
        let waiters = take(before.has_waiters, TAKE_WAITERS)?;
        for blocker in take(before.has_blockers, TAKE_BLOCKERS)? {
            if let Some(mut record) = row::job(to.connection, blocker)? {
                let fence = record.fence;
                transition::remove_dependent(&mut record);
                row::update(to.connection, fence, &record)?;
                // A job that was released meanwhile is listed once, in its last state.
                let is_released = self.released.contains_key(&blocker);
                let list = if is_released { &mut self.released } else { &mut self.changed };
                list.insert(blocker, record);
            }
        }
        row::insert_finished(&mut to.insert, (id, record), plain)?;
        notice::note(to.connection, id, record)?;
        self.finished.push(record.spec.tenant.clone());
        if !waiters.is_empty() {
            self.open.push_back((record.state, waiters));
        }
        Ok(true)
    }
}

const TAKE_WAITERS: &str = "DELETE FROM waits WHERE blocker = ?1 RETURNING waiter";
const TAKE_BLOCKERS: &str = "DELETE FROM waits WHERE waiter = ?1 RETURNING blocker";

/// Removes edges, and returns their other ends.
fn take(connection: &Connection, sql: &str, id: i64) -> Result<Vec<i64>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut numbers: Vec<i64> =
        statement.query_map([id], |row| row.get(0))?.collect::<Result<_>>()?;
    numbers.sort_unstable();
    Ok(numbers)
}

/// The unfinished job of this id.
pub(super) fn unfinished(connection: &Connection, id: &JobId) -> Result<Option<Record>> {
    let Some(number) = number::of(id) else {
        return Ok(None);
    };
    row::job(connection, number)
}
