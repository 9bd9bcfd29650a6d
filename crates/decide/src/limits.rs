//! Hard limits: what may not start, whatever its score.

use model::policy::Turn;
use model::{Fixed, Reason};

use crate::catalogue::Class;
use crate::queue::{Line, LineKey};
use crate::table::{JobIx, NameIx, TenantIx, WorkerIx};
use crate::waiting::{AskIx, Waiting};
use crate::world::World;

impl World {
    /// The limit that forbids every job of a line, if any does, in the order of [`Reason`].
    pub(crate) fn line_limit(&self, key: &LineKey) -> Option<Reason> {
        let sharer = &self.tenants[key.tenant];
        if !sharer.tenant.active {
            return Some(Reason::TenantPaused);
        }
        if sharer.tenant.jobs_max.is_some_and(|max| sharer.n_running >= max) {
            return Some(Reason::TenantAtJobsMax);
        }
        if self.kind_is_full(self.fleet.catalogue.fit_of(key.class).key.kind) {
            return Some(Reason::TypeAtMax);
        }
        key.ask
            .is_some_and(|ask| !self.is_to_be_had(ask, key.tenant))
            .then_some(Reason::ResourceHeld)
    }

    /// Whether as many jobs of the type run as may.
    pub(crate) fn kind_is_full(&self, kind: Option<NameIx>) -> bool {
        let kind = kind.and_then(|kind| self.kinds.get(kind));
        kind.is_some_and(|kind| kind.settings.jobs_max.is_some_and(|max| kind.n_running >= max))
    }

    /// Whether a job of the tenant could hold this now.
    pub(crate) fn is_to_be_had(&self, ask: AskIx, tenant: TenantIx) -> bool {
        match ask {
            AskIx::Named(name) => self.resources.get(&name).is_none_or(|resource| {
                let owner = resource.tenant.as_ref();
                resource.holder.is_none()
                    && owner.is_none_or(|owner| *owner == self.tenants[tenant].tenant.id)
            }),
            AskIx::Any => {
                let sharer = &self.tenants[tenant];
                let is_named_free =
                    self.resources_free.get(&tenant).is_some_and(|free| !free.is_empty());
                is_named_free || sharer.workspaces_used < sharer.tenant.workspaces.unwrap_or(0)
            }
        }
    }

    /// The tenant's maximum in a pool. Where quotas come first, each recent eviction lowers it by
    /// one slot, down to the minimum: who was evicted does not refill at once.
    pub(crate) fn slots_max(&self, tenant: TenantIx, pool: NameIx) -> Option<u32> {
        let sharer = &self.tenants[tenant];
        let (min, max) = sharer.quota(pool);
        let max = max?;
        if self.policy.turn != Turn::QuotaFirst {
            return Some(max);
        }
        let recent = sharer.evictions_within(pool, self.policy.eviction_cooldown, self.now);
        Some(max.saturating_sub(recent).max(min))
    }

    /// Whether the tenant's quota in the pool has room for so many slots more.
    pub(crate) fn quota_allows(&self, tenant: TenantIx, pool: NameIx, slots: u32) -> bool {
        self.slots_max(tenant, pool)
            .is_none_or(|max| self.tenants[tenant].slots(pool) + u64::from(slots) <= u64::from(max))
    }

    /// Whether the worker may run one more job of the type.
    pub(crate) fn kind_allows(&self, worker: WorkerIx, kind: Option<NameIx>) -> bool {
        let Some(kind) = kind else { return true };
        let seated = &self.fleet.workers[worker];
        let set = self.kinds.get(kind).and_then(|kind| kind.settings.worker_max);
        let declared = if seated.worker.type_max.is_empty() {
            None
        } else {
            seated.worker.type_max.get(self.names.name(kind)).copied()
        };
        [set, declared].into_iter().flatten().all(|max| seated.n_of(kind) < max)
    }

    /// Whether quota and type let a job of this class and tenant onto the worker.
    pub(crate) fn worker_allows(&self, worker: WorkerIx, class: &Class, tenant: TenantIx) -> bool {
        let kind = self.fleet.catalogue.fits[class.key.fit].key.kind;
        self.quota_allows(tenant, self.fleet.workers[worker].pool, class.key.slots)
            && self.kind_allows(worker, kind)
    }

    /// What a job of the tenant may cost at most; `None` means that there is no limit.
    pub(crate) fn cost_max(&self, tenant: TenantIx) -> Option<Fixed> {
        let lefts = [self.tenants[tenant].budget_left(), self.budget_left()];
        lefts.into_iter().flatten().min()
    }

    /// The first job of the line, by its order, that passes `test` and that budgets cover.
    pub(crate) fn first_covered(
        &self,
        line: &Line,
        test: impl Fn(&Waiting) -> bool,
    ) -> Option<JobIx> {
        let cost_max = self.cost_max(line.key.tenant);
        if cost_max.is_some_and(|max| line.cost_min > max) {
            return None;
        }
        line.jobs.values().copied().find(|ix| {
            let waiting = &self.queue.jobs[*ix];
            cost_max.is_none_or(|max| waiting.cost <= max) && test(waiting)
        })
    }
}
