//! What a world is like, for those who watch it.

use std::collections::BTreeMap;

use model::{Fixed, Name, Policy, Tenant, Timestamp};

use crate::world::World;

/// A tenant and what it has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantStatus {
    /// Its settings, and what it used in the window.
    pub tenant: Tenant,
    /// Jobs that wait.
    pub n_queued: u32,
    /// Attempts.
    pub n_running: u32,
    /// Slots in use, by pool.
    pub slots: BTreeMap<Name, u64>,
    /// Cost of its attempts.
    pub in_flight: Fixed,
}

impl World {
    /// The policy, as it was given.
    pub const fn given_policy(&self) -> &Policy {
        &self.given
    }

    /// The next moment at which a decision may differ although nothing happened: a job's time
    /// comes. `None` means never.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.queue.next_timer()
    }

    /// The tenants, by id.
    pub fn tenants(&self) -> Vec<TenantStatus> {
        let mut all: Vec<TenantStatus> = self
            .tenants
            .iter()
            .map(|(_, sharer)| TenantStatus {
                tenant: sharer.tenant.clone(),
                n_queued: sharer.n_queued,
                n_running: sharer.n_running,
                slots: sharer
                    .slots_by_pool()
                    .map(|(pool, slots)| (self.names.name(pool).clone(), slots))
                    .collect(),
                in_flight: sharer.in_flight,
            })
            .collect();
        all.sort_by(|one, two| one.tenant.id.cmp(&two.tenant.id));
        all
    }
}
