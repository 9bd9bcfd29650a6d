//! What decides whose turn it is: the rank of a job among all, and the best that a look has found.

use model::{JobId, Name, Timestamp};

use crate::order::OrderKey;
use crate::table::LineIx;
use crate::turn::Pick;

/// Whose turn it is, as far as that does not depend on the job; smallest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WhoseTurn<'a> {
    pub(crate) group: u8,
    pub(crate) is_served: bool,
    pub(crate) deficit: i128,
    pub(crate) name: Option<&'a Name>,
}

/// Where a job stands among all; smallest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank<'a> {
    /// `None` where it is anybody's turn.
    pub(crate) turn: Option<WhoseTurn<'a>>,
    /// Whether it has not waited for far too long: then shares do not count.
    pub(crate) is_calm: bool,
    /// What its tenant has had for its weight, if it competes by that.
    pub(crate) level: Option<i128>,
    /// Whether it has not waited for too long.
    pub(crate) is_patient: bool,
    pub(crate) key: i64,
    pub(crate) ready: Timestamp,
    pub(crate) id: &'a JobId,
}

impl<'a> Rank<'a> {
    /// The same, without the share of its tenant.
    fn beside(&self) -> impl Ord + use<'a> {
        (self.turn, self.is_calm, self.is_patient, self.key, self.ready, self.id)
    }
}

/// What all jobs of a lane have in common.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) turn: Option<WhoseTurn<'a>>,
    pub(crate) level: Option<i128>,
    /// What a job's key in line has more than its key among all.
    pub(crate) offset: i64,
}

impl<'a> Shared<'a> {
    pub(crate) fn rank(self, key: &'a OrderKey) -> Rank<'a> {
        let OrderKey { major, ready, id } = key;
        let (turn, level, key) = (self.turn, self.level, major - self.offset);
        Rank { turn, is_calm: true, is_patient: true, level, key, ready: *ready, id }
    }
}

/// What a look at the lines has found so far.
#[derive(Default)]
pub(crate) struct Look<'a> {
    pub(crate) best: Option<(Rank<'a>, Pick)>,
    /// The best of those whose tenants compete by their shares.
    pub(crate) competing: Option<(Rank<'a>, Pick)>,
    /// Lines that a limit closes.
    pub(crate) closed: Vec<LineIx>,
    /// Lines of which no job is cheap enough.
    pub(crate) walked: Vec<LineIx>,
}

impl<'a> Look<'a> {
    /// The best of those that are told apart in the same way.
    pub(crate) const fn best(&mut self, competes: bool) -> &mut Option<(Rank<'a>, Pick)> {
        if competes { &mut self.competing } else { &mut self.best }
    }

    pub(crate) fn improves(&mut self, rank: &Rank<'a>) -> bool {
        self.best(rank.level.is_some()).as_ref().is_none_or(|(best, _)| rank < best)
    }

    pub(crate) fn compare(&mut self, rank: Rank<'a>, pick: Pick) {
        if self.improves(&rank) {
            let competes = rank.level.is_some();
            *self.best(competes) = Some((rank, pick));
        }
    }

    /// The best of all: shares tell only those apart who compete.
    pub(crate) fn found(&mut self) -> Option<Pick> {
        let bests = [self.best.take(), self.competing.take()].into_iter().flatten();
        bests.min_by(|(one, _), (two, _)| one.beside().cmp(&two.beside())).map(|(_, pick)| pick)
    }
}
