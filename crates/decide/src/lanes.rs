//! Lines side by side: those of a class that only the keys of their first jobs tell apart.
//!
//! Of the lines of a *lane*, the one whose first job has the smallest key has the next turn, unless
//! a limit forbids it. So a decision looks at one line of each lane, however many there are: one
//! for each tenant where tenants do not matter, one for each resource that jobs ask for by name.

use std::collections::BTreeSet;

use model::Timestamp;
use model::policy::{Policy, Turn};

use crate::catalogue::Catalogue;
use crate::index::QuickLookup;
use crate::order::{Mode, OrderKey};
use crate::queue::LineKey;
use crate::table::{ClassIx, LaneIx, LineIx, Table, TenantIx};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LaneKey {
    pub(crate) class: ClassIx,
    /// `None` where tenants do not matter.
    pub(crate) tenant: Option<TenantIx>,
    pub(crate) mode: Mode,
}

impl LaneKey {
    pub(crate) fn new(line: &LineKey, policy: &Policy) -> Self {
        let tenant = match policy.turn {
            Turn::FirstCome | Turn::TypeGroups => None,
            Turn::QuotaFirst | Turn::Deficit | Turn::Guaranteed => Some(line.tenant),
        };
        Self { class: line.class, tenant, mode: line.mode }
    }
}

/// **Invariant:** the lines of a lane, by the keys of their first jobs, are in the order of their
/// ranks at every instant.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    key: LaneKey,
    /// The line with the smallest key: most decisions look no further.
    first: (OrderKey, LineIx),
    others: BTreeSet<(OrderKey, LineIx)>,
    /// All of them by their oldest jobs, where some choices go by age.
    by_age: BTreeSet<(Timestamp, LineIx)>,
    /// Its place among the lanes of its class.
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
    pub(crate) const fn first(&self) -> &(OrderKey, LineIx) {
        &self.first
    }

    /// Its lines by their oldest jobs, the oldest first.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = &(Timestamp, LineIx)> {
        self.by_age.iter()
    }

    /// The others, the smallest key first.
    pub(crate) fn others(&self) -> impl Iterator<Item = &(OrderKey, LineIx)> {
        self.others.iter()
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
    /// Classes with lanes, in no order.
    active: Vec<ClassIx>,
}

impl Lanes {
    /// Classes with lines that may have their turn.
    pub(crate) fn active(&self) -> &[ClassIx] {
        &self.active
    }

    pub(crate) fn get(&self, ix: LaneIx) -> &Lane {
        &self.table[ix]
    }

    /// Puts a line where its first job's key says.
    pub(crate) fn join(
        &mut self,
        lane: LaneKey,
        line: LineIx,
        key: OrderKey,
        catalogue: &mut Catalogue,
    ) -> LaneIx {
        if let Some(ix) = self.by_key.get(&lane) {
            self.table[ix].insert(key, line);
            return ix;
        }
        let class = &mut catalogue.classes[lane.class];
        if class.lanes.is_empty() {
            class.active_at = self.active.len();
            self.active.push(lane.class);
        }
        let (first, others, place) = ((key, line), BTreeSet::new(), class.lanes.len());
        let ix =
            self.table.insert(Lane { key: lane, first, others, by_age: BTreeSet::new(), place });
        class.lanes.push(ix);
        self.by_key.insert(lane, ix);
        ix
    }

    /// Takes out a line whose first job has, or had, this key.
    pub(crate) fn leave(
        &mut self,
        ix: LaneIx,
        line: LineIx,
        key: &OrderKey,
        catalogue: &mut Catalogue,
    ) {
        let lane = &mut self.table[ix];
        if lane.first.1 != line {
            lane.others.remove(&(key.clone(), line));
        } else if let Some(next) = lane.others.pop_first() {
            lane.first = next;
        } else {
            self.close(ix, catalogue);
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

    fn close(&mut self, ix: LaneIx, catalogue: &mut Catalogue) {
        let lane = self.table.remove(ix);
        self.by_key.remove(&lane.key);
        let class = &mut catalogue.classes[lane.key.class];
        class.lanes.swap_remove(lane.place);
        if let Some(moved) = class.lanes.get(lane.place) {
            self.table[*moved].place = lane.place;
        }
        if class.lanes.is_empty() {
            let at = class.active_at;
            self.active.swap_remove(at);
            if let Some(moved) = self.active.get(at) {
                catalogue.classes[*moved].active_at = at;
            }
        }
    }
}
