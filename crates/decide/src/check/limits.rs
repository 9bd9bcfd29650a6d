//! Hard limits as meters: what is used, what one more job would add, what may be used.

use std::collections::BTreeMap;
use std::fmt;

use model::policy::Turn;
use model::{Fixed, Job, Name, Quota, TenantId, Worker, WorkerId};

use super::ledger::{Ledger, Placed};

/// Something that must not be exceeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    /// Free slots of a worker.
    Slots(WorkerId),
    /// What is left of an amount of a worker.
    Amount(WorkerId, Name),
    /// Slots of a tenant in a pool.
    Quota(TenantId, Name),
    /// Jobs of a tenant at once.
    TenantJobs(TenantId),
    /// Jobs of a type at once.
    TypeJobs(Name),
    /// Jobs of a type at once on one worker, by the settings of the type.
    TypeWorkerJobs(Name, WorkerId),
    /// Jobs of a type at once on one worker, by its own word.
    WorkerTypeJobs(WorkerId, Name),
    /// Cost of a tenant within the window.
    Budget(TenantId),
    /// Cost of all tenants together within the window.
    BudgetGlobal,
    /// Workspaces of a tenant that have no name.
    Workspaces(TenantId),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots(worker) => write!(f, "new slots on worker {worker}"),
            Self::Amount(worker, name) => write!(f, "new {name} on worker {worker}"),
            Self::Quota(tenant, pool) => write!(f, "slots of tenant {tenant} in pool {pool}"),
            Self::TenantJobs(tenant) => write!(f, "jobs of tenant {tenant}"),
            Self::TypeJobs(kind) => write!(f, "jobs of type {kind}"),
            Self::TypeWorkerJobs(kind, worker) => write!(f, "jobs of type {kind} on {worker}"),
            Self::WorkerTypeJobs(worker, kind) => {
                write!(f, "jobs that worker {worker} runs of type {kind}")
            }
            Self::Budget(tenant) => write!(f, "cost of tenant {tenant}"),
            Self::BudgetGlobal => f.write_str("cost of all tenants together"),
            Self::Workspaces(tenant) => write!(f, "workspaces of tenant {tenant}"),
        }
    }
}

/// One limit as it stands once the placements have started.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    pub(super) limit: Limit,
    /// What is used.
    pub(super) used: Fixed,
    /// What one more job would add.
    pub(super) ask: Fixed,
    /// What may be used.
    pub(super) max: Fixed,
}

impl Meter {
    pub(super) fn is_over(&self) -> bool {
        self.used > self.max
    }

    pub(super) fn allows_one_more(&self) -> bool {
        self.used + self.ask <= self.max
    }
}

/// Free slots of `worker` before the decision; below zero if more runs than it has slots for.
pub(super) fn slots_free_before(ledger: &Ledger<'_>, worker: &Worker) -> i128 {
    let taken = sum_of(&ledger.running.worker_slots, &&worker.id);
    let left = i128::from(worker.slots) - i128::from(taken);
    worker.slots_free.map_or(left, |free| left.min(free.into()))
}

/// Free slots of `worker` once the placements have started.
pub(super) fn slots_free(ledger: &Ledger<'_>, worker: &Worker) -> u64 {
    let placed = sum_of(&ledger.placed.worker_slots, &&worker.id);
    let left = slots_free_before(ledger, worker) - i128::from(placed);
    u64::try_from(left.max(0)).unwrap_or(u64::MAX)
}

/// Room of `worker` for `job`: slots, and each amount that it asks for.
pub(super) fn room(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> Vec<Meter> {
    let taken = sum_of(&ledger.running.worker_slots, &&worker.id);
    let left = u64::from(worker.slots).saturating_sub(taken);
    let slots = Meter {
        limit: Limit::Slots(worker.id.clone()),
        used: whole(sum_of(&ledger.placed.worker_slots, &&worker.id)),
        ask: whole(job.slots.into()),
        max: whole(left.min(worker.slots_free.unwrap_or(worker.slots).into())),
    };
    let amounts = job.amounts.iter().filter(|(_, asked)| **asked > 0).map(|(name, asked)| {
        let total = worker.amounts.get(name).copied().unwrap_or(0);
        let taken = sum_of(&ledger.running.worker_amounts, &(&worker.id, name));
        Meter {
            limit: Limit::Amount(worker.id.clone(), name.clone()),
            used: whole(sum_of(&ledger.placed.worker_amounts, &(&worker.id, name))),
            ask: whole(*asked),
            max: whole(total.saturating_sub(taken)),
        }
    });
    std::iter::once(slots).chain(amounts).collect()
}

/// The quota of the tenant of `job` in `pool`; `None` if it has no maximum there.
pub(super) fn quota(ledger: &Ledger<'_>, job: &Job, pool: &Name) -> Option<Meter> {
    let quota = ledger.tenant(&job.tenant)?.quota(pool);
    Some(Meter {
        limit: Limit::Quota(job.tenant.clone(), pool.clone()),
        used: whole(ledger.tenant_slots(&job.tenant, pool)),
        ask: whole(job.slots.into()),
        max: whole(adjusted_max(ledger, job, &quota)?),
    })
}

/// The quota of the tenant of a job that is placed in a pool. Jobs of a higher maximum may have
/// been placed after it: of two parts, each may have a maximum of its own.
pub(super) fn quota_of_placed(ledger: &Ledger<'_>, placed: &Placed<'_>) -> Option<Meter> {
    let (tenant, pool) = (&placed.job.tenant, &placed.worker.pool);
    let meter = quota(ledger, placed.job, pool)?;
    let is_later = |other: &&Placed<'_>| {
        other.job.tenant == *tenant
            && other.worker.pool == *pool
            && quota(ledger, other.job, pool).is_some_and(|own| own.max > meter.max)
    };
    let later = ledger.placements.iter().filter(is_later);
    let later: u64 = later.map(|other| u64::from(other.job.slots)).sum();
    Some(Meter { used: meter.used - whole(later), ..meter })
}

