//! A job is done with: it leaves the unfinished ones, and those that waited for it go on or follow.

use std::collections::{BTreeMap, VecDeque};

use model::{Cause, IfFailed, JobId, Record, State, TenantId, Timestamp};
use rusqlite::{CachedStatement, Connection, Result, params};

use super::fault::unreadable;
use super::{notice, row};
use crate::{Past, number, transition};

/// What else changed when a job came to its end, each list by id.
#[derive(Default)]
pub(super) struct Settled {
    /// Queued now.
    pub(super) released: Vec<Record>,
    /// Cancelled with it.
    pub(super) cancelled: Vec<Record>,
    /// Unfinished, with fewer blockers or dependents.
    pub(super) changed: Vec<Record>,
    /// The tenants of all that is final now, one entry a job: they have one job fewer.
    pub(super) finished: Vec<TenantId>,
}

/// What a record said before it was final: its fence, and whether its job waited for others and
/// others for it.
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

/// Moves jobs whose records are final to the finished ones. What every job needs is prepared once.
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

    /// Moves one of them, with its last attempt if that is plain, and settles what waited for it.
    /// `None`: its row is not as the record was before, and nothing was done.
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

    /// Takes away one that nothing is kept of, and that nobody waits for. `None`: as above.
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
    /// Final states, and who waited for them.
    open: VecDeque<(State, Vec<i64>)>,
    released: BTreeMap<i64, Record>,
    cancelled: BTreeMap<i64, Record>,
    changed: BTreeMap<i64, Record>,
    finished: Vec<TenantId>,
}

impl Cascade {
    /// One of the jobs that `waiter` waited for came to `state`.
    fn settle(&mut self, to: &mut Finish<'_>, waiter: i64, state: State) -> Result<()> {
        // It may have been cancelled on another way through the same jobs.
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

    /// Takes a job whose record is final out of the unfinished ones, with every edge.
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
                // One that was released on the way is told once, as it is in the end.
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

/// Removes edges, and says where they led.
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
