//! Lines side by side: those of a berth that only the keys of their first jobs tell apart.
//!
//! Of the lines of a *lane*, the one whose first job has the smallest key has the next turn, unless
//! a limit forbids it or there is no room for it. So a decision looks at one line of each lane,
//! however many there are: one for each tenant where tenants do not matter, one for each resource
//! that jobs ask for by name, one for each width up to the same power of two.

use std::collections::BTreeSet;
use std::ops::Bound;

use model::Timestamp;
use model::policy::{Order, Policy, Turn};

use crate::audience::Berth;
use crate::index::QuickLookup;
use crate::order::{Mode, OrderKey};
use crate::queue::LineKey;
use crate::table::{BerthIx, LaneIx, LineIx, Table, TenantIx};

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

/// **Invariant:** the lines of a lane, by the keys of their first jobs, are in the order of their
/// ranks at every instant.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    key: LaneKey,
    /// The line with the smallest key: most decisions look no further.
    first: LineInOrder,
    others: BTreeSet<LineInOrder>,
    /// A look at many of the others stopped here. The next one goes on after it.
    stopped_at: Option<LineInOrder>,
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

    /// The others after `line`, or after the one at which the last look stopped if that is later.
    pub(crate) fn others_from(&self, line: &LineInOrder) -> impl Iterator<Item = &LineInOrder> {
        let from = self.stopped_at.iter().fold(line, Ord::max);
        self.others.range((Bound::Excluded(from), Bound::Unbounded))
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

    /// The next look at many lines of the lane goes on after this one.
    pub(crate) fn resume_after(&mut self, ix: LaneIx, line: Option<LineInOrder>) {
        self.table[ix].stopped_at = line;
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
        let (stopped_at, by_age) = (None, BTreeSet::new());
        let ix = self.table.insert(Lane { key: lane, first, others, stopped_at, by_age, place });
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
