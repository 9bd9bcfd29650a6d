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
    pub(crate) yardstick: Yardstick,
}

/// How the key of a job in line becomes its key among all. It changes from decision to decision,
/// but is the same for all jobs of a lane, so it never changes their order.
#[derive(Clone, Copy)]
pub(crate) struct Yardstick {
    /// What a key in line has more.
    pub(crate) offset: i64,
    /// What is left counts as often as there are slots that could run such jobs …
    pub(crate) slots: i64,
    /// … for each of those who wait for them.
    pub(crate) n_waiting: i64,
}

impl Yardstick {
    pub(crate) const fn by(offset: i64) -> Self {
        Self { offset, slots: 1, n_waiting: 1 }
    }

    pub(crate) fn key(self, major: i64) -> i64 {
        let key = major - self.offset;
        if self.slots == self.n_waiting {
            return key;
        }
        let n_waiting = self.n_waiting.max(1);
        if let Some(product) = key.checked_mul(self.slots) {
            return product / n_waiting;
        }
        let scaled = i128::from(key) * i128::from(self.slots) / i128::from(n_waiting);
        i64::try_from(scaled).unwrap_or(if key < 0 { i64::MIN } else { i64::MAX })
    }
}

impl<'a> Shared<'a> {
    pub(crate) fn rank(self, key: &'a OrderKey) -> Rank<'a> {
        let OrderKey { major, ready, id } = key;
        let (turn, level, key) = (self.turn, self.level, self.yardstick.key(*major));
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
