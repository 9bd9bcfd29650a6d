//! Relief: a slot that could serve several kinds of work serves the kind where most are relieved by
//! it. What a job's length counts is divided by how many wait for each slot that could run it.

use model::policy::Order;

use crate::lanes::LaneKey;
use crate::rank::Yardstick;
use crate::world::World;

/// Those who count as waiting are counted in so many parts of one.
const PARTS: u64 = 16;

/// For each slot that could run a job there are so many that could not: so many times that number
/// counts as waiting, on top of those who do.
const RARE_COUNTS: u64 = 2;

/// When so many wait for each slot of the fleet, rare work counts for half of that.
const FLOOD: u64 = 8;

impl World {
    /// How keys in line of this lane are compared with those of others. Under [`Order::Aging`] that
    /// is by score, the other way round. Under [`Order::Shortest`] the delay that a job causes
    /// counts for as many as wait for its slots.
    pub(crate) fn yardstick(&self, lane: &LaneKey) -> Yardstick {
        let fit = self.fleet.catalogue.fit_of(lane.class);
        match self.policy.order {
            Order::Aging => {
                let slots_free = fit.slots_free;
                Yardstick::by(lane.mode.score_and_key(&self.policy.aging, self.now, slots_free))
            }
            Order::Shortest if self.policy.shortest.relief => {
                let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
                let slots = number(fit.slots.saturating_mul(PARTS));
                let n_waiting = number(self.parts_relieved(lane).saturating_add(PARTS));
                Yardstick { offset: self.now.0, slots, n_waiting }
            }
            Order::Shortest | Order::PriorityAge | Order::Proposal | Order::Rules => {
                Yardstick::by(0)
            }
        }
    }

    /// How many count as waiting for the slots that could run jobs of this lane, in parts of a job.
    /// Of a tenant that competes only its own jobs tell: nobody else has its turns, so what it has
    /// most of for each slot goes first, and it is not left with work that few slots could run.
    /// Rare work counts as more than there is; less so in a flood, when every slot has enough to
    /// do, but for who competes and must not be left with it.
    fn parts_relieved(&self, lane: &LaneKey) -> u64 {
        let ix = self.fleet.catalogue.classes[lane.class].key.fit;
        let fit = &self.fleet.catalogue.fits[ix];
        let crowd = &self.queue.crowd;
        let competing = lane.tenant.filter(|_| self.level(lane).is_some());
        let others = self.fleet.slots.saturating_sub(fit.slots);
        let rare = PARTS * RARE_COUNTS * others / fit.slots.max(1);
        let (waiting, rare) = match competing {
            // Who can go anywhere waits with all others.
            _ if fit.slots >= self.fleet.slots => (crowd.all.saturating_mul(PARTS), 0),
            Some(tenant) => (crowd.as_if_all_were(tenant, ix, PARTS), rare),
            None => (fit.n_in_line.saturating_mul(PARTS), self.in_flood(rare)),
        };
        waiting.saturating_add(rare)
    }

    fn in_flood(&self, parts: u64) -> u64 {
        let flood = FLOOD.saturating_mul(self.fleet.slots);
        parts.saturating_mul(flood) / flood.saturating_add(self.queue.crowd.all).max(1)
    }
}
