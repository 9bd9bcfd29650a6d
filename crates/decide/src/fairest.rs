//! Whose turn it is where slot time is shared.
//!
//! The tenant that is furthest behind its share sets the mark. Every tenant that is no further
//! ahead of that one than the slack may go, and of these the one with the shortest job does. The
//! slack is the expected length of the next job of the tenant that is furthest behind, as far as
//! its lengths were known before, and never more than `fair_slack`: a tenant is passed for as long
//! as its own next job takes. Where nothing is known of lengths, the slack is nothing.
//!
//! **Invariant:** a job starts only if its tenant is ahead of every other that could use the slot
//! by no more than `fair_slack`, whatever is said of lengths.

use std::collections::BTreeMap;

use model::Millis;

use crate::account::{SKILL_FULL, skill};
use crate::rank::Rank;
use crate::table::TenantIx;
use crate::tenants::WHOLE;
use crate::turn::Pick;
use crate::world::World;

/// The best job of each tenant that could use a slot that is free.
type Best<'a> = BTreeMap<TenantIx, (Rank<'a>, Pick)>;

impl World {
    /// The job that goes first.
    pub(crate) fn fairest(&self, best: &Best<'_>) -> Option<Pick> {
        if best.len() < 2 {
            return best.values().next().map(|(_, pick)| *pick);
        }
        let turn = best.values().map(|(rank, _)| rank.turn).min()?;
        let level = |tenant: TenantIx| self.tenants[tenant].level();
        let rivals = || best.iter().filter(|(_, (rank, _))| rank.turn == turn);
        let (behind, (_, next)) = rivals().min_by(|one, two| {
            let key = |tenant: TenantIx, rank: &Rank<'_>| (level(tenant), rank.ready);
            let (first, second) = (&one.1.0, &two.1.0);
            key(*one.0, first).cmp(&key(*two.0, second)).then_with(|| first.id.cmp(second.id))
        })?;
        let mark = level(*behind) + self.slack(*behind, *next);
        let open = rivals().filter(|(tenant, _)| level(**tenant) <= mark);
        let first = open.min_by(|one, two| {
            let key = |tenant: TenantIx, (rank, pick): &(Rank<'_>, Pick)| {
                (rank.is_batch, self.believed(tenant, *pick), level(tenant), rank.ready)
            };
            let keys = key(*one.0, one.1).cmp(&key(*two.0, two.1));
            keys.then_with(|| one.1.0.id.cmp(two.1.0.id))
        });
        first.map(|(_, (_, pick))| *pick)
    }

    /// How far others may be ahead of a tenant, in the unit of [`crate::tenants::Sharer::level`].
    fn slack(&self, behind: TenantIx, next: Pick) -> i128 {
        let sharer = &self.tenants[behind];
        let length = self.queue.jobs[next.job].standing.length(self.usual_length());
        let trusted =
            length.0.min(self.policy.fairness.slack.0) * self.skill_of(behind) / SKILL_FULL;
        let due = i128::from(self.fleet.slots) * i128::from(sharer.due) / i128::from(WHOLE);
        i128::from(trusted) * due * 1_000_000 / sharer.share()
    }

    /// How long a job is expected to run, as far as its tenant's lengths were known before.
    fn believed(&self, tenant: TenantIx, pick: Pick) -> i64 {
        let usual = self.usual_length();
        let Millis(said) = self.queue.jobs[pick.job].standing.length(usual);
        let skill = i128::from(self.skill_of(tenant));
        let full = i128::from(SKILL_FULL);
        let believed = i128::from(said) * skill + i128::from(usual.0) * (full - skill);
        i64::try_from(believed / full).unwrap_or(i64::MAX)
    }

    /// How well lengths of the tenant's jobs were known, among the lengths of all that wait.
    fn skill_of(&self, tenant: TenantIx) -> i64 {
        skill(&self.tenants[tenant].tenant.account.trust, Some(&self.trust))
    }
}
