//! The records of processes agree with the store.

use std::collections::BTreeMap;

use super::limits::was_suspended;
use super::{Facts, Found};
use crate::{Attempt, Mark};

/// Processes read the clock to the hundredth of a second. On a busy machine, a worker that wants to
/// kill a lost attempt has to wait for the CPU.
pub(super) const SLACK_MS: i64 = 500;
/// Processes and the store read the same clock at different times, and some processes only to the
/// hundredth of a second.
const CLOCKS_MS: i64 = 20;

/// By fencing token: the job, and the number of the attempt.
pub(super) type Runs<'a> = BTreeMap<(u64, u32), Run<'a>>;
pub(super) type Known<'a> = BTreeMap<(u64, u32), &'a Attempt>;

/// One process, by its own records.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) worker: &'a str,
    n_starts: usize,
    pub(super) first_ms: i64,
    pub(super) last_ms: i64,
    ended_ms: Option<i64>,
    failed_ms: Option<i64>,
}

impl Run<'_> {
    /// Whether the attempt ended by a report of its process. Then everything that the store starts
    /// later starts after the process ended.
    pub(super) fn was_told(&self, attempt: Option<&Attempt>) -> bool {
        let told = ["succeeded", "transient", "permanent"];
        (self.ended_ms.is_some() || self.failed_ms.is_some())
            && attempt.is_some_and(|attempt| told.contains(&attempt.ending.as_str()))
    }

    /// The latest time at which it certainly used its resources. All processes of a machine read
    /// one clock, so the time is exact to the millisecond. But an attempt that ended without a
    /// report of its process may continue for a short time, until it is stopped.
    pub(super) fn until_ms(&self, attempt: Option<&Attempt>) -> i64 {
        let ended_ms = attempt.and_then(|attempt| attempt.ended_ms).unwrap_or(i64::MAX);
        if self.was_told(attempt) || self.last_ms > ended_ms.saturating_add(SLACK_MS) {
            return self.last_ms;
        }
        self.last_ms.min(ended_ms.saturating_sub(CLOCKS_MS))
    }
}

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    let runs = runs(&facts.history.marks);
    let known = known(facts);
    for ((job, number), run) in &runs {
        if run.n_starts > 1 {
            let n = run.n_starts;
            found.add("token-twice", format!("attempt {number} of job {job} ran {n} times"));
        }
        match known.get(&(*job, *number)) {
            None => {
                found.add("unknown-run", format!("attempt {number} of job {job} ran unknown"));
            }
            Some(attempt) if attempt.worker != run.worker => {
                let (one, other) = (run.worker, &attempt.worker);
                let what = format!("attempt {number} of job {job} ran on {one}, not on {other}");
                found.add("wrong-worker", what);
            }
            Some(_) => {}
        }
    }
    succeeded(facts, &runs, found);
    heard(facts, &runs, found);
    side_by_side(facts, (&runs, &known), found);
}

/// Attempts by their tokens.
pub(super) fn known<'a>(facts: &Facts<'a>) -> Known<'a> {
    facts.history.attempts.iter().map(|one| ((one.job, one.number), one)).collect()
}

pub(super) fn runs(marks: &[Mark]) -> Runs<'_> {
    let mut runs: Runs<'_> = BTreeMap::new();
    for mark in marks {
        let run = runs.entry((mark.job, mark.attempt)).or_insert(Run {
            worker: &mark.worker,
            n_starts: 0,
            first_ms: mark.at_ms,
            last_ms: mark.at_ms,
            ended_ms: None,
            failed_ms: None,
        });
        run.n_starts += usize::from(mark.what == "start");
        run.first_ms = run.first_ms.min(mark.at_ms);
        run.last_ms = run.last_ms.max(mark.at_ms);
        run.ended_ms = run.ended_ms.or((mark.what == "end").then_some(mark.at_ms));
        run.failed_ms = run.failed_ms.or((mark.what == "fail").then_some(mark.at_ms));
    }
    runs
}

/// The current attempt of a succeeded job ran to its end before the success was stored.
fn succeeded(facts: &Facts<'_>, runs: &Runs<'_>, found: &mut Found) {
    let slack_ms = SLACK_MS.max(facts.history.clocks_ms);
    for attempt in facts.history.attempts.iter().filter(|one| one.ending == "succeeded") {
        let (job, number) = (attempt.job, attempt.number);
        let Some(ran_ms) = runs.get(&(job, number)).and_then(|run| run.ended_ms) else {
            let what = format!("attempt {number} of job {job} succeeded, and never ran to its end");
            found.add("no-run", what);
            continue;
        };
        let written_ms = attempt.ended_ms.unwrap_or(i64::MAX);
        if ran_ms > written_ms.saturating_add(slack_ms) {
            let what = format!("attempt {number} of job {job} succeeded at {written_ms}, ")
                + &format!("and ran until {ran_ms}");
            found.add("early-end", what);
        }
    }
}

/// A scheduler receives a failure after it happens, and before it is stored.
fn heard(facts: &Facts<'_>, runs: &Runs<'_>, found: &mut Found) {
    let slack_ms = SLACK_MS.max(facts.history.clocks_ms);
    let failures = |one: &&Attempt| matches!(one.ending.as_str(), "transient" | "timeout");
    for attempt in facts.history.attempts.iter().filter(failures) {
        let (job, number) = (attempt.job, attempt.number);
        let failed_ms = runs.get(&(job, number)).and_then(|run| run.failed_ms);
        let failed_ms = failed_ms.unwrap_or(attempt.claimed_ms);
        let written_ms = attempt.ended_ms.unwrap_or(i64::MAX);
        let can_be = failed_ms - slack_ms..=written_ms.saturating_add(slack_ms);
        if let Some(heard_ms) = attempt.heard_ms.filter(|heard_ms| !can_be.contains(heard_ms)) {
            let what = format!("attempt {number} of job {job} failed at {failed_ms}, was written ")
                + &format!("down at {written_ms}, and was heard of at {heard_ms}");
            found.add("heard", what);
        }
    }
}

/// Two attempts of one job do not overlap, unless a worker was suspended and could not stop its
/// attempt.
fn side_by_side(facts: &Facts<'_>, (runs, known): (&Runs<'_>, &Known<'_>), found: &mut Found) {
    let pairs = runs.iter().zip(runs.iter().skip(1));
    for ((token, run), ((other_job, other_number), other)) in pairs {
        let (job, number) = token;
        let was_told = run.was_told(known.get(token).copied());
        let slack_ms = if was_told { 0 } else { SLACK_MS };
        let is_side_by_side = job == other_job && run.last_ms > other.first_ms + slack_ms;
        let during = (run.first_ms, run.last_ms);
        if is_side_by_side && (was_told || !was_suspended(facts.history, run.worker, during)) {
            let what = format!("attempts {number} and {other_number} of job {job} ran at once");
            found.add("side-by-side", what);
        }
    }
}
