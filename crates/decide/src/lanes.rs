//! Lines side by side: those of a berth that only the keys of their first jobs tell apart.
//!
//! Of the lines of a *lane*, the one whose first job has the smallest key has the next turn, unless
//! a limit forbids it or there is no room for it. So a decision looks at one line of each lane,
//! however many there are: one for each tenant where tenants do not matter, one for each resource
//! that jobs ask for by name, one for each width up to the same power of two.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use model::Timestamp;
use model::policy::{Order, Policy, Turn};

use crate::audience::Berth;
use crate::index::QuickLookup;
use crate::order::{Mode, OrderKey};
use crate::queue::LineKey;
use crate::table::{BerthIx, LaneIx, LineIx, Table, TenantIx, WorkerIx};

type Berths = Table<BerthIx, Berth>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LaneKey {
    pub(crate) berth: BerthIx,
    /// `None` where tenants do not matter.
    pub(crate) tenant: Option<TenantIx>,
    pub(crate) mode: Mode,
    pub(crate) is_known: bool,
}

impl LaneKey {
    pub(crate) fn new(line: &LineKey, berth: BerthIx, policy: &Policy) -> Self {
        let tenant = match policy.turn {
            // The starvation bound is of tenants.
            _ if policy.order == Order::Shortest => Some(line.tenant),
            Turn::FirstCome | Turn::TypeGroups => None,
            Turn::QuotaFirst | Turn::Deficit | Turn::FairQueue => Some(line.tenant),
        };
        Self { berth, tenant, mode: line.mode, is_known: line.is_known }
    }
}

/// A line, after the key of its first job.
pub(crate) type LineInOrder = (OrderKey, LineIx);

/// How far decisions have read the lines of a lane of which none that was read could start.
#[derive(Clone, Debug, Default)]
struct Reading {
    /// The last line that was read. `None` means the beginning of a lap.
    last: Option<LineInOrder>,
    /// How many events there were when this lap began.
    n_events_begun: u64,
    /// How many events there had been when the last whole lap began: until the next event, none of
    /// the lines can start.
    n_events_done: Option<u64>,
}

/// **Invariant:** the lines of a lane, by the keys of their first jobs, are in the order of their
/// ranks at every instant.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    key: LaneKey,
    /// The line with the smallest key: most decisions look no further.
    first: LineInOrder,
    others: BTreeSet<LineInOrder>,
    /// How far decisions have read the others where there are many: for all workers together, or
    /// for the one that asks.
    readings: BTreeMap<Option<WorkerIx>, Reading>,
    /// All of them by their oldest jobs, where some choices go by age.
    by_age: BTreeSet<(Timestamp, LineIx)>,
    /// Its place among the lanes of its berth.
    place: usize,
}

impl Lane {
    /// Its lines, the smallest key first.
    pub(crate) fn lines(&self) -> impl Iterator<Item = LineIx> {
        std::iter::once(self.first()).chain(self.others()).map(|(_, line)| *line)
    }

    pub(crate) const fn key(&self) -> &LaneKey {
        &self.key
    }

    /// The line with the smallest key, and that key.
    pub(crate) const fn first(&self) -> &LineInOrder {
        &self.first
    }

    /// Its lines by their oldest jobs, the oldest first.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = &(Timestamp, LineIx)> {
        self.by_age.iter()
    }

    /// The others, the smallest key first.
    pub(crate) fn others(&self) -> impl Iterator<Item = &LineInOrder> {
        self.others.iter()
    }

    /// The others after `line`, or after the last one that was read for this worker if that is
    /// later; `None` if all were read since the last of so many events.
    pub(crate) fn unread(
        &self,
        line: &LineInOrder,
        worker: Option<WorkerIx>,
        n_events: u64,
    ) -> Option<impl Iterator<Item = &LineInOrder>> {
        let reading = self.readings.get(&worker);
        let is_done = reading.is_some_and(|own| own.n_events_done == Some(n_events));
        let from = reading.and_then(|own| own.last.as_ref()).map_or(line, |at| at.max(line));
        (!is_done).then(|| self.others.range((Bound::Excluded(from), Bound::Unbounded)))
    }

    fn insert(&mut self, key: OrderKey, line: LineIx) {
        let mut entry = (key, line);
        if entry < self.first {
            std::mem::swap(&mut entry, &mut self.first);
        }
        self.others.insert(entry);
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    table: Table<LaneIx, Lane>,
    by_key: QuickLookup<LaneKey, LaneIx>,
    /// Berths with lanes, in no order.
    active: Vec<BerthIx>,
}

