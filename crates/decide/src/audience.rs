//! Who could ever run which jobs, and in which row a job stands for them.
//!
//! Tenants can tell their jobs apart in as many ways as they like; the fleet cannot. An *audience*
//! is a set of workers, so there are no more of them than the fleet tells apart. A *berth* holds
//! the jobs of an audience that take about as much room: slots and amounts up to the same power of
//! two. A decision looks at berths, so its cost does not depend on how many kinds of jobs wait.
//!
//! The limit of this: needs with alternatives, or with several keys, can name as many sets of
//! workers as there are. Then each set is an audience, and the cost of a decision grows with them.

use std::collections::BTreeMap;

use model::Recent;

use crate::bits::Bits;
use crate::table::{AudienceIx, BerthIx, LaneIx, NameIx, Table};

/// The workers that could ever run some jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audience {
    /// By their places in the table of workers.
    members: Bits,
    /// By their positions in seating order.
    pub(crate) seats: Bits,
    /// All slots of those that serve, and the free ones.
    pub(crate) slots: u64,
    pub(crate) slots_free: u64,
    /// Jobs in line for them.
    pub(crate) n_in_line: u64,
    /// Jobs that came lately of types that these workers could run, and no other worker. Counted
    /// here because there can be many types and every decision asks.
    pub(crate) recent: Recent,
}

/// What tells berths apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BerthKey {
    /// Those that could hold the jobs …
    pub(crate) audience: AudienceIx,
    /// … and those that could, if they were larger.
    pub(crate) fitting: AudienceIx,
    pub(crate) pool: Option<NameIx>,
    /// Where turns go by types, or a limit of the type may hold its jobs back.
    pub(crate) kind: Option<NameIx>,
    /// The power of two that slots are not above, and the one that no amount is above.
    pub(crate) room: (u32, u32),
}

#[derive(Clone, Debug)]
pub(crate) struct Berth {
    pub(crate) key: BerthKey,
    /// Lines of it that may have their turn, side by side.
    pub(crate) lanes: Vec<LaneIx>,
    /// Its place among the berths with lanes.
    pub(crate) active_at: usize,
}

/// All audiences and berths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audiences {
    pub(crate) table: Table<AudienceIx, Audience>,
    by_members: BTreeMap<Bits, AudienceIx>,
    pub(crate) berths: Table<BerthIx, Berth>,
    by_key: BTreeMap<BerthKey, BerthIx>,
}

impl Audiences {
    /// The audience of these workers, and whether it is new.
    pub(crate) fn intern(&mut self, members: &Bits) -> (AudienceIx, bool) {
        let members = members.trimmed();
        if let Some(ix) = self.by_members.get(&members) {
            return (*ix, false);
        }
        let ix = self.table.insert(Audience { members: members.clone(), ..Audience::default() });
        self.by_members.insert(members, ix);
        (ix, true)
    }

    /// The berth of this key. Jobs that nobody could ever hold share one.
    pub(crate) fn berth(&mut self, key: BerthKey) -> BerthIx {
        let key = if self.table[key.audience].members.is_empty() {
            BerthKey { fitting: key.audience, pool: None, kind: None, room: (0, 0), ..key }
        } else {
            key
        };
        if let Some(ix) = self.by_key.get(&key) {
            return *ix;
        }
        let ix = self.berths.insert(Berth { key: key.clone(), lanes: Vec::new(), active_at: 0 });
        self.by_key.insert(key, ix);
        ix
    }

    /// Forgets audiences that are not in use, and their berths, which hold nothing.
    pub(crate) fn retain(&mut self, is_used: impl Fn(AudienceIx) -> bool) {
        for ix in self.berths.indices() {
            let key = &self.berths[ix].key;
            if !is_used(key.audience) || !is_used(key.fitting) {
                debug_assert!(self.berths[ix].lanes.is_empty(), "what is used is kept");
                let berth = self.berths.remove(ix);
                self.by_key.remove(&berth.key);
            }
        }
        for ix in self.table.indices() {
            if !is_used(ix) {
                let audience = self.table.remove(ix);
                self.by_members.remove(&audience.members);
            }
        }
    }
}

impl Audience {
    pub(crate) fn members(&self) -> impl Iterator<Item = usize> {
        self.members.iter()
    }
}
