//! Every job that waits has a true reason, the first that applies, and no worker idles for it.

use model::policy::Order;
use model::{Ask, Hold, Job, Reason, TenantId, Worker};

use super::delay::delay;
use super::fit::could_ever_run;
use super::kept::{is_guarded, is_reserved};
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
        Reason::OnHold
        | Reason::NoWorkerEver
        | Reason::NoResourceEver
        | Reason::TenantPaused
        | Reason::PoolPaused
        | Reason::BudgetSpent
        | Reason::BudgetSpentGlobal
        | Reason::NotReady
        | Reason::NotBefore
        | Reason::NoWorkerNow
        | Reason::WorkerUnhealthy
        | Reason::Preempting
        | Reason::TenantAtMax
        | Reason::TenantAtJobsMax
        | Reason::TypeAtMax
        | Reason::ResourceHeld
        | Reason::WorkersFull
        | Reason::Outranked
        | Reason::Claiming => None,
    }
}

/// The first limit that keeps `job` waiting once the placements have started; `Outranked` if
/// none does. Everything is looked at, whatever came before it: the first of all that apply counts.
fn first_reason(ledger: &Ledger<'_>, job: &Job) -> Reason {
    let delayed = delay(ledger, job).map(Delay::reason);
    // Its victims are how it will get room.
    let preempting = ledger.preempting.contains(&job.id).then_some(Reason::Preempting);
    let of_workers = of_workers(ledger, job);
    let all = delayed.into_iter().chain(preempting).chain(of_workers);
    let all = all.chain(is_paused(ledger, job).then_some(Reason::TenantPaused));
    all.chain(reached_limits(ledger, job)).min().unwrap_or(Reason::Outranked)
}

/// Where workers, and what limits let the job use of them, run out.
fn of_workers(ledger: &Ledger<'_>, job: &Job) -> Option<Reason> {
    let mut workers: Vec<&Worker> = ledger.before.workers.iter().collect();
    workers.retain(|worker| could_ever_run(ledger, job, worker));
    if workers.is_empty() {
        return Some(Reason::NoWorkerEver);
    }
    let some_drain = workers.iter().any(|worker| worker.draining);
    workers.retain(|worker| worker.is_serving());
    if workers.is_empty() {
        let away = if some_drain { Reason::NoWorkerNow } else { Reason::WorkerUnhealthy };
        return Some(away);
    }
    workers.retain(|worker| is_within_quota(ledger, job, worker));
    if workers.is_empty() {
        return Some(Reason::TenantAtMax);
    }
    workers.retain(|worker| is_within_type_max(ledger, job, worker));
    if workers.is_empty() {
        return Some(Reason::TypeAtMax);
    }
    workers.retain(|worker| has_room(ledger, job, worker));
    workers.is_empty().then_some(Reason::WorkersFull)
}

/// The limits that are reached for `job`, of those that count the same on every worker.
fn reached_limits(ledger: &Ledger<'_>, job: &Job) -> impl Iterator<Item = Reason> {
    let is_reached = |meter: Option<Meter>| meter.is_some_and(|meter| !meter.allows_one_more());
    let reached = [
        (is_never_its_own(ledger, job), Reason::NoResourceEver),
        (is_reached(limits::budget(ledger, job)), Reason::BudgetSpent),
        (is_reached(limits::budget_global(ledger, job)), Reason::BudgetSpentGlobal),
        (is_reached(limits::tenant_jobs(ledger, job)), Reason::TenantAtJobsMax),
        (is_reached(limits::type_jobs(ledger, job)), Reason::TypeAtMax),
        (!resources::is_free(ledger, job), Reason::ResourceHeld),
    ];
    reached.into_iter().filter_map(|(is_so, reason)| is_so.then_some(reason))
}

/// Whether what `job` asks to hold alone belongs to another tenant, or does not exist.
fn is_never_its_own(ledger: &Ledger<'_>, job: &Job) -> bool {
    let resources = &ledger.before.resources;
    let is_own = |owner: &Option<TenantId>| owner.as_ref() == Some(&job.tenant);
    match &job.resource {
        None => false,
        Some(Ask::Named(name)) => resources
            .iter()
            .any(|one| one.name == *name && one.tenant.is_some() && !is_own(&one.tenant)),
        Some(Ask::Any) => {
            let workspaces = ledger.tenant(&job.tenant).and_then(|tenant| tenant.workspaces);
            workspaces.unwrap_or(0) == 0 && !resources.iter().any(|one| is_own(&one.tenant))
        }
    }
}

/// The first reason why `job` could not start on any worker, however much room there were.
pub(super) fn first_reason_anywhere(ledger: &Ledger<'_>, job: &Job) -> Option<Reason> {
    let delayed = delay(ledger, job).map(Delay::reason);
    let paused = is_paused(ledger, job).then_some(Reason::TenantPaused);
    delayed.or(paused).or_else(|| reached_limits(ledger, job).min())
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

/// Whether the policy that decides on the job holds jobs for this reason.
fn check_policy(ledger: &Ledger<'_>, hold: &Hold, job: &Job) -> Option<Violation> {
    let policy = ledger.policy_of(job);
    let is_known = match purpose(hold.reason)? {
        Purpose::RareWork => policy.guard,
        // A worker that one part keeps for a wide job is kept from the jobs of all parts. Room that
        // victims make is kept under every policy.
        Purpose::WiderJob => {
            let mut attempts = ledger.before.attempts.iter();
            ledger.policies().any(|policy| policy.reserve)
                || attempts.any(|attempt| attempt.stopping_for.is_some())
        }
        Purpose::Veto | Purpose::Points => policy.order == Order::Rules,
    };
    (!is_known).then(|| Violation::NotThisPolicy { job: job.id.clone(), reason: hold.reason })
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
        workers.find(|worker| may_get_more(ledger, job, worker) && is_open(ledger, job, worker))?;
    Some(Violation::IdleWorker { job: job.id.clone(), worker: idle.id.clone(), reason })
}

/// Whether this decision could have placed `job` on `worker` as well, room apart.
fn may_get_more(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> bool {
    ledger.before.freed.as_ref().is_none_or(|freed| {
        let is_due = placed_on(ledger, &worker.id) < u64::from(freed.completed);
        worker.id == freed.worker && (is_due || ledger.policy_of(job).proactive_fetch_to_capacity)
    })
}