impl Lanes {
    /// Berths with lines that may have their turn.
    pub(crate) fn active(&self) -> &[BerthIx] {
        &self.active
    }

    pub(crate) fn get(&self, ix: LaneIx) -> &Lane {
        &self.table[ix]
    }

    /// The lane was read for a worker up to this line, or to its end, after so many events. Says
    /// whether there is more to read.
    pub(crate) fn read_to(
        &mut self,
        (ix, worker): (LaneIx, Option<WorkerIx>),
        line: Option<LineInOrder>,
        n_events: u64,
    ) -> bool {
        let reading = self.table[ix].readings.entry(worker).or_default();
        if reading.last.is_none() {
            reading.n_events_begun = n_events;
        }
        if line.is_none() {
            reading.n_events_done = Some(reading.n_events_begun);
        }
        reading.last = line;
        reading.n_events_done != Some(n_events)
    }

    /// Puts a line where its first job's key says.
    pub(crate) fn join(
        &mut self,
        lane: LaneKey,
        line: LineIx,
        key: OrderKey,
        berths: &mut Berths,
    ) -> LaneIx {
        if let Some(ix) = self.by_key.get(&lane) {
            self.table[ix].insert(key, line);
            return ix;
        }
        let berth = &mut berths[lane.berth];
        if berth.lanes.is_empty() {
            berth.active_at = self.active.len();
            self.active.push(lane.berth);
        }
        let (first, others, place) = ((key, line), BTreeSet::new(), berth.lanes.len());
        let (readings, by_age) = (BTreeMap::new(), BTreeSet::new());
        let ix = self.table.insert(Lane { key: lane, first, others, readings, by_age, place });
        berth.lanes.push(ix);
        self.by_key.insert(lane, ix);
        ix
    }

    /// Takes out a line whose first job has, or had, this key.
    pub(crate) fn leave(&mut self, ix: LaneIx, line: LineIx, key: &OrderKey, berths: &mut Berths) {
        let lane = &mut self.table[ix];
        if lane.first.1 != line {
            lane.others.remove(&(key.clone(), line));
        } else if let Some(next) = lane.others.pop_first() {
            lane.first = next;
        } else {
            self.close(ix, berths);
        }
    }

    /// The oldest job of a line became ready at another moment, if it has any.
    pub(crate) fn age(
        &mut self,
        ix: LaneIx,
        line: LineIx,
        old: Option<Timestamp>,
        new: Option<Timestamp>,
    ) {
        let by_age = &mut self.table[ix].by_age;
        if let Some(old) = old {
            by_age.remove(&(old, line));
        }
        by_age.extend(new.map(|new| (new, line)));
    }

    /// A line has another first job.
    pub(crate) fn reorder(&mut self, ix: LaneIx, line: LineIx, old: &OrderKey, new: OrderKey) {
        let lane = &mut self.table[ix];
        if lane.first.1 != line {
            lane.others.remove(&(old.clone(), line));
            lane.insert(new, line);
            return;
        }
        lane.first.0 = new;
        if lane.others.first().is_some_and(|next| *next < lane.first)
            && let Some(next) = lane.others.pop_first()
        {
            lane.others.insert(std::mem::replace(&mut lane.first, next));
        }
    }

    fn close(&mut self, ix: LaneIx, berths: &mut Berths) {
        let lane = self.table.remove(ix);
        self.by_key.remove(&lane.key);
        let berth = &mut berths[lane.key.berth];
        berth.lanes.swap_remove(lane.place);
        if let Some(moved) = berth.lanes.get(lane.place) {
            self.table[*moved].place = lane.place;
        }
        if berth.lanes.is_empty() {
            let at = berth.active_at;
            self.active.swap_remove(at);
            if let Some(moved) = self.active.get(at) {
                berths[*moved].active_at = at;
            }
        }
    }
}
