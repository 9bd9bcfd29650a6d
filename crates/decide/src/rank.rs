//! What decides whose turn it is: the rank of a job among all, and the best that a look has found.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use model::{JobId, Millis, Name, Timestamp};

use crate::lanes::LineInOrder;
use crate::order::{CLASS_BITS, ESTIMATE_SCORED_MAX, LENGTH_ONE, OrderKey};
use crate::table::{LaneIx, LineIx, TenantIx};
use crate::turn::Pick;
use crate::world::World;

/// Whose turn it is, as far as that does not depend on the job; smallest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WhoseTurn<'a> {
    pub(crate) group: u8,
    pub(crate) is_served: bool,
    pub(crate) deficit: i128,
    pub(crate) name: Option<&'a Name>,
}

/// Where a job stands among all; smallest first. Where slots are shared, among those of its tenant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank<'a> {
    /// `None` where it is anybody's turn.
    pub(crate) turn: Option<WhoseTurn<'a>>,
    /// Whether shorter jobs may go before it: it is not overdue.
    pub(crate) is_in_time: bool,
    /// Whether nobody waits for it, or interactive jobs of its tenant have their part of the slots.
    pub(crate) is_batch: bool,
    pub(crate) key: i64,
    pub(crate) ready: Timestamp,
    pub(crate) id: &'a JobId,
}

/// What all jobs of a lane have in common.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) turn: Option<WhoseTurn<'a>>,
    /// The tenant whose share counts; `None` where shares do not.
    pub(crate) sharer: Option<TenantIx>,
    pub(crate) is_batch: bool,
    pub(crate) yardstick: Yardstick,
}

/// How the key of a job in line becomes its key among all. It changes from decision to decision,
/// but is the same for all jobs of a lane, so it never changes their order.
#[derive(Clone, Copy)]
pub(crate) enum Yardstick {
    /// What a key in line has more.
    Offset(i64),
    /// Lengths of its jobs are unknown: they count as so long.
    Length(Millis),
}

impl Yardstick {
    pub(crate) fn key(self, major: i64) -> i64 {
        match self {
            Self::Offset(offset) => major - offset,
            Self::Length(Millis(usual)) => {
                let class = major >> CLASS_BITS << CLASS_BITS;
                let counted =
                    i128::from(major - class) * i128::from(usual.min(ESTIMATE_SCORED_MAX));
                class + i64::try_from(counted / i128::from(LENGTH_ONE.0)).unwrap_or(0)
            }
        }
    }
}

impl<'a> Shared<'a> {
    pub(crate) fn rank(self, key: &'a OrderKey) -> Rank<'a> {
        let OrderKey { major, ready, id } = key;
        let (turn, is_batch, key) = (self.turn, self.is_batch, self.yardstick.key(*major));
        Rank { turn, is_in_time: true, is_batch, key, ready: *ready, id }
    }
}

/// What a look at the lines has found so far.
#[derive(Default)]
pub(crate) struct Look<'a> {
    best: Option<(Rank<'a>, Pick)>,
    /// The best of each tenant whose share counts.
    by_tenant: BTreeMap<TenantIx, (Rank<'a>, Pick)>,
    pub(crate) seen: Seen,
}

/// Lines and lanes that a look has passed.
#[derive(Default)]
pub(crate) struct Seen {
    /// Lines that a limit closes.
    pub(crate) closed: Vec<LineIx>,
    /// Lines of which no job is cheap enough.
    pub(crate) walked: Vec<LineIx>,
    /// Lanes of which many lines were looked at, and where that stopped.
    pub(crate) stops: Vec<(LaneIx, Stop)>,
}

/// Where a look at the lines of a lane stopped.
#[derive(Default)]
pub(crate) struct Stop {
    /// The last line that was looked at. `None` means that no line is left.
    pub(crate) line: Option<LineInOrder>,
    /// Whether it stopped because it had looked at so many.
    pub(crate) is_full: bool,
}

impl<'a> Look<'a> {
    /// The best that this one is compared with.
    fn rival(&self, sharer: Option<TenantIx>) -> Option<&Rank<'a>> {
        let best = match sharer {
            Some(tenant) => self.by_tenant.get(&tenant),
            None => self.best.as_ref(),
        };
        best.map(|(rank, _)| rank)
    }

    /// Whether no job of this turn can be better.
    pub(crate) fn is_past(&self, sharer: Option<TenantIx>, turn: Option<WhoseTurn<'a>>) -> bool {
        self.rival(sharer).is_some_and(|best| best.turn < turn)
    }

    pub(crate) fn improves(&self, sharer: Option<TenantIx>, rank: &Rank<'a>) -> bool {
        self.rival(sharer).is_none_or(|best| rank < best)
    }

    pub(crate) fn compare(&mut self, sharer: Option<TenantIx>, rank: Rank<'a>, pick: Pick) {
        let best = match sharer.map(|tenant| self.by_tenant.entry(tenant)) {
            None => self.best.get_or_insert((rank.clone(), pick)),
            Some(Entry::Occupied(own)) => own.into_mut(),
            Some(Entry::Vacant(new)) => new.insert((rank.clone(), pick)),
        };
        if rank < best.0 {
            *best = (rank, pick);
        }
    }

    /// The best of all; of tenants that share, the best of each, for [`World::fairest`] to choose.
    pub(crate) fn found(self, world: &World) -> (Option<Pick>, Seen) {
        let pick = match self.best {
            Some((_, pick)) => Some(pick),
            None => world.fairest(&self.by_tenant),
        };
        (pick, self.seen)
    }
}
