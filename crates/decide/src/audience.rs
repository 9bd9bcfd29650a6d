//! Who could ever run which jobs, and in which row a job stands for them.
//!
//! Tenants can tell their jobs apart in as many ways as they like; the fleet cannot. An *audience*
//! is a set of workers, so there are no more of them than the fleet tells apart. A *berth* holds
//! the jobs of an audience that take about as much room: slots and amounts up to the same power of
//! two. A decision looks at berths, so its cost does not depend on how many kinds of jobs wait.
//!
//! Requirements with alternatives, or with several keys, can name a set of workers for each kind of
//! job. At most [`SETS_MAX`] sets are audiences. Jobs of further sets share the *mixed* audience of
//! all workers. A decision reads the set of such a job itself, for a few jobs of each tenant at a
//! time ([`crate::turn`]).

use std::collections::BTreeMap;

use model::Recent;

use crate::bits::Bits;
use crate::table::{AudienceIx, BerthIx, Ix, LaneIx, NameIx, Table};

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

/// At most so many sets of workers are audiences. A decision looks at the berths of each, so this
/// bounds its cost; fleets have as many kinds of workers as that, seldom more.
const SETS_MAX: usize = 128;

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
#[derive(Clone, Debug)]
pub(crate) struct Audiences {
    pub(crate) table: Table<AudienceIx, Audience>,
    by_members: BTreeMap<Bits, AudienceIx>,
    /// The audience without workers.
    nobody: AudienceIx,
    /// The audience of jobs whose sets of workers are not told apart: all workers.
    mixed: AudienceIx,
    pub(crate) berths: Table<BerthIx, Berth>,
    by_key: BTreeMap<BerthKey, BerthIx>,
}

impl Default for Audiences {
    fn default() -> Self {
        let mut table = Table::default();
        let nobody = table.insert(Audience::default());
        let mixed = table.insert(Audience::default());
        let by_members = BTreeMap::from([(Bits::default(), nobody)]);
        Self { table, by_members, nobody, mixed, berths: Table::default(), by_key: BTreeMap::new() }
    }
}

impl Audiences {
    /// The audience without workers.
    pub(crate) const fn nobody(&self) -> AudienceIx {
        self.nobody
    }

    /// Whether jobs of different sets of workers share this audience.
    pub(crate) fn is_mixed(&self, ix: AudienceIx) -> bool {
        ix == self.mixed
    }

    /// The audience of these workers, and whether it is new.
    pub(crate) fn intern(&mut self, members: &Bits) -> (AudienceIx, bool) {
        let members = members.trimmed();
        if let Some(ix) = self.by_members.get(&members) {
            return (*ix, false);
        }
        if self.table.len() >= SETS_MAX {
            return (self.mixed, false);
        }
        (self.insert(members), true)
    }

    fn insert(&mut self, members: Bits) -> AudienceIx {
        let ix = self.table.insert(Audience { members: members.clone(), ..Audience::default() });
        self.by_members.insert(members, ix);
        ix
    }

    /// The audience of these workers, where audiences are given out anew after `used`.
    pub(crate) fn give_out(&mut self, members: &Bits, used: &mut Used) -> AudienceIx {
        let members = members.trimmed();
        let known = self.by_members.get(&members).copied();
        if let Some(ix) = known.filter(|ix| used.has(*ix)) {
            return ix;
        }
        if used.count >= SETS_MAX {
            return self.mixed;
        }
        let ix = known.unwrap_or_else(|| self.insert(members));
        used.add(ix);
        ix
    }

    /// The audiences that are always there. The mixed one has these workers from now on.
    pub(crate) fn keep(&mut self, workers: Bits) -> Used {
        self.table[self.mixed].members = workers;
        let mut used = Used::default();
        used.add(self.nobody);
        used.add(self.mixed);
        used
    }

    /// From here on, the next fit or class that matches these workers gets a new audience. No count
    /// of this one is kept in step.
    pub(crate) fn hide(&mut self, ix: AudienceIx) {
        // These workers may have another audience already, since this one was hidden before.
        let members = &self.table[ix].members;
        if self.by_members.get(members) == Some(&ix) {
            self.by_members.remove(members);
        }
    }

    /// The berth of this key. Jobs that nobody could ever hold share one.
    pub(crate) fn berth(&mut self, key: BerthKey) -> BerthIx {
        let key = if key.audience == self.nobody {
            BerthKey { fitting: key.audience, pool: None, kind: None, room: (0, 0), ..key }
        } else if key.audience == self.mixed {
            BerthKey { fitting: key.audience, ..key }
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
                self.hide(ix);
                self.table.remove(ix);
            }
        }
    }
}

/// Audiences that are in use.
#[derive(Debug, Default)]
pub(crate) struct Used {
    bits: Bits,
    count: usize,
}

impl Used {
    pub(crate) fn has(&self, ix: AudienceIx) -> bool {
        self.bits.has(ix.at())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = AudienceIx> {
        self.bits.iter().map(AudienceIx::new)
    }

    fn add(&mut self, ix: AudienceIx) {
        self.bits.set(ix.at(), true);
        self.count += 1;
    }
}

impl Audience {
    pub(crate) fn members(&self) -> impl Iterator<Item = usize> {
        self.members.iter()
    }
}
