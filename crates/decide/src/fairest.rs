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

use crate::account::SKILL_FULL;
use crate::rank::Rank;
use crate::table::TenantIx;
use crate::tenants::WHOLE;
use crate::turn::Pick;
use crate::world::World;

/// The best job of each tenant that could use a slot that is free.
type Best<'a> = BTreeMap<TenantIx, (Rank<'a>, Pick)>;

/// A tenant that could use the slot, with the numbers that decide.
struct Rival<'a> {
    tenant: TenantIx,
    rank: &'a Rank<'a>,
    pick: Pick,
    /// How far the tenant is ahead of its share: [`crate::tenants::Sharer::level`].
    level: i128,
}

impl World {
    /// The job that goes first.
    pub(crate) fn fairest(&self, best: &Best<'_>) -> Option<Pick> {
        if best.len() < 2 {
            return best.values().next().map(|(_, pick)| *pick);
        }
        let turn = best.values().map(|(rank, _)| rank.turn).min()?;
        let in_turn = best.iter().filter(|(_, (rank, _))| rank.turn == turn);
        let rivals: Vec<Rival<'_>> = in_turn
            .map(|(tenant, (rank, pick))| {
                let level = self.tenants[*tenant].level();
                Rival { tenant: *tenant, rank, pick: *pick, level }
            })
            .collect();
        let behind = rivals.iter().min_by_key(|own| (own.level, own.rank.ready, own.rank.id))?;
        let mark = behind.level + self.slack(behind);
        let open = rivals.iter().filter(|own| own.level <= mark);
        let first = open.min_by_key(|own| {
            let Rank { is_batch, ready, id, .. } = own.rank;
            (*is_batch, self.believed(own), own.level, *ready, *id)
        });
        first.map(|own| own.pick)
    }

    /// How far other tenants may be ahead of this one, in the unit of [`Rival::level`].
    fn slack(&self, behind: &Rival<'_>) -> i128 {
        let sharer = &self.tenants[behind.tenant];
        let length = self.queue.jobs[behind.pick.job].standing.length(self.usual_length());
        let counted = length.0.min(self.policy.fairness.slack.0);
        let trusted = counted * self.skill_of(behind.tenant) / SKILL_FULL;
        let due = i128::from(self.fleet.slots) * i128::from(sharer.due) / i128::from(WHOLE);
        i128::from(trusted) * due * 1_000_000 / sharer.share()
    }

    /// How long a job is expected to run, as far as its tenant's lengths were known before.
    fn believed(&self, own: &Rival<'_>) -> i64 {
        let usual = self.usual_length().0;
        let said = self.queue.jobs[own.pick.job].standing.length(self.usual_length()).0;
        let skill = self.skill_of(own.tenant);
        let towards = said.saturating_sub(usual).saturating_mul(skill) / SKILL_FULL;
        usual.saturating_add(towards)
    }

    /// How well lengths of the tenant's jobs were known, among the lengths of all that wait.
    fn skill_of(&self, tenant: TenantIx) -> i64 {
        self.tenants[tenant].measured.skill_among_all
    }
}
