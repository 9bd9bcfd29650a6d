//! Whose turn it is, as far as that does not depend on the job.

use model::policy::Turn;

use super::Scope;
use crate::lanes::LaneKey;
use crate::rank::WhoseTurn;
use crate::table::{BerthIx, TenantIx};
use crate::world::World;

impl World {
    /// The part of the rank that is about whose turn it is.
    pub(super) fn turn(&self, lane: &LaneKey, scope: Scope) -> Option<WhoseTurn<'_>> {
        let tenant = || lane.tenant.expect("where tenants matter, each has lanes of its own");
        let is_served = || !self.is_owed(tenant(), lane.berth, scope);
        let turn = WhoseTurn { group: 0, is_served: false, deficit: 0, name: None };
        let turn = match self.policy.turn {
            Turn::FirstCome => return None,
            Turn::QuotaFirst | Turn::FairQueue => WhoseTurn { is_served: is_served(), ..turn },
            Turn::Deficit => {
                let sharer = &self.tenants[tenant()];
                let (has_any, deficit) = if self.policy.literal {
                    (sharer.tenant.completed > 0, self.tenants.deficit_settled(tenant()))
                } else {
                    (sharer.has_any(), self.tenants.deficit(tenant()))
                };
                WhoseTurn {
                    group: u8::from(has_any),
                    deficit,
                    name: Some(sharer.tenant.id.name()),
                    ..turn
                }
            }
            Turn::TypeGroups => {
                let kind = self.fleet.catalogue.audiences.berths[lane.berth].key.kind;
                WhoseTurn { name: kind.map(|kind| self.names.name(kind)), ..turn }
            }
        };
        Some(turn)
    }

    /// Whether the tenant is below its minimum in the pool that this is about.
    fn is_owed(&self, tenant: TenantIx, berth: BerthIx, scope: Scope) -> bool {
        let sharer = &self.tenants[tenant];
        if !sharer.has_quotas() {
            return false;
        }
        let asking = scope.worker.map(|ix| self.fleet.workers[ix].pool);
        let key = &self.fleet.catalogue.audiences.berths[berth].key;
        match scope.pool.or(asking).or(key.pool) {
            Some(pool) => sharer.is_below_min(pool),
            // Room in another pool does not help where it is owed.
            None => sharer.pools_below_min().any(|pool| {
                self.fleet.with_slot_of(key.audience).any(|ix| self.fleet.workers[ix].pool == pool)
            }),
        }
    }
}
