//! Releases or cancels the dependents of a job that became final.

use std::collections::{BTreeMap, VecDeque};

use model::{Cause, IfFailed, Record, State};

use super::desk::Sheet;
use super::draft::{Draft, Hold};
use super::fault::Fault;
use crate::transition;

/// Other jobs that changed when a job became final, each list by id.
#[derive(Default)]
pub(super) struct Settled {
    /// Queued now.
    pub(super) released: Vec<Record>,
    /// Cancelled with it.
    pub(super) cancelled: Vec<Record>,
    /// Unfinished, with fewer blockers or dependents.
    pub(super) changed: Vec<Record>,
}

/// Whether a job has blockers, and dependents.
#[derive(Clone, Copy)]
pub(super) struct Edges {
    has_blockers: bool,
    has_waiters: bool,
}

impl Edges {
    /// The edges of a record before it is final.
    pub(super) const fn of(record: &Record) -> Self {
        Self { has_blockers: record.n_blockers > 0, has_waiters: record.n_dependents > 0 }
    }
}

/// Settles the dependents of a job whose record is final.
pub(super) async fn settle(
    sheet: &Sheet<'_>,
    draft: &mut Draft,
    (id, edges): (i64, Edges),
) -> Result<Settled, Fault> {
    let mut cascade = Cascade::default();
    cascade.remove(sheet, draft, (id, edges)).await?;
    while let Some((state, waiters)) = cascade.open.pop_front() {
        draft.load(sheet, &waiters, Hold::Lock).await?;
        for waiter in waiters {
            cascade.settle(sheet, draft, (waiter, state)).await?;
        }
    }
    let records = |map: BTreeMap<i64, Record>| map.into_values().collect();
    Ok(Settled {
        released: records(cascade.released),
        cancelled: records(cascade.cancelled),
        changed: records(cascade.changed),
    })
}

#[derive(Default)]
struct Cascade {
    /// Final states, and the dependents of each.
    open: VecDeque<(State, Vec<i64>)>,
    released: BTreeMap<i64, Record>,
    cancelled: BTreeMap<i64, Record>,
    changed: BTreeMap<i64, Record>,
}

const TAKE_WAITERS: &str = "DELETE FROM waits WHERE blocker = $1 RETURNING waiter";
const TAKE_BLOCKERS: &str = "DELETE FROM waits WHERE waiter = $1 RETURNING blocker";

impl Cascade {
    /// A blocker of `waiter` came to `state`.
    async fn settle(
        &mut self,
        sheet: &Sheet<'_>,
        draft: &mut Draft,
        (waiter, state): (i64, State),
    ) -> Result<(), Fault> {
        // It may have been cancelled through a different blocker.
        let record = draft.get_mut(waiter).filter(|record| !record.state.is_terminal());
        let Some(record) = record else { return Ok(()) };
        let edges = Edges::of(record);
        self.changed.remove(&waiter);
        if state != State::Succeeded && record.spec.if_failed == IfFailed::Cancel {
            transition::finish(record, State::Cancelled, Some(Cause::Dependency), sheet.now);
            self.cancelled.insert(waiter, record.clone());
            return self.remove(sheet, draft, (waiter, edges)).await;
        }
        let is_released = transition::unblock(record, sheet.now);
        let list = if is_released { &mut self.released } else { &mut self.changed };
        list.insert(waiter, record.clone());
        Ok(())
    }

    /// Removes the edges of a job whose record is final.
    async fn remove(
        &mut self,
        sheet: &Sheet<'_>,
        draft: &mut Draft,
        (id, edges): (i64, Edges),
    ) -> Result<(), Fault> {
        self.changed.remove(&id);
        if edges.has_waiters {
            let waiters = take(sheet, TAKE_WAITERS, id).await?;
            let state = draft.get(id).map_or(State::Cancelled, |record| record.state);
            self.open.push_back((state, waiters));
        }
        if !edges.has_blockers {
            return Ok(());
        }
        let blockers = take(sheet, TAKE_BLOCKERS, id).await?;
        draft.load(sheet, &blockers, Hold::Lock).await?;
        for blocker in blockers {
            let record = draft.get_mut(blocker).filter(|record| !record.state.is_terminal());
            let Some(record) = record else { continue };
            transition::remove_dependent(record);
            // A job that was released meanwhile is listed once, in its last state.
            let is_released = self.released.contains_key(&blocker);
            let list = if is_released { &mut self.released } else { &mut self.changed };
            list.insert(blocker, record.clone());
        }
        Ok(())
    }
}

/// Removes edges, and returns their other ends.
async fn take(sheet: &Sheet<'_>, sql: &str, id: i64) -> Result<Vec<i64>, Fault> {
    let statement = sheet.transaction.prepare_cached(sql).await?;
    let rows = sheet.transaction.query(&statement, &[&id]).await?;
    let mut numbers: Vec<i64> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    numbers.sort_unstable();
    Ok(numbers)
}
