//! Every job that waits has a true reason, the first that applies, and no worker idles for it.

use model::policy::Order;
use model::{Hold, Job, Reason, Worker};

use super::delay::delay;
use super::fit::could_ever_run;
use super::kept::{guard_max, is_guarded, is_reserved};
use super::ledger::Ledger;
use super::limits::{self, Meter};
use super::opinions::{is_vetoed, may_be_below_zero};
use super::placements::placed_on;
use super::{Delay, Violation, resources};

/// What is wrong with the holds.
pub(super) fn check(ledger: &Ledger<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for hold in &ledger.decision.holds {
        if let Some(job) = ledger.job(&hold.job) {
            violations.extend(check_reason(ledger, hold, job));
            violations.extend(check_policy(ledger, hold, job));
            violations.extend(check_purpose(ledger, hold, job));
            violations.extend(check_idle(ledger, hold, job));
        }
    }
    violations
}

/// Whether a hold's reason is the first that applies, as far as limits tell.
///
/// For what the policy does on purpose, only that none of the limits before it applies; whether
/// there is a purpose is another question.
fn check_reason(ledger: &Ledger<'_>, hold: &Hold, job: &Job) -> Option<Violation> {
    let (said, first) = (hold.reason, first_reason(ledger, job));
    let is_right = if purpose(said).is_some() { first > said } else { first == said };
    (!is_right).then(|| Violation::WrongReason { job: job.id.clone(), said, first })
}

/// What the policy keeps a job for on purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    RareWork,
    WiderJob,
    Veto,
    Points,
}

/// The purpose behind a reason; `None` if it is a limit that holds the job.
const fn purpose(reason: Reason) -> Option<Purpose> {
    match reason {
        Reason::Guarded => Some(Purpose::RareWork),
        Reason::Reserved => Some(Purpose::WiderJob),
        Reason::Vetoed => Some(Purpose::Veto),
        Reason::BelowZero => Some(Purpose::Points),
        Reason::NotReady
        | Reason::NotBefore
        | Reason::NoWorkerEver
        | Reason::NoWorkerNow
        | Reason::WorkersFull
        | Reason::WorkerUnhealthy
        | Reason::TenantPaused
        | Reason::TenantAtMax
        | Reason::Preempting
        | Reason::TenantAtJobsMax
        | Reason::TypeAtMax
        | Reason::BudgetSpent
        | Reason::BudgetSpentGlobal
        | Reason::ResourceHeld
        | Reason::Outranked => None,
    }
}

/// The first limit that keeps `job` waiting once the placements have started; `Outranked` if
/// none does.
fn first_reason(ledger: &Ledger<'_>, job: &Job) -> Reason {
    if let Some(delay) = delay(ledger.before, job) {
        return delay.reason();
    }
    let mut workers: Vec<&Worker> = ledger.before.workers.iter().collect();
    workers.retain(|worker| could_ever_run(ledger, job, worker));
    if workers.is_empty() {
        return Reason::NoWorkerEver;
    }
    let some_drain = workers.iter().any(|worker| worker.draining);
    workers.retain(|worker| worker.is_serving());
    if workers.is_empty() {
        return if some_drain { Reason::NoWorkerNow } else { Reason::WorkerUnhealthy };
    }
    // Told in the place of `WorkersFull`: its victims are how it will get room.
    if ledger.preempting.contains(&job.id) {
        return Reason::Preempting;
    }
    workers.retain(|worker| has_room(ledger, job, worker));
    if workers.is_empty() {
        return Reason::WorkersFull;
    }
    if is_paused(ledger, job) {
        return Reason::TenantPaused;
    }
    workers.retain(|worker| is_within_quota(ledger, job, worker));
    if workers.is_empty() {
        return Reason::TenantAtMax;
    }
    workers.retain(|worker| is_within_type_max(ledger, job, worker));
    let full = workers.is_empty().then_some(Reason::TypeAtMax);
    full.into_iter().chain(first_limit(ledger, job)).min().unwrap_or(Reason::Outranked)
}

/// The first limit that is reached for `job`, of those that count the same on every worker.
fn first_limit(ledger: &Ledger<'_>, job: &Job) -> Option<Reason> {
    let is_reached = |meter: Option<Meter>| meter.is_some_and(|meter| !meter.allows_one_more());
    let reached = [
        (is_reached(limits::tenant_jobs(ledger, job)), Reason::TenantAtJobsMax),
        (is_reached(limits::type_jobs(ledger, job)), Reason::TypeAtMax),
        (is_reached(limits::budget(ledger, job)), Reason::BudgetSpent),
        (is_reached(limits::budget_global(ledger, job)), Reason::BudgetSpentGlobal),
        (!resources::is_free(ledger, job), Reason::ResourceHeld),
    ];
    reached.into_iter().find_map(|(is_so, reason)| is_so.then_some(reason))
}

/// The first reason why `job` could not start on any worker, however much room there were.
pub(super) fn first_reason_anywhere(ledger: &Ledger<'_>, job: &Job) -> Option<Reason> {
    let delayed = delay(ledger.before, job).map(Delay::reason);
    let paused = is_paused(ledger, job).then_some(Reason::TenantPaused);
    delayed.or(paused).or_else(|| first_limit(ledger, job))
}

