//! Keeping the last free slot for rare work that is expected.
//!
//! A slot that can run rare work is worth more than one that cannot. While rare work keeps coming,
//! a job of other work takes the last free slot for it only once it has waited for a while itself.
//! So nothing is kept from anybody for longer than that while.

use model::policy::{Guard, RARE_EXPECTED_FOR};

use crate::catalogue::Fit;
use crate::table::WorkerIx;
use crate::waiting::Waiting;
use crate::world::World;

impl World {
    /// Whether the worker is kept from this job for rarer work.
    pub(crate) fn is_guarded(&self, worker: WorkerIx, waiting: &Waiting) -> bool {
        let Some(guard) = &self.policy.guard else { return false };
        if self.now.since(waiting.standing.ready) >= guard.hold_max {
            return false;
        }
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        let own = &self.fleet.catalogue.fits[class.fit];
        self.fleet.workers[worker].fits().iter().any(|fit| {
            let fit = &self.fleet.catalogue.fits[*fit];
            fit.is_kind
                && fit.key.kind != own.key.kind
                && fit.slots < own.slots
                && fit.slots_free <= u64::from(class.slots)
                && self.is_rare(fit, guard)
                && self.is_expected(fit)
        })
    }

    /// Whether few of the fleet's slots could run it.
    fn is_rare(&self, fit: &Fit, guard: &Guard) -> bool {
        fit.slots * u64::from(guard.rare_one_in) <= self.fleet.slots
    }

    /// Whether work of the type came lately.
    fn is_expected(&self, fit: &Fit) -> bool {
        let kind = fit.key.kind.and_then(|kind| self.kinds.get(kind));
        let seen = kind.and_then(|kind| kind.settings.seen);
        seen.is_some_and(|seen| self.now.since(seen) < RARE_EXPECTED_FOR)
    }
}
