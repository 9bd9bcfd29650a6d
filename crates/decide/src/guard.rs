//! Keeping slots for rare work.
//!
//! A slot that can run rare work is worth more than one that cannot. What it is worth is observed:
//! how often jobs came lately that fewer slots can run. Other work takes such a slot if that spares
//! more delay than it causes:
//!
//! - It causes delay to rare jobs that come while it runs and find no other slot. Each of them
//!   waits until the next of its slots is free, which takes the usual length divided by the number
//!   of these slots, or for half of the job's length if that is less.
//! - It spares delay to all that wait for the same work: each would wait until the next slot is
//!   free, which takes the usual length divided by the number of slots that could run it.
//!
//! So short jobs pass, long ones do not, and the more jobs wait, the more pass. This is about rare
//! work that has yet to come. A job that is overdue always passes, so no slot is kept for ever.

use model::policy::RARE_SPAN;
use model::{Millis, Timestamp};

use crate::account::SKILL_FULL;
use crate::audience::Audience;
use crate::catalogue::{Class, ClassKey};
use crate::policies::shares;
use crate::table::{TenantIx, WorkerIx};
use crate::waiting::Waiting;
use crate::world::World;

impl World {
    /// Whether the worker is kept from this job for rarer work.
    pub(crate) fn is_guarded(&self, worker: WorkerIx, waiting: &Waiting) -> bool {
        let class = &self.fleet.catalogue.classes[waiting.class];
        let length = waiting.standing.length(self.usual_length());
        let ready = waiting.standing.ready;
        self.would_be_guarded((worker, class), waiting.tenant, ready, length)
    }

    /// Whether it would be kept from a job of this class, tenant, age and length. If it is, then
    /// also from every younger or longer one.
    pub(crate) fn would_be_guarded(
        &self,
        (worker, class): (WorkerIx, &Class),
        tenant: TenantIx,
        ready: Timestamp,
        length: Millis,
    ) -> bool {
        if !self.policy.guard || self.is_overdue(tenant, ready) {
            return false;
        }
        // What is said of its length counts as far as such words were right.
        let skill = self.tenants[tenant].measured.skill;
        let usual = self.usual_length();
        let length = Millis(usual.0 + (length.0 - usual.0) * skill / SKILL_FULL);
        let table = &self.fleet.catalogue.audiences.table;
        let own = self.fleet.catalogue.holding(class);
        self.fleet.workers[worker].audiences.iter().any(|ix| {
            let rare = &table[*ix];
            rare.slots < own.slots && self.is_too_dear(rare, own, (&class.key, length))
        })
    }

    /// Whether the delay of rare work that is expected outweighs the delay that is spared.
    fn is_too_dear(
        &self,
        rare: &Audience,
        own: &Audience,
        (class, length): (&ClassKey, Millis),
    ) -> bool {
        let n_came = rare.recent.sum(self.now, RARE_SPAN);
        if n_came == 0 {
            return false;
        }
        let n_left = rare.slots_free.saturating_sub(u64::from(class.slots));
        // How many come while it runs and find no other slot, times the span that was counted.
        let coming = i128::from(n_came) * i128::from(length.0);
        let late = coming - i128::from(n_left) * i128::from(RARE_SPAN.0);
        let usual = i128::from(self.usual_length().0);
        let delay = (i128::from(length.0) / 2).min(usual / i128::from(rare.slots.max(1)));
        let in_line = i128::from(own.n_in_line) * i128::from(RARE_SPAN.0);
        late * delay * i128::from(own.slots) > in_line * usual
    }

    /// Whether a job of the tenant that became ready then goes before shorter ones.
    pub(crate) fn is_overdue(&self, tenant: TenantIx, ready: Timestamp) -> bool {
        self.overdue_until(tenant).is_some_and(|until| ready <= until)
    }

    /// Jobs of the tenant that became ready by this moment go before shorter ones.
    pub(crate) fn overdue_until(&self, tenant: TenantIx) -> Option<Timestamp> {
        if !self.policy.fairness.is_bounded || !shares(&self.policy) {
            return None;
        }
        self.tenants[tenant].measured.overdue_until
    }
}
