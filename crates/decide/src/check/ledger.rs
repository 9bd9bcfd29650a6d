//! What runs and what a decision adds to it, added up from the plain snapshot.

use std::collections::{BTreeMap, BTreeSet};

use model::job::Amounts;
use model::{
    Action, Ask, Attempt, Decision, Fixed, Job, JobId, JobType, Name, Placement, Policy, Preempt,
    Resource, Snapshot, Tenant, TenantId, Worker, WorkerId,
};

/// A snapshot, a decision about it, and the sums of both.
pub(super) struct Ledger<'a> {
    pub(super) before: &'a Snapshot,
    pub(super) decision: &'a Decision,
    /// Placements whose job and worker are both in the snapshot.
    pub(super) placements: Vec<Placed<'a>>,
    /// What runs already.
    pub(super) running: Sums<'a>,
    /// What the placements add.
    pub(super) placed: Sums<'a>,
    /// Jobs for which an attempt was told to stop, in this decision or before.
    pub(super) preempting: BTreeSet<&'a JobId>,
    jobs: BTreeMap<&'a JobId, &'a Job>,
    workers: BTreeMap<&'a WorkerId, &'a Worker>,
    tenants: BTreeMap<&'a TenantId, &'a Tenant>,
    types: BTreeMap<&'a Name, &'a JobType>,
    resources: BTreeMap<&'a Name, &'a Resource>,
}

/// A placement with what it names.
#[derive(Clone, Copy)]
pub(super) struct Placed<'a> {
    pub(super) job: &'a Job,
    pub(super) worker: &'a Worker,
    /// The resource it was given, if it asked for any free one.
    pub(super) given: Option<&'a Name>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(before: &'a Snapshot, decision: &'a Decision) -> Self {
        let mut ledger = Self {
            before,
            decision,
            placements: Vec::new(),
            running: Sums::default(),
            placed: Sums::default(),
            preempting: BTreeSet::new(),
            jobs: before.jobs.iter().map(|job| (&job.id, job)).collect(),
            workers: before.workers.iter().map(|worker| (&worker.id, worker)).collect(),
            tenants: before.tenants.iter().map(|tenant| (&tenant.id, tenant)).collect(),
            types: before.types.iter().map(|kind| (&kind.name, kind)).collect(),
            resources: before.resources.iter().map(|res| (&res.name, res)).collect(),
        };
        for attempt in &before.attempts {
            let pool = ledger.worker(&attempt.worker).map(|worker| &worker.pool);
            ledger.running.add(&Load::of_attempt(attempt, pool));
        }
        ledger.placements = decision
            .actions
            .iter()
            .filter_map(as_placement)
            .filter_map(|placement| {
                let job = ledger.job(&placement.job)?;
                let worker = ledger.worker(&placement.worker)?;
                Some(Placed { job, worker, given: placement.resource.as_ref() })
            })
            .collect();
        for placed in &ledger.placements {
            ledger.placed.add(&Load::of_placement(placed));
        }
        let told_now = decision.actions.iter().filter_map(as_preempt).map(|act| &act.preemptor);
        let told_before = before.attempts.iter().filter_map(|run| run.stopping_for.as_ref());
        ledger.preempting = told_now.chain(told_before).collect();
        ledger
    }

    pub(super) fn job(&self, id: &JobId) -> Option<&'a Job> {
        self.jobs.get(id).copied()
    }

    pub(super) fn worker(&self, id: &WorkerId) -> Option<&'a Worker> {
        self.workers.get(id).copied()
    }

    pub(super) fn tenant(&self, id: &TenantId) -> Option<&'a Tenant> {
        self.tenants.get(id).copied()
    }

    /// The settings of the type of `job`; `None` if it has no type, or its type has no settings.
    pub(super) fn job_type(&self, job: &Job) -> Option<&'a JobType> {
        self.types.get(job.kind.as_ref()?).copied()
    }

    /// The pool that `job` must run in: the one that it names, else the one of its type.
    pub(super) fn pool_of<'b>(&self, job: &'b Job) -> Option<&'b Name>
    where
        'a: 'b,
    {
        job.pool.as_ref().or_else(|| self.job_type(job)?.pool.as_ref())
    }

    /// The policy that decides on `job`.
    pub(super) fn policy_of(&self, job: &Job) -> &'a Policy {
        let own = self.pool_of(job).and_then(|pool| self.before.pools.get(pool));
        own.unwrap_or(&self.before.policy)
    }

    /// The policies of all parts.
    pub(super) fn policies(&self) -> impl Iterator<Item = &'a Policy> {
        self.before.pools.values().chain([&self.before.policy])
    }

    pub(super) fn resource(&self, name: &Name) -> Option<&'a Resource> {
        self.resources.get(name).copied()
    }

    /// Slots of `tenant` in `pool`, once the placements have started.
    pub(super) fn tenant_slots(&self, tenant: &TenantId, pool: &Name) -> u64 {
        let of = |sums: &Sums<'_>| sums.tenant_slots.get(&(tenant, pool)).copied().unwrap_or(0);
        of(&self.running) + of(&self.placed)
    }

    pub(super) fn is_placed(&self, job: &JobId) -> bool {
        self.placements.iter().any(|placed| placed.job.id == *job)
    }
}

