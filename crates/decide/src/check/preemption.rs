//! Nobody is told to stop without need, without use, or below what they are due.

use std::collections::BTreeMap;

use model::{Attempt, Fixed, Job, JobId, Name, Preempt, Reason, TenantId, Worker};

use super::fit::{could_ever_run, misfit};
use super::holds::{first_reason_anywhere, is_open};
use super::ledger::{Ledger, as_preempt};
use super::limits::{self, Limit, Meter};
use super::{Flaw, Violation};

/// A preemption with what it names.
#[derive(Clone, Copy)]
struct Case<'a> {
    victim: &'a Attempt,
    worker: &'a Worker,
    preemptor: &'a Job,
}

/// What is wrong with the preemptions.
pub(super) fn check(ledger: &Ledger<'_>) -> Vec<Violation> {
    let preempts = ledger.decision.actions.iter().filter_map(as_preempt);
    let cases: Vec<Case<'_>> = preempts.filter_map(|act| find(ledger, act)).collect();

    let mut violations = Vec::new();
    for case in &cases {
        let mut flaws = preemptor_flaws(ledger, case);
        flaws.extend(not_below_min(ledger, &cases, case));
        flaws.extend(worker_flaws(ledger, &cases, case));
        flaws.extend(victim_flaws(ledger, case));
        flaws.extend(tenant_below_min(ledger, &cases, case));
        violations.extend(flaws.into_iter().map(|flaw| Violation::Preemption {
            victim: case.victim.job.clone(),
            worker: case.worker.id.clone(),
            preemptor: case.preemptor.id.clone(),
            flaw,
        }));
    }
    violations
}

/// What `preempt` names, if all of it is in the snapshot.
fn find<'a>(ledger: &Ledger<'a>, preempt: &Preempt) -> Option<Case<'a>> {
    let is_victim = |run: &&Attempt| run.job == preempt.victim && run.worker == preempt.worker;
    Some(Case {
        victim: ledger.before.attempts.iter().find(is_victim)?,
        worker: ledger.worker(&preempt.worker)?,
        preemptor: ledger.job(&preempt.preemptor)?,
    })
}

/// Whether the preemptor may ask others to stop at all.
fn preemptor_flaws(ledger: &Ledger<'_>, case: &Case<'_>) -> Vec<Flaw> {
    let Case { worker, preemptor, .. } = *case;
    let before = ledger.before;
    let policy = &ledger.policy_of(preemptor).preemption;
    let mut flaws = Vec::new();
    if !policy.enabled {
        flaws.push(Flaw::Off);
    }
    let waited = before.now.since(preemptor.ready);
    if waited < policy.delay {
        flaws.push(Flaw::TooSoon(waited, policy.delay));
    }
    if let Some(reason) = first_reason_anywhere(ledger, preemptor) {
        flaws.push(Flaw::NotRunnable(reason));
    }
    if limits::quota(ledger, preemptor, &worker.pool).is_some_and(|meter| !meter.allows_one_more())
    {
        flaws.push(Flaw::NotRunnable(Reason::TenantAtMax));
    }
    let mut attempts = before.attempts.iter();
    if let Some(stopping) = attempts.find(|run| run.stopping_for.as_ref() == Some(&preemptor.id)) {
        flaws.push(Flaw::WaitsAlready(stopping.job.clone()));
    }
    flaws
}

/// Whether the preemptor's tenant is below its minimum in the worker's pool.
///
/// The order of actions does not count: of several preemptors, the widest is taken to be the last,
/// and what the others were promised counts as if they had it.
fn not_below_min(ledger: &Ledger<'_>, cases: &[Case<'_>], case: &Case<'_>) -> Option<Flaw> {
    let (tenant, pool) = (&case.preemptor.tenant, &case.worker.pool);
    let min = ledger.tenant(tenant)?.quota(pool).min;

    let preemptors = cases.iter().filter(|other| other.worker.pool == *pool);
    let new = promised(preemptors.map(|other| other.preemptor), tenant);
    let widest = new.values().copied().max().unwrap_or(0);
    let old = promised_before(ledger, tenant, pool);
    let old = old.iter().filter(|(job, _)| !new.contains_key(*job)).map(|(_, slots)| slots);

    let has = ledger.tenant_slots(tenant, pool);
    let has = has + new.values().sum::<u64>() + old.sum::<u64>() - widest;
    (has >= u64::from(min)).then_some(Flaw::NotBelowMin(has, min))
}

/// Slots that jobs of `tenant` in `pool` wait for since an earlier decision.
fn promised_before<'a>(
    ledger: &Ledger<'a>,
    tenant: &TenantId,
    pool: &Name,
) -> BTreeMap<&'a JobId, u64> {
    let attempts = ledger.before.attempts.iter();
    let stopping = attempts
        .filter(|run| ledger.worker(&run.worker).is_some_and(|worker| worker.pool == *pool));
    let jobs = stopping.filter_map(|run| ledger.job(run.stopping_for.as_ref()?));
    promised(jobs.filter(|job| !ledger.is_placed(&job.id)), tenant)
}

/// The slots of each of `jobs` that is `tenant`'s.
fn promised<'a>(
    jobs: impl Iterator<Item = &'a Job>,
    tenant: &TenantId,
) -> BTreeMap<&'a JobId, u64> {
    jobs.filter(|job| job.tenant == *tenant).map(|job| (&job.id, job.slots.into())).collect()
}

