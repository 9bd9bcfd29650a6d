//! What a world is like, for those who watch it.

use std::collections::{BTreeMap, BTreeSet};

use model::{Fixed, JobType, Millis, Name, Policy, Tenant, TenantId, Timestamp};

use crate::world::World;

/// A type that nobody set is remembered for so long after its last job: what came lately is
/// expected again.
const TYPE_KEPT: Millis = Millis::from_secs(24 * 3600);

/// So soon it is worth looking whether a slot is still to be kept for rare work …
const GUARDED_FOR: Millis = Millis::from_secs(5);
/// … and whether one is still to be kept for a wide job.
const RESERVED_FOR: Millis = Millis::from_secs(60);

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

/// Lines that a decision left unread are read by another one so much later: seldom enough that
/// they take a hundredth of a core at most.
const READ_ON_AFTER: Millis = Millis(10);

impl World {
    /// The policy, as it was given.
    pub const fn given_policy(&self) -> &Policy {
        &self.policies.given
    }

    /// The next moment at which a decision may differ although nothing happened: a job's time
    /// comes, a slot that was kept from one may be its own, or lines are unread. `None` means
    /// never.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let kept_for = if self.reservations.is_empty() { GUARDED_FOR } else { RESERVED_FOR };
        let look_again = self.has_kept.then(|| self.now + kept_for);
        let read_on = self.has_unread.then(|| self.now + READ_ON_AFTER);
        look_again.into_iter().chain(read_on).chain(self.queue.next_timer()).min()
    }

    /// How many names this world has heard: of tenants, types, pools, needs, hints, resources.
    pub fn n_names(&self) -> usize {
        self.names.len() + self.tenants.iter().count()
    }

    /// Forgets names, tenants, types and resources that nothing uses and nobody set. What is
    /// decided stays the same; a worker that left is here again until it leaves once more.
    pub fn forget_unused(&mut self) {
        let mut snapshot = self.snapshot();
        let used: BTreeSet<TenantId> = self
            .tenants
            .iter()
            .filter(|(_, sharer)| sharer.counts())
            .map(|(_, sharer)| sharer.tenant.id.clone())
            .collect();
        snapshot.tenants.retain(|tenant| {
            let is_set = tenant.clone() != Tenant::new(tenant.id.clone());
            used.contains(&tenant.id) || is_set
        });
        snapshot.types.retain(|kind| {
            let since_seen = kind.seen.map_or(TYPE_KEPT, |seen| self.now.since(seen));
            let is_set = JobType { seen: None, recent: None, rotation: 0, ..kind.clone() }
                != JobType::new(kind.name.clone());
            is_set || since_seen < TYPE_KEPT
        });
        snapshot
            .resources
            .retain(|resource| resource.tenant.is_some() || resource.holder.is_some());
        *self = Self::from_snapshot(&snapshot);
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