/// The maximum of `quota` for `job`. Recent evictions lower it where the policy that decides on the
/// job goes by quotas.
fn adjusted_max(ledger: &Ledger<'_>, job: &Job, quota: &Quota) -> Option<u64> {
    let (min, max) = (u64::from(quota.min), u64::from(quota.max?));
    let (before, policy) = (ledger.before, ledger.policy_of(job));
    if policy.turn != Turn::QuotaFirst {
        return Some(max);
    }
    let is_recent = |at| before.now.since(at) < policy.eviction_cooldown;
    let mut evictions = 0;
    for eviction in &before.evictions {
        if eviction.tenant == job.tenant && eviction.pool == quota.pool && is_recent(eviction.at) {
            evictions += 1;
        }
    }
    Some(max.saturating_sub(evictions).max(min))
}

/// How many jobs the tenant of `job` runs; `None` if it may run any number.
pub(super) fn tenant_jobs(ledger: &Ledger<'_>, job: &Job) -> Option<Meter> {
    let max = ledger.tenant(&job.tenant)?.jobs_max?;
    let of = |jobs| sum_of(jobs, &&job.tenant);
    let used = of(&ledger.running.tenant_jobs) + of(&ledger.placed.tenant_jobs);
    Some(jobs_meter(Limit::TenantJobs(job.tenant.clone()), used, max))
}

/// How many jobs of the type of `job` run; `None` if any number may.
pub(super) fn type_jobs(ledger: &Ledger<'_>, job: &Job) -> Option<Meter> {
    let kind = job.kind.as_ref()?;
    let max = ledger.job_type(job)?.jobs_max?;
    let used = sum_of(&ledger.running.type_jobs, &kind) + sum_of(&ledger.placed.type_jobs, &kind);
    Some(jobs_meter(Limit::TypeJobs(kind.clone()), used, max))
}

/// How many jobs of the type of `job` run on `worker`, by each limit there is on that.
pub(super) fn type_worker_jobs(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> Vec<Meter> {
    let Some(kind) = &job.kind else { return Vec::new() };
    let of = |jobs| sum_of(jobs, &(kind, &worker.id));
    let used = of(&ledger.running.type_worker_jobs) + of(&ledger.placed.type_worker_jobs);
    let by_type = ledger
        .job_type(job)
        .and_then(|settings| settings.worker_max)
        .map(|max| jobs_meter(Limit::TypeWorkerJobs(kind.clone(), worker.id.clone()), used, max));
    let by_worker = worker
        .type_max
        .get(kind)
        .map(|max| jobs_meter(Limit::WorkerTypeJobs(worker.id.clone(), kind.clone()), used, *max));
    by_type.into_iter().chain(by_worker).collect()
}

/// The budget of the tenant of `job`; `None` if it has none.
pub(super) fn budget(ledger: &Ledger<'_>, job: &Job) -> Option<Meter> {
    let tenant = ledger.tenant(&job.tenant)?;
    let of = |costs: &BTreeMap<&TenantId, Fixed>| costs.get(&job.tenant).copied();
    let running = of(&ledger.running.tenant_cost).unwrap_or_default();
    let placed = of(&ledger.placed.tenant_cost).unwrap_or_default();
    Some(Meter {
        limit: Limit::Budget(job.tenant.clone()),
        used: tenant.used + running + placed,
        ask: job.cost,
        max: tenant.budget?,
    })
}

/// The budget of all tenants together; `None` if there is none.
pub(super) fn budget_global(ledger: &Ledger<'_>, job: &Job) -> Option<Meter> {
    let budget = ledger.before.budget?;
    Some(Meter {
        limit: Limit::BudgetGlobal,
        used: budget.used + ledger.running.cost + ledger.placed.cost,
        ask: job.cost,
        max: budget.limit,
    })
}

/// The workspaces without a name of the tenant of `job`. A tenant that gives no number has none.
pub(super) fn workspaces(ledger: &Ledger<'_>, job: &Job) -> Meter {
    let max = ledger.tenant(&job.tenant).and_then(|tenant| tenant.workspaces).unwrap_or(0);
    let of = |workspaces| sum_of(workspaces, &&job.tenant);
    let used = of(&ledger.running.tenant_workspaces) + of(&ledger.placed.tenant_workspaces);
    jobs_meter(Limit::Workspaces(job.tenant.clone()), used, max)
}

/// A meter on which each job counts one.
fn jobs_meter(limit: Limit, used: u64, max: u32) -> Meter {
    Meter { limit, used: whole(used), ask: Fixed::ONE, max: whole(max.into()) }
}

fn sum_of<K: Ord>(sums: &BTreeMap<K, u64>, key: &K) -> u64 {
    sums.get(key).copied().unwrap_or(0)
}

fn whole(number: u64) -> Fixed {
    Fixed::whole(i64::try_from(number).unwrap_or(i64::MAX))
}
