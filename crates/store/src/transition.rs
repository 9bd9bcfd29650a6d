//! The change of one record at each stage. Pure, so that all stores agree about it.
//!
//! **Invariant:** a function that changes a record raises its fence by one. One that refuses leaves
//! the record as it is.

use std::sync::Arc;

use model::{
    Cause, Counts, Current, Ending, Fixed, JobId, Next, Patience, Progress, Record, Spec, State,
    Timestamp, WorkerId,
};

use crate::{Amend, Claim, End, Past, Provided, Run};

/// The first record of a job with `n_blockers` blockers.
pub fn submit(id: JobId, spec: Spec, n_blockers: u32, now: Timestamp) -> Record {
    let is_blocked = n_blockers > 0;
    Record {
        id,
        state: if is_blocked { State::Blocked } else { State::Queued },
        fence: 1,
        priority: spec.priority,
        counts: Counts::default(),
        created: now,
        ready: if is_blocked { None } else { Some(now) },
        backoff_until: None,
        on_hold: false,
        cancelling: false,
        n_blockers,
        n_dependents: 0,
        last_worker: None,
        current: None,
        finished: None,
        cause: None,
        error: None,
        result: None,
        exit_code: None,
        cost: None,
        spec: Arc::new(spec),
    }
}

/// All transitions except [`revive`].
fn go_to(record: &mut Record, state: State) {
    debug_assert!(record.state.may_become(state), "{:?} -> {state:?}", record.state);
    record.state = state;
}

/// Gives the job to a worker, if it is queued and has the fence of the claim.
pub fn claim(record: &mut Record, claim: &Claim, now: Timestamp) -> bool {
    if record.state != State::Queued || record.on_hold || record.fence != claim.fence {
        return false;
    }
    go_to(record, State::Claimed);
    record.counts.attempts += 1;
    record.current = Some(Current {
        worker: claim.worker.clone(),
        pool: claim.pool.clone(),
        claimed: now,
        started: None,
        holds: claim.holds.clone(),
        progress: None,
        why: claim.why.clone(),
    });
    record.fence += 1;
    true
}

/// Whether this is the current attempt, on this worker.
pub(crate) fn is_current(record: &Record, attempt: u32, worker: &WorkerId) -> bool {
    record.counts.attempts == attempt
        && record.current.as_ref().is_some_and(|current| current.worker == *worker)
}

/// The current attempt started. A repetition changes nothing.
pub(crate) fn start(record: &mut Record, now: Timestamp) {
    if let (State::Claimed, Some(current)) = (record.state, record.current.as_mut()) {
        current.started = Some(now);
        go_to(record, State::Running);
        record.fence += 1;
    }
}

/// The current attempt reported progress.
pub(crate) fn progress(record: &mut Record, progress: Progress) {
    if let Some(current) = record.current.as_mut() {
        current.progress = Some(progress);
        record.fence += 1;
    }
}

/// The rows to write beside the record when an attempt ends.
pub(crate) struct After {
    /// The ended attempt.
    pub(crate) past: Past,
    /// The charge of the tenant.
    pub(crate) charged: Fixed,
    /// The run, if it says anything about its type.
    pub(crate) run: Option<Box<Run>>,
}

/// Whether a job that ends in this way needs no record. It succeeds at its first attempt without a
/// result, no person or job waits for it, and it has no name but its id. The store also keeps a job
/// with output or with an idempotency key. Only the store knows those.
pub(crate) fn is_forgotten(record: &Record, end: &End) -> bool {
    let Spec { on_demand, dedupe_key, group, .. } = &*record.spec;
    end.forget
        && is_bare(record, end)
        && record.counts == Counts { attempts: 1, ..Counts::default() }
        && !on_demand
        && dedupe_key.is_none()
        && group.is_none()
}

/// Whether a job succeeds by this end without a result and without a webhook.
pub(crate) fn is_bare(record: &Record, end: &End) -> bool {
    end.ending == Ending::Succeeded
        && end.provided == Provided::Nothing
        && end.result.is_none()
        && !record.cancelling
        && record.n_dependents == 0
        && record.spec.webhook.is_none()
}

/// The current attempt ends. `None`: there is none.
///
/// A job with a pending cancellation ends as cancelled, with any ending of its attempt. The attempt
/// keeps its own ending.
pub(crate) fn end(
    record: &mut Record,
    end: &End,
    patience: &Patience,
    now: Timestamp,
) -> Option<After> {
    if end.provided == Provided::NoStart && record.state == State::Running {
        return None;
    }
    let mut current = record.current.take()?;
    if end.has_started {
        current.started.get_or_insert(now);
    }
    let charged = charge(&record.spec, end, current.started.is_some());
    let run = run(record, &current, end, now);
    record.counts = record.counts.after(end.ending);
    record.last_worker = Some(current.worker.clone());
    record.exit_code = end.exit_code;
    record.error = error(record.error.take(), end);
    if charged != Fixed::ZERO || record.cost.is_some() {
        record.cost = Some(record.cost.unwrap_or(Fixed::ZERO) + charged);
    }

    let ending = if record.cancelling { Ending::Cancelled } else { end.ending };
    match model::retry::next(ending, &record.counts, &record.spec.retry, patience, (now, end.draw))
    {
        Next::Queue { backoff_until } => {
            go_to(record, State::Queued);
            record.backoff_until = backoff_until;
            record.fence += 1;
        }
        Next::Finish { state, cause } => {
            record.result.clone_from(&end.result);
            finish(record, state, cause, now);
        }
    }
    Some(After { past: past(record, current, end, now), charged, run })
}

