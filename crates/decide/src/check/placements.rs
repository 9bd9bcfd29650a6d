//! Every placed job may run where it is placed, and all of them together exceed nothing.

use model::{Ask, WorkerId};

use super::Violation;
use super::delay::delay;
use super::fit::misfit;
use super::ledger::{Ledger, Placed};
use super::limits::{self, Meter};
use super::resources;

/// What is wrong with the placements, one by one and together.
pub(super) fn check(ledger: &Ledger<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for placed in &ledger.placements {
        violations.extend(check_one(ledger, placed));
    }
    violations.extend(check_pull(ledger));
    violations.extend(check_limits(ledger));
    violations.extend(resources::check(ledger));
    violations
}

/// Whether this job may run on this worker at this moment.
fn check_one(ledger: &Ledger<'_>, placed: &Placed<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let (job, worker) = (placed.job.id.clone(), placed.worker.id.clone());
    if let Some(why) = misfit(ledger, placed.job, placed.worker) {
        violations.push(Violation::Unfit { job: job.clone(), worker, why });
    }
    if let Some(why) = delay(ledger, placed.job) {
        violations.push(Violation::NotYet { job: job.clone(), now: ledger.before.now, why });
    }
    if ledger.tenant(&placed.job.tenant).is_some_and(|tenant| !tenant.active) {
        violations.push(Violation::TenantPaused { job, tenant: placed.job.tenant.clone() });
    }
    violations
}

/// Who asks for work gets it, and no more than is due.
fn check_pull(ledger: &Ledger<'_>) -> Vec<Violation> {
    let Some(freed) = &ledger.before.freed else { return Vec::new() };
    let mut violations = Vec::new();
    for Placed { job, worker, .. } in &ledger.placements {
        if worker.id != freed.worker {
            violations.push(Violation::NotAsking {
                job: job.id.clone(),
                worker: worker.id.clone(),
                asking: freed.worker.clone(),
            });
        }
    }
    // Jobs whose policy fills workers up may follow those whose policy does not.
    let counted = ledger.placements.iter().filter(|Placed { job, worker, .. }| {
        worker.id == freed.worker && !ledger.policy_of(job).proactive_fetch_to_capacity
    });
    let placed = u64::try_from(counted.count()).unwrap_or(u64::MAX);
    if placed > u64::from(freed.completed) {
        let (worker, completed) = (freed.worker.clone(), freed.completed);
        violations.push(Violation::PulledTooMany { worker, placed, completed });
    }
    violations
}

/// How many jobs are placed on `worker`.
pub(super) fn placed_on(ledger: &Ledger<'_>, worker: &WorkerId) -> u64 {
    ledger.placed.worker_jobs.get(worker).copied().unwrap_or(0)
}

/// Each limit that is exceeded and that some placement counts towards, once.
fn check_limits(ledger: &Ledger<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for placed in &ledger.placements {
        for Meter { limit, used, max, .. } in meters(ledger, placed) {
            let violation = Violation::Over { limit, used, max };
            if !violations.contains(&violation) {
                violations.push(violation);
            }
        }
    }
    violations
}

/// The limits that this placement counts towards and that are exceeded.
fn meters(ledger: &Ledger<'_>, placed: &Placed<'_>) -> Vec<Meter> {
    let Placed { job, worker, given } = *placed;
    let takes_workspace = job.resource == Some(Ask::Any) && given.is_none();
    let of_job = [
        limits::quota_of_placed(ledger, placed),
        limits::tenant_jobs(ledger, job),
        limits::type_jobs(ledger, job),
        limits::budget(ledger, job),
        limits::budget_global(ledger, job),
        takes_workspace.then(|| limits::workspaces(ledger, job)),
    ];
    let mut meters = limits::room(ledger, job, worker);
    meters.extend(limits::type_worker_jobs(ledger, job, worker));
    meters.extend(of_job.into_iter().flatten());
    meters.retain(Meter::is_over);
    meters
}