/// The placement that `action` is, if it is one.
pub(super) const fn as_placement(action: &Action) -> Option<&Placement> {
    match action {
        Action::Place(placement) => Some(placement),
        Action::Preempt(_) | Action::Defer(_) => None,
    }
}

/// The preemption that `action` is, if it is one.
pub(super) const fn as_preempt(action: &Action) -> Option<&Preempt> {
    match action {
        Action::Preempt(preempt) => Some(preempt),
        Action::Place(_) | Action::Defer(_) => None,
    }
}

/// What some jobs take together. A key that is absent means nothing is taken.
#[derive(Default)]
pub(super) struct Sums<'a> {
    pub(super) worker_jobs: BTreeMap<&'a WorkerId, u64>,
    pub(super) worker_slots: BTreeMap<&'a WorkerId, u64>,
    pub(super) worker_amounts: BTreeMap<(&'a WorkerId, &'a Name), u64>,
    pub(super) tenant_jobs: BTreeMap<&'a TenantId, u64>,
    pub(super) tenant_slots: BTreeMap<(&'a TenantId, &'a Name), u64>,
    pub(super) tenant_cost: BTreeMap<&'a TenantId, Fixed>,
    pub(super) tenant_workspaces: BTreeMap<&'a TenantId, u64>,
    pub(super) type_jobs: BTreeMap<&'a Name, u64>,
    pub(super) type_worker_jobs: BTreeMap<(&'a Name, &'a WorkerId), u64>,
    pub(super) resource_holders: BTreeMap<&'a Name, u64>,
    pub(super) cost: Fixed,
}

impl<'a> Sums<'a> {
    fn add(&mut self, load: &Load<'a>) {
        *self.worker_jobs.entry(load.worker).or_default() += 1;
        *self.worker_slots.entry(load.worker).or_default() += u64::from(load.slots);
        for (name, amount) in load.amounts {
            *self.worker_amounts.entry((load.worker, name)).or_default() += amount;
        }
        *self.tenant_jobs.entry(load.tenant).or_default() += 1;
        if let Some(pool) = load.pool {
            let slots = self.tenant_slots.entry((load.tenant, pool)).or_default();
            *slots += u64::from(load.slots);
        }
        *self.tenant_cost.entry(load.tenant).or_default() += load.cost;
        self.cost += load.cost;
        if let Some(kind) = load.kind {
            *self.type_jobs.entry(kind).or_default() += 1;
            *self.type_worker_jobs.entry((kind, load.worker)).or_default() += 1;
        }
        match load.holds {
            Some(Held::Named(name)) => *self.resource_holders.entry(name).or_default() += 1,
            Some(Held::Workspace) => *self.tenant_workspaces.entry(load.tenant).or_default() += 1,
            None => {}
        }
    }
}

/// What one job takes while it runs.
struct Load<'a> {
    tenant: &'a TenantId,
    worker: &'a WorkerId,
    pool: Option<&'a Name>,
    kind: Option<&'a Name>,
    slots: u32,
    amounts: &'a Amounts,
    cost: Fixed,
    holds: Option<Held<'a>>,
}

/// What one job holds alone while it runs.
#[derive(Clone, Copy)]
enum Held<'a> {
    Named(&'a Name),
    Workspace,
}

impl<'a> Load<'a> {
    fn of_attempt(attempt: &'a Attempt, pool: Option<&'a Name>) -> Self {
        Self {
            tenant: &attempt.tenant,
            worker: &attempt.worker,
            pool,
            kind: attempt.kind.as_ref(),
            slots: attempt.slots,
            amounts: &attempt.amounts,
            cost: attempt.cost,
            holds: held(attempt.holds.as_ref(), None),
        }
    }

    fn of_placement(placed: &Placed<'a>) -> Self {
        let Placed { job, worker, given } = *placed;
        Self {
            tenant: &job.tenant,
            worker: &worker.id,
            pool: Some(&worker.pool),
            kind: job.kind.as_ref(),
            slots: job.slots,
            amounts: &job.amounts,
            cost: job.cost,
            holds: held(job.resource.as_ref(), given),
        }
    }
}

/// What a job holds that asks for `ask` and was given the resource `given`, if any.
fn held<'a>(ask: Option<&'a Ask>, given: Option<&'a Name>) -> Option<Held<'a>> {
    match ask? {
        Ask::Named(name) => Some(Held::Named(name)),
        Ask::Any => Some(given.map_or(Held::Workspace, Held::Named)),
    }
}
