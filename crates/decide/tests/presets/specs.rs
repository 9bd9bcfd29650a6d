//! Saying more about a worker, a job, a tenant, an attempt, a type or a resource.

use std::collections::BTreeMap;

use model::tenant::Trust;
use model::{
    Ask, Attempt, Fixed, History, Inputs, Job, JobId, JobType, Metrics, Millis, Name, Quota,
    Resource, Tenant, TenantId, Timestamp, Trait, Worker, WorkerId,
};

use crate::world::NOW;

pub(crate) struct WorkerSpec<'a>(pub(crate) &'a mut Worker);
pub(crate) struct JobSpec<'a>(pub(crate) &'a mut Job);
pub(crate) struct TenantSpec<'a>(pub(crate) &'a mut Tenant);
pub(crate) struct AttemptSpec<'a>(pub(crate) &'a mut Attempt);
pub(crate) struct TypeSpec<'a>(pub(crate) &'a mut JobType);
pub(crate) struct ResourceSpec<'a>(pub(crate) &'a mut Resource);

/// One method a line: what it is called, what it is given, and what it sets.
macro_rules! says {
    ($spec:ident: $($method:ident($($given:ident: $what:ty),*) $thing:ident => $set:expr;)*) => {
        impl $spec<'_> {
            $(
                pub(crate) fn $method(self, $($given: $what),*) -> Self {
                    let $thing = &mut *self.0;
                    $set;
                    self
                }
            )*
        }
    };
}

/// Ends a description where nothing may be returned.
macro_rules! ends {
    ($($spec:ident),*) => {
        $(
            impl $spec<'_> {
                pub(crate) fn done(self) {
                    let _ = self.0;
                }
            }
        )*
    };
}

ends!(WorkerSpec, JobSpec, TypeSpec);

says! { WorkerSpec:
    pool(name: &str) worker => worker.pool = Name::new(name);
    types(types: &[&str]) worker => worker.types = names(types);
    type_max(name: &str, max: u32) worker => worker.type_max.insert(Name::new(name), max);
    offers(key: &str, values: &[&str]) worker => worker.has.insert(Name::new(key), names(values));
    slots(slots: u32) worker => worker.slots = slots;
    slots_free(slots: u32) worker => worker.slots_free = Some(slots);
    amount(name: &str, amount: u64) worker => worker.amounts.insert(Name::new(name), amount);
    rank(rank: i32) worker => worker.rank = rank;
    unhealthy() worker => worker.healthy = false;
    draining() worker => worker.draining = true;
    hints(hints: &[&str]) worker => worker.hints = names(hints);
    metrics(metrics: Metrics) worker => worker.metrics = metrics;
}

says! { JobSpec:
    tenant(id: &str) job => job.tenant = TenantId::new(id);
    kind(name: &str) job => job.kind = Some(Name::new(name));
    pool(name: &str) job => job.pool = Some(Name::new(name));
    needs(key: &str, values: &[&str]) job => job.needs.insert(Name::new(key), names(values));
    slots(slots: u32) job => job.slots = slots;
    amount(name: &str, amount: u64) job => job.amounts.insert(Name::new(name), amount);
    priority(priority: i32) job => job.priority = priority;
    on_demand() job => job.on_demand = true;
    age_s(seconds: i64) job => set_age(job, seconds * 1_000);
    age_ms(millis: i64) job => set_age(job, millis);
    created_ms_ago(millis: i64) job => job.created = Timestamp(NOW.0 - millis);
    not_before_ms(millis: i64) job => job.not_before = Some(Timestamp(NOW.0 + millis));
    backoff_ms(millis: i64) job => job.backoff_until = Some(Timestamp(NOW.0 + millis));
    estimate_s(seconds: i64) job => job.estimate = Some(Millis::from_secs(seconds));
    is(fact: Trait) job => job.traits = job.traits.with(fact);
    hint(hint: &str) job => job.hint = Some(Name::new(hint));
    holding(name: &str) job => job.resource = Some(Ask::Named(Name::new(name)));
    holding_any() job => job.resource = Some(Ask::Any);
    cost(cost: i64) job => job.cost = Fixed::whole(cost);
    dependents(dependents: u32) job => job.dependents = Some(dependents);
    missing_paths(worker: &str, n_paths: u32) job =>
        inputs(job, worker).missing_paths = Some(n_paths);
    missing_bytes(worker: &str, bytes: u64) job =>
        inputs(job, worker).missing_bytes = Some(bytes);
    rescored(count: u32) job => job.rescore_count = count;
    history(history: History) job => job.history = Some(history);
}