/// Whether the preemptor needs room on the worker, and gets it.
fn worker_flaws(ledger: &Ledger<'_>, cases: &[Case<'_>], case: &Case<'_>) -> Vec<Flaw> {
    let Case { worker, preemptor, .. } = *case;
    let mut flaws = Vec::new();
    if let Some(why) = misfit(ledger, preemptor, worker) {
        flaws.push(Flaw::Unfit(why));
    } else if !could_ever_run(ledger, preemptor, worker) {
        flaws.push(Flaw::TooSmall);
    }
    flaws.extend(no_room(ledger, cases, case));
    let mut workers = ledger.before.workers.iter();
    if let Some(open) = workers.find(|worker| is_open(ledger, preemptor, worker)) {
        flaws.push(Flaw::SlotFree(open.id.clone()));
    }
    let mut others = cases.iter().filter(|other| other.preemptor.id == preemptor.id);
    if let Some(other) = others.find(|other| other.worker.id != worker.id) {
        flaws.push(Flaw::ElsewhereToo(other.worker.id.clone()));
    }
    flaws
}

/// What is still missing on the worker for all preemptors there, once all victims have stopped.
fn no_room(ledger: &Ledger<'_>, cases: &[Case<'_>], case: &Case<'_>) -> Option<Flaw> {
    let here = cases.iter().filter(|other| other.worker.id == case.worker.id);
    let victims: BTreeMap<&JobId, &Attempt> =
        here.clone().map(|other| (&other.victim.job, other.victim)).collect();
    let preemptors: BTreeMap<&JobId, &Job> =
        here.map(|other| (&other.preemptor.id, other.preemptor)).collect();

    let mut meters = limits::room(ledger, case.preemptor, case.worker);
    meters.extend(limits::type_worker_jobs(ledger, case.preemptor, case.worker));
    meters.into_iter().find_map(|Meter { limit, used, max, .. }| {
        let asked: Fixed = preemptors.values().map(|job| asked_by(job, &limit)).sum();
        let freed: Fixed = victims.values().map(|run| freed_by(run, &limit)).sum();
        let missing = used + asked - freed - max;
        (missing > Fixed::ZERO).then_some(Flaw::NoRoom(limit, missing))
    })
}

/// What `job` would count towards a limit of a worker.
fn asked_by(job: &Job, limit: &Limit) -> Fixed {
    counted(limit, job.slots, &job.amounts, job.kind.as_ref())
}

/// What `attempt` counts towards a limit of its worker.
fn freed_by(attempt: &Attempt, limit: &Limit) -> Fixed {
    counted(limit, attempt.slots, &attempt.amounts, attempt.kind.as_ref())
}

/// What a job of these slots, amounts and type counts towards a limit of a worker.
fn counted(limit: &Limit, slots: u32, amounts: &BTreeMap<Name, u64>, kind: Option<&Name>) -> Fixed {
    let number = match limit {
        Limit::Slots(_) => slots.into(),
        Limit::Amount(_, name) => amounts.get(name).copied().unwrap_or(0),
        Limit::TypeWorkerJobs(name, _) | Limit::WorkerTypeJobs(_, name) => {
            u64::from(kind == Some(name))
        }
        Limit::Quota(..)
        | Limit::TenantJobs(_)
        | Limit::TypeJobs(_)
        | Limit::Budget(_)
        | Limit::BudgetGlobal
        | Limit::Workspaces(_) => 0,
    };
    Fixed::whole(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Whether the victim may be told to stop for this preemptor.
fn victim_flaws(ledger: &Ledger<'_>, case: &Case<'_>) -> Vec<Flaw> {
    let Case { victim, preemptor, .. } = *case;
    let policy = &ledger.policy_of(preemptor).preemption;
    let mut flaws = Vec::new();
    if victim.tenant == preemptor.tenant {
        flaws.push(Flaw::OwnTenant);
    }
    if victim.priority >= preemptor.priority {
        flaws.push(Flaw::PriorityNotLower(victim.priority, preemptor.priority));
    }
    let ran = ledger.before.now.since(victim.started);
    if ran < policy.min_run {
        flaws.push(Flaw::RanTooBriefly(ran, policy.min_run));
    }
    if victim.evictions >= policy.evictions_max {
        flaws.push(Flaw::EvictedTooOften(victim.evictions, policy.evictions_max));
    }
    if let Some(job) = &victim.stopping_for {
        flaws.push(Flaw::StopsAlready(job.clone()));
    }
    flaws
}

/// Whether the victim's tenant falls below its own minimum once all who were told to have stopped.
fn tenant_below_min(ledger: &Ledger<'_>, cases: &[Case<'_>], case: &Case<'_>) -> Option<Flaw> {
    let (tenant, pool) = (&case.victim.tenant, &case.worker.pool);
    let min = ledger.tenant(tenant)?.quota(pool).min;
    let stops = |run: &Attempt| {
        run.stopping_for.is_some() || cases.iter().any(|other| other.victim.job == run.job)
    };
    let is_here = |run: &Attempt| {
        run.tenant == *tenant
            && ledger.worker(&run.worker).is_some_and(|worker| worker.pool == *pool)
    };
    let mut lost = 0;
    for run in &ledger.before.attempts {
        if is_here(run) && stops(run) {
            lost += u64::from(run.slots);
        }
    }
    let left = ledger.tenant_slots(tenant, pool).saturating_sub(lost);
    (left < u64::from(min)).then_some(Flaw::TenantBelowMin(left, min))
}
