//! Every job gets exactly one answer, and every answer is about something that exists.

use std::collections::BTreeMap;
use std::fmt;

use model::{Action, Defer, Fixed, JobId, Placement, Preempt, Reason, Timestamp};

use super::Violation;
use super::ledger::{Ledger, as_placement, as_preempt};

/// What is wrong with the answer about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It is named but does not wait.
    Unknown,
    /// It is neither placed nor held.
    Unanswered,
    /// It has more than one hold.
    HeldTwice,
    /// It is placed more than once.
    PlacedTwice,
    /// It is placed and held.
    PlacedAndHeld,
    /// It is deferred more than once.
    DeferredTwice,
    /// It is placed and deferred.
    DeferredAndPlaced,
    /// It is deferred to a moment that is not ahead.
    DeferredToPast(Timestamp),
    /// It is deferred to another moment than its policy says.
    DeferredOtherwise(Timestamp),
    /// It is told to stop more than once.
    PreemptedTwice,
    /// It is told to stop and placed.
    VictimPlaced,
    /// Others are told to stop for it, but it is not held as preempting.
    NotHeldAsPreempting,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("is named but does not wait"),
            Self::Unanswered => f.write_str("is neither placed nor held"),
            Self::HeldTwice => f.write_str("is held more than once"),
            Self::PlacedTwice => f.write_str("is placed more than once"),
            Self::PlacedAndHeld => f.write_str("is placed and held"),
            Self::DeferredTwice => f.write_str("is deferred more than once"),
            Self::DeferredAndPlaced => f.write_str("is deferred and placed"),
            Self::DeferredToPast(Timestamp(at)) => write!(f, "is deferred to the past, {at} ms"),
            Self::DeferredOtherwise(Timestamp(at)) => {
                write!(f, "is deferred to {at} ms, which its policy does not do")
            }
            Self::PreemptedTwice => f.write_str("is told to stop more than once"),
            Self::VictimPlaced => f.write_str("is told to stop and placed"),
            Self::NotHeldAsPreempting => f.write_str("makes others stop but is held otherwise"),
        }
    }
}

/// How often a decision names each job, and as what.
#[derive(Default)]
struct Counts<'a> {
    placed: BTreeMap<&'a JobId, u32>,
    held: BTreeMap<&'a JobId, u32>,
    deferred: BTreeMap<&'a JobId, u32>,
    victims: BTreeMap<&'a JobId, u32>,
}

/// What is wrong with names, with the number of answers, and with scores.
pub(super) fn check(ledger: &Ledger<'_>) -> Vec<Violation> {
    let counts = count(ledger);
    let mut violations = unknown(ledger);
    violations.extend(repeated(ledger, &counts));
    for action in &ledger.decision.actions {
        match action {
            Action::Place(placement) => violations.extend(check_score(placement)),
            Action::Preempt(preempt) => violations.extend(check_preempt(ledger, preempt, &counts)),
            Action::Defer(defer) => violations.extend(check_defer(ledger, defer)),
        }
    }
    violations
}

fn count<'a>(ledger: &Ledger<'a>) -> Counts<'a> {
    let mut counts = Counts::default();
    for action in &ledger.decision.actions {
        let (kind, job) = match action {
            Action::Place(placement) => (&mut counts.placed, &placement.job),
            Action::Preempt(preempt) => (&mut counts.victims, &preempt.victim),
            Action::Defer(defer) => (&mut counts.deferred, &defer.job),
        };
        *kind.entry(job).or_default() += 1;
    }
    for hold in &ledger.decision.holds {
        *counts.held.entry(&hold.job).or_default() += 1;
    }
    counts
}

/// Names of jobs and workers that are not in the snapshot.
fn unknown(ledger: &Ledger<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let actions = &ledger.decision.actions;
    let jobs = actions.iter().map(|action| match action {
        Action::Place(placement) => &placement.job,
        Action::Preempt(preempt) => &preempt.preemptor,
        Action::Defer(defer) => &defer.job,
    });
    for job in jobs.chain(ledger.decision.holds.iter().map(|hold| &hold.job)) {
        if ledger.job(job).is_none() {
            violations.push(fault(job, Fault::Unknown));
        }
    }
    let placed_on = actions.iter().filter_map(as_placement).map(|placement| &placement.worker);
    let stopped_on = actions.iter().filter_map(as_preempt).map(|preempt| &preempt.worker);
    for worker in placed_on.chain(stopped_on) {
        if ledger.worker(worker).is_none() {
            violations.push(Violation::UnknownWorker(worker.clone()));
        }
    }
    violations
}

/// Jobs with no answer, with several, or with answers that contradict each other.
fn repeated(ledger: &Ledger<'_>, counts: &Counts<'_>) -> Vec<Violation> {
    let n = |count: &BTreeMap<&JobId, u32>, job| count.get(job).copied().unwrap_or(0);
    let mut violations = Vec::new();
    for job in ledger.before.jobs.iter().map(|job| &job.id) {
        let (placed, held) = (n(&counts.placed, job), n(&counts.held, job));
        let deferred = n(&counts.deferred, job);
        let faults = [
            (placed == 0 && held == 0, Fault::Unanswered),
            (held > 1, Fault::HeldTwice),
            (placed > 1, Fault::PlacedTwice),
            (placed > 0 && held > 0, Fault::PlacedAndHeld),
            (deferred > 1, Fault::DeferredTwice),
            (placed > 0 && deferred > 0, Fault::DeferredAndPlaced),
        ];
        for (is_so, what) in faults {
            if is_so {
                violations.push(fault(job, what));
            }
        }
    }
    for (victim, times) in &counts.victims {
        if *times > 1 {
            violations.push(fault(victim, Fault::PreemptedTwice));
        }
        if counts.placed.contains_key(victim) {
            violations.push(fault(victim, Fault::VictimPlaced));
        }
    }
    violations
}

fn check_score(placement: &Placement) -> Option<Violation> {
    let sum: Fixed = placement.points.iter().map(|points| points.points).sum();
    let (job, score) = (placement.job.clone(), placement.score);
    (score != sum).then_some(Violation::ScoreIsNotSum { job, score, sum })
}

fn check_preempt(ledger: &Ledger<'_>, preempt: &Preempt, counts: &Counts<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Preempt { victim, worker, preemptor } = preempt;
    let mut attempts = ledger.before.attempts.iter();
    if !attempts.any(|attempt| attempt.job == *victim && attempt.worker == *worker) {
        let (victim, worker) = (victim.clone(), worker.clone());
        violations.push(Violation::NotRunning { victim, worker });
    }
    let mut holds = ledger.decision.holds.iter();
    let is_preempting =
        holds.any(|hold| hold.job == *preemptor && hold.reason == Reason::Preempting);
    if !is_preempting || counts.placed.contains_key(preemptor) {
        violations.push(fault(preemptor, Fault::NotHeldAsPreempting));
    }
    violations
}

fn check_defer(ledger: &Ledger<'_>, defer: &Defer) -> Option<Violation> {
    let now = ledger.before.now;
    if defer.until <= now {
        return Some(fault(&defer.job, Fault::DeferredToPast(defer.until)));
    }
    let backoff = ledger.policy_of(ledger.job(&defer.job)?).failure_backoff;
    let is_other = defer.until != now + backoff;
    is_other.then(|| fault(&defer.job, Fault::DeferredOtherwise(defer.until)))
}

fn fault(job: &JobId, fault: Fault) -> Violation {
    Violation::Answer { job: job.clone(), fault }
}