says! { TenantSpec:
    weight(weight: i64) tenant => tenant.weight = Fixed::whole(weight);
    paused() tenant => tenant.active = false;
    used(used: i64) tenant => tenant.used = Fixed::whole(used);
    ahead_s(seconds: i64) tenant => stand_ahead(tenant, seconds);
    trusted() tenant => tenant.account.trust = well_known();
    completed(completed: u64) tenant => tenant.completed = completed;
    budget(budget: i64) tenant => tenant.budget = Some(Fixed::whole(budget));
    jobs_max(max: u32) tenant => tenant.jobs_max = Some(max);
    workspaces(count: u32) tenant => tenant.workspaces = Some(count);
    min(pool: &str, min: u32) tenant => quota(tenant, pool).min = min;
    max(pool: &str, max: u32) tenant => quota(tenant, pool).max = Some(max);
}

says! { AttemptSpec:
    tenant(id: &str) attempt => attempt.tenant = TenantId::new(id);
    kind(name: &str) attempt => attempt.kind = Some(Name::new(name));
    slots(slots: u32) attempt => attempt.slots = slots;
    amount(name: &str, amount: u64) attempt => attempt.amounts.insert(Name::new(name), amount);
    priority(priority: i32) attempt => attempt.priority = priority;
    ready_s_ago(seconds: i64) attempt => attempt.ready = NOW - Millis::from_secs(seconds);
    started_s_ago(seconds: i64) attempt => attempt.started = NOW - Millis::from_secs(seconds);
    cost(cost: i64) attempt => attempt.cost = Fixed::whole(cost);
    estimate_s(seconds: i64) attempt => attempt.estimate = Some(Millis::from_secs(seconds));
    holding(name: &str) attempt => attempt.holds = Some(Ask::Named(Name::new(name)));
    holding_any() attempt => attempt.holds = Some(Ask::Any);
    on_demand() attempt => attempt.on_demand = true;
    stopping_for(job: &str) attempt => attempt.stopping_for = Some(JobId::new(job));
}

says! { TypeSpec:
    pool(name: &str) kind => kind.pool = Some(Name::new(name));
    jobs_max(max: u32) kind => kind.jobs_max = Some(max);
    worker_max(max: u32) kind => kind.worker_max = Some(max);
    rotation(count: u64) kind => kind.rotation = count;
}

says! { ResourceSpec:
    tenant(id: &str) resource => resource.tenant = Some(TenantId::new(id));
    held_by(job: &str) resource => resource.holder = Some(JobId::new(job));
}

/// It competes, and is so many slot-seconds ahead of its share for each unit of its weight.
fn stand_ahead(tenant: &mut Tenant, seconds: i64) {
    tenant.account.competes = true;
    tenant.account.ahead = Fixed::whole(seconds * 1_000);
}

/// A thousand runs from one to 2^20 milliseconds, each predicted to the point.
fn well_known() -> Trust {
    let lengths = || (0..1_000_i64).map(|at| at % 21 * 1_000);
    Trust {
        runs: Fixed::whole(1_000),
        sum: lengths().sum(),
        squares: lengths().map(|length| length * length).sum(),
        errors: 0,
    }
}

fn set_age(job: &mut Job, millis: i64) {
    job.created = Timestamp(NOW.0 - millis);
    job.ready = job.created;
}

fn inputs<'a>(job: &'a mut Job, worker: &str) -> &'a mut Inputs {
    let inputs: &mut BTreeMap<WorkerId, Inputs> = &mut job.inputs;
    inputs.entry(WorkerId::new(worker)).or_default()
}

fn quota<'a>(tenant: &'a mut Tenant, pool: &str) -> &'a mut Quota {
    let pool = Name::new(pool);
    let place = tenant.quotas.iter().position(|quota| quota.pool == pool);
    let place = place.unwrap_or_else(|| {
        tenant.quotas.push(Quota { pool, min: 0, max: None });
        tenant.quotas.len() - 1
    });
    &mut tenant.quotas[place]
}

fn names(texts: &[&str]) -> Vec<Name> {
    let mut names: Vec<Name> = texts.iter().map(|text| Name::new(text)).collect();
    names.sort();
    names
}