/// Whether `worker` could take `job` once the placements have started: it fits, it serves, it has
/// room, and no limit that counts by pool or by worker forbids it.
pub(super) fn is_open(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> bool {
    could_ever_run(ledger, job, worker)
        && worker.is_serving()
        && has_room(ledger, job, worker)
        && is_within_quota(ledger, job, worker)
        && is_within_type_max(ledger, job, worker)
}

fn is_paused(ledger: &Ledger<'_>, job: &Job) -> bool {
    ledger.tenant(&job.tenant).is_some_and(|tenant| !tenant.active)
}

pub(super) fn has_room(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> bool {
    limits::room(ledger, job, worker).iter().all(Meter::allows_one_more)
}

fn is_within_quota(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> bool {
    limits::quota(ledger, job, &worker.pool).is_none_or(|meter| meter.allows_one_more())
}

pub(super) fn is_within_type_max(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> bool {
    limits::type_worker_jobs(ledger, job, worker).iter().all(Meter::allows_one_more)
}

/// Whether this policy holds jobs for this reason, and for so long.
fn check_policy(ledger: &Ledger<'_>, hold: &Hold, job: &Job) -> Option<Violation> {
    let before = ledger.before;
    let policy = &before.policy;
    let is_known = match purpose(hold.reason)? {
        Purpose::RareWork => policy.guard.is_some(),
        // Room that victims make is kept for whom they make it, under every policy.
        Purpose::WiderJob => {
            policy.reserve || before.attempts.iter().any(|attempt| attempt.stopping_for.is_some())
        }
        Purpose::Veto | Purpose::Points => policy.order == Order::Rules,
    };
    if !is_known {
        return Some(Violation::NotThisPolicy { job: job.id.clone(), reason: hold.reason });
    }
    let hold_max = (hold.reason == Reason::Guarded).then(|| guard_max(ledger))?;
    let waited = before.now.since(job.ready);
    (waited >= hold_max).then(|| Violation::GuardedTooLong {
        job: job.id.clone(),
        waited,
        hold_max,
    })
}

/// Whether a job that is held on purpose is kept off each worker that it could go to.
fn check_purpose(ledger: &Ledger<'_>, hold: &Hold, job: &Job) -> Option<Violation> {
    let (purpose, reason) = (purpose(hold.reason)?, hold.reason);
    let workers = ledger.before.workers.iter();
    let open = workers.filter(|worker| is_asked(ledger, worker) && is_open(ledger, job, worker));
    let open: Vec<&Worker> = open.collect();
    let is_guarded = |worker: &Worker| is_guarded(ledger, job, worker);
    let is_reserved = |worker: &Worker| is_reserved(ledger, job, worker);
    let is_kept = |worker: &Worker| match purpose {
        Purpose::RareWork => is_guarded(worker) || is_reserved(worker),
        Purpose::WiderJob => !is_guarded(worker) && is_reserved(worker),
        Purpose::Veto => is_vetoed(ledger, job),
        Purpose::Points => may_be_below_zero(ledger, job, worker) || is_reserved(worker),
    };
    if let Some(worker) = open.iter().find(|worker| !is_kept(worker)) {
        let (job, worker) = (job.id.clone(), worker.id.clone());
        return Some(Violation::NotKept { job, worker, reason });
    }
    let has_purpose = match purpose {
        Purpose::RareWork => open.iter().any(|worker| is_guarded(worker)),
        Purpose::WiderJob | Purpose::Veto | Purpose::Points => !open.is_empty(),
    };
    (!has_purpose).then(|| Violation::NoPurpose { job: job.id.clone(), reason })
}

/// Whether `worker` looked for jobs in this decision.
pub(super) fn is_asked(ledger: &Ledger<'_>, worker: &Worker) -> bool {
    ledger.before.freed.as_ref().is_none_or(|freed| freed.worker == worker.id)
}

/// Whether a job is said to wait for room although a worker is open for it and nothing forbids it.
fn check_idle(ledger: &Ledger<'_>, hold: &Hold, job: &Job) -> Option<Violation> {
    let reason = hold.reason;
    let is_for_room = matches!(
        reason,
        Reason::NoWorkerEver
            | Reason::NoWorkerNow
            | Reason::WorkersFull
            | Reason::WorkerUnhealthy
            | Reason::Outranked
    );
    if !is_for_room || first_reason_anywhere(ledger, job).is_some() {
        return None;
    }
    let mut workers = ledger.before.workers.iter();
    let idle =
        workers.find(|worker| may_get_more(ledger, worker) && is_open(ledger, job, worker))?;
    Some(Violation::IdleWorker { job: job.id.clone(), worker: idle.id.clone(), reason })
}

/// Whether this decision could have placed one more job on `worker`, room apart.
fn may_get_more(ledger: &Ledger<'_>, worker: &Worker) -> bool {
    ledger.before.freed.as_ref().is_none_or(|freed| {
        let is_due = placed_on(ledger, &worker.id) < u64::from(freed.completed);
        worker.id == freed.worker && (is_due || ledger.before.policy.proactive_fetch_to_capacity)
    })
}