/// The job becomes final, and no job waits for it any more.
pub(crate) fn finish(record: &mut Record, state: State, cause: Option<Cause>, now: Timestamp) {
    go_to(record, state);
    record.cause = cause;
    record.finished = Some(now);
    record.cancelling = false;
    record.on_hold = false;
    record.backoff_until = None;
    record.n_blockers = 0;
    record.n_dependents = 0;
    record.current = None;
    record.fence += 1;
}

/// The effect of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Off {
    /// The job is final now.
    Final,
    /// A worker runs it, and must stop it.
    Stopping,
    /// The same, and a cancellation was pending before.
    StoppingAlready,
    /// The job was final before.
    Before,
}

/// A client cancels the job.
pub(crate) fn cancel(record: &mut Record, now: Timestamp) -> Off {
    match record.state {
        State::Blocked | State::Queued => {
            finish(record, State::Cancelled, Some(Cause::Asked), now);
            Off::Final
        }
        State::Claimed | State::Running if record.cancelling => Off::StoppingAlready,
        State::Claimed | State::Running => {
            record.cancelling = true;
            record.fence += 1;
            Off::Stopping
        }
        State::Succeeded | State::Failed | State::Cancelled => Off::Before,
    }
}

/// Fails the job if it is queued and past its `start_before`.
pub(crate) fn give_up(record: &mut Record, now: Timestamp) -> bool {
    let is_late = record.spec.start_before.is_some_and(|start_before| start_before <= now);
    if record.state != State::Queued || !is_late {
        return false;
    }
    finish(record, State::Failed, Some(Cause::TooLate), now);
    true
}

/// Changes a waiting job. `false`: it had this value before.
pub(crate) fn amend(record: &mut Record, amend: Amend) -> bool {
    let before = (record.on_hold, record.priority);
    match amend {
        Amend::Hold => record.on_hold = true,
        Amend::Release => record.on_hold = false,
        Amend::Priority(priority) => record.priority = priority,
    }
    let is_changed = before != (record.on_hold, record.priority);
    record.fence += u64::from(is_changed);
    is_changed
}

/// A submission with the same dedupe key joins this job. `false`: nothing changes.
pub(crate) fn join(record: &mut Record, priority: i32) -> bool {
    priority > record.priority && amend(record, Amend::Priority(priority))
}

/// Adds a dependent.
pub(crate) fn add_dependent(record: &mut Record) {
    record.n_dependents += 1;
    record.fence += 1;
}

/// Removes a dependent.
pub(crate) fn remove_dependent(record: &mut Record) {
    record.n_dependents = record.n_dependents.saturating_sub(1);
    record.fence += 1;
}

/// Removes a blocker. `true`: it was the last, so the job is queued.
pub(crate) fn unblock(record: &mut Record, now: Timestamp) -> bool {
    record.n_blockers = record.n_blockers.saturating_sub(1);
    record.fence += 1;
    if record.n_blockers > 0 {
        return false;
    }
    go_to(record, State::Queued);
    record.ready = Some(now);
    true
}

/// Revives a job that failed or was cancelled. Attempt numbers continue, so that no fencing token
/// is used twice.
pub(crate) fn revive(record: &mut Record, now: Timestamp) {
    record.state = State::Queued;
    record.counts.failures = 0;
    record.counts.losses = 0;
    record.counts.revived += 1;
    record.ready = Some(now);
    record.finished = None;
    record.cause = None;
    record.error = None;
    record.result = None;
    record.exit_code = None;
    record.fence += 1;
}

/// Completed work is charged. An attempt that failed through no fault of the job is not.
fn charge(spec: &Spec, end: &End, was_started: bool) -> Fixed {
    let is_charged = match end.ending {
        Ending::Succeeded | Ending::Transient | Ending::Permanent | Ending::Timeout => true,
        Ending::Cancelled | Ending::Stale => was_started,
        Ending::Lost | Ending::Refused | Ending::Preempted => false,
    };
    if is_charged { end.cost.unwrap_or(spec.cost) } else { Fixed::ZERO }
}

/// The error of the last failed attempt.
fn error(before: Option<String>, end: &End) -> Option<String> {
    match end.ending {
        Ending::Succeeded => None,
        Ending::Transient | Ending::Permanent | Ending::Timeout | Ending::Stale | Ending::Lost => {
            end.error.clone()
        }
        Ending::Refused | Ending::Preempted | Ending::Cancelled => before,
    }
}

/// The run of an attempt. Attempts that were stopped from outside say nothing about their type.
fn run(record: &Record, current: &Current, end: &End, now: Timestamp) -> Option<Box<Run>> {
    if !end.ending.is_own() {
        return None;
    }
    Some(Box::new(Run {
        tenant: record.spec.tenant.clone(),
        kind: record.spec.kind.clone(),
        history_key: record.spec.history_key.clone(),
        at: now,
        wait: current.claimed.since(record.ready.unwrap_or(record.created)),
        duration: now.since(current.claimed),
        ending: end.ending,
        measured: end.measured,
        fetched: end.fetched,
        n_dependents: record.n_dependents,
    }))
}

fn past(record: &Record, current: Current, end: &End, now: Timestamp) -> Past {
    Past {
        number: record.counts.attempts,
        worker: current.worker,
        claimed: current.claimed,
        started: current.started,
        ended: now,
        ending: end.ending,
        error: end.error.clone(),
        exit_code: end.exit_code,
        measured: end.measured,
        why: current.why,
    }
}
