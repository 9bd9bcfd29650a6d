//! Keeping slots for rare work.
//!
//! A slot that can run rare work is worth more than one that cannot. Other work may take it if that
//! helps more than it hurts: it hurts by the delay of rare work that is expected while it runs, and
//! helps by the delay that it spares those who wait for the same work. So short jobs pass, long
//! ones do not, and the more jobs wait the more pass. This is about rare work that has yet to come;
//! what waits has its advantage in the order of jobs.
//!
//! Whoever has waited for twice its patience passes, so nothing is kept from anybody for ever.

use model::policy::{Guard, RARE_SPAN};
use model::{Millis, Timestamp};

use crate::catalogue::{ClassKey, Fit};
use crate::table::WorkerIx;
use crate::waiting::Waiting;
use crate::world::World;

/// Each slot that stays free for rare work makes a delay of it less likely: so many halvings.
const HALVINGS: u32 = 2;

impl World {
    /// Whether the worker is kept from this job for rarer work.
    pub(crate) fn is_guarded(&self, worker: WorkerIx, waiting: &Waiting) -> bool {
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        self.would_be_guarded(worker, class, waiting.standing.ready, waiting.standing.length())
    }

    /// Whether it would be kept from a job of this class, age and length. If it is, then also from
    /// every younger or longer one.
    pub(crate) fn would_be_guarded(
        &self,
        worker: WorkerIx,
        class: &ClassKey,
        ready: Timestamp,
        length: Millis,
    ) -> bool {
        let Some(guard) = &self.policy.guard else { return false };
        if self.is_desperate(ready) {
            return false;
        }
        let own = &self.fleet.catalogue.fits[class.fit];
        self.fleet.workers[worker].fits().iter().any(|fit| {
            let fit = &self.fleet.catalogue.fits[*fit];
            fit.key.kind != own.key.kind
                && is_rarer(fit, own, guard)
                && self.is_too_dear(fit, class, length, guard)
        })
    }

    /// Whether the delay of rare work that is expected outweighs the delay that is spared.
    fn is_too_dear(&self, rare: &Fit, class: &ClassKey, length: Millis, guard: &Guard) -> bool {
        let kind = rare.key.kind.filter(|_| rare.is_kind).and_then(|kind| self.kinds.get(kind));
        let recent = kind.and_then(|kind| kind.settings.recent);
        let n_came = recent.map_or(0, |recent| recent.sum(self.now, RARE_SPAN));
        let own = &self.fleet.catalogue.fits[class.fit];
        let n_left = rare.slots_free.saturating_sub(u64::from(class.slots));
        let halvings = u32::try_from(n_left).unwrap_or(u32::MAX).saturating_mul(HALVINGS);
        let cost = i128::from(guard.price.in_thousandths())
            * i128::from(n_came)
            * i128::from(length.0)
            * i128::from(own.slots);
        let spared = 2_000 * i128::from(RARE_SPAN.0) * i128::from(own.n_in_line);
        cost.checked_shr(halvings).unwrap_or(0) > spared
    }
}

/// Whether far fewer slots could run it.
fn is_rarer(fit: &Fit, own: &Fit, guard: &Guard) -> bool {
    fit.slots * u64::from(guard.rare_one_in) <= own.slots
}
