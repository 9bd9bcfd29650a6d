//! Each job has one life: a sequence of attempts, and one end.

use std::collections::BTreeMap;

use super::{Facts, Found};
use crate::{Attempt, Job};

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    for pair in facts.history.jobs.windows(2) {
        if pair[0].id == pair[1].id {
            let (id, one, other) = (pair[0].id, &pair[0].state, &pair[1].state);
            found.add("two-states", format!("job {id} is both {one} and {other}"));
        }
    }
    for job in facts.jobs.values() {
        let attempts = facts.attempts_of(job.id);
        if !job.is_final() {
            found.add("not-final", format!("job {} is still {}", job.id, job.state));
        }
        numbers(job, attempts, found);
        follow(job, attempts, facts.history.clocks_ms, found);
        end(job, attempts, found);
        counts(job, attempts, found);
    }
    for job in facts.attempts.keys().filter(|job| !facts.jobs.contains_key(job)) {
        found.add("stray-attempt", format!("attempts of job {job}, which is not there"));
    }
    ledger(facts, found);
    told(facts, found);
}

/// Readers of completions see the end of each job that is still stored. Nothing is in use after the
/// end of all jobs.
fn told(facts: &Facts<'_>, found: &mut Found) {
    let finals = facts.jobs.values().filter(|job| job.is_final() && !job.is_forgotten);
    for (job, told) in
        finals.filter_map(|job| Some((job, facts.history.completions.as_ref()?.get(&job.id))))
    {
        if told != Some(&job.state) {
            let (id, is, told) = (job.id, &job.state, told.map_or("nothing", String::as_str));
            found.add("completions", format!("job {id} is {is}, and others read {told}"));
        }
    }
    for (name, held) in facts.history.held.iter().filter(|(_, held)| **held != 0) {
        found.add("held", format!("{held} of `{name}` is in use, and nothing runs"));
    }
}

/// Attempt numbers are 1, 2, 3, without gaps and repetitions.
fn numbers(job: &Job, attempts: &[&Attempt], found: &mut Found) {
    let numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.number).collect();
    let expected: Vec<u32> = (1..=job.n_attempts).collect();
    if numbers != expected {
        let (id, n) = (job.id, job.n_attempts);
        found.add("attempt-numbers", format!("job {id} has attempts {numbers:?} of {n}"));
    }
}

/// Attempts do not overlap, and a retry starts after its backoff. The backoff counts from when a
/// scheduler received the failure, which is before it was stored.
fn follow(job: &Job, attempts: &[&Attempt], clocks_ms: i64, found: &mut Found) {
    let backoff_ms = job.backoff_ms / 2 - clocks_ms;
    for pair in attempts.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        let ended_ms = before.ended_ms.unwrap_or(i64::MAX);
        let heard_ms = before.heard_ms.unwrap_or(ended_ms);
        let (id, one, other) = (job.id, before.number, after.number);
        if after.claimed_ms < ended_ms {
            let what = format!("attempt {other} of job {id} began before attempt {one} ended");
            found.add("overlap", what);
        } else if matches!(before.ending.as_str(), "transient" | "timeout")
            && after.claimed_ms < heard_ms + backoff_ms
        {
            let early_ms = heard_ms + backoff_ms - after.claimed_ms;
            let what = format!("attempt {other} of job {id} began {early_ms} ms too early");
            found.add("backoff", what);
        }
    }
}

/// The ending of the last attempt determines the end of the job.
fn end(job: &Job, attempts: &[&Attempt], found: &mut Found) {
    let id = job.id;
    let succeeded = attempts.iter().filter(|attempt| attempt.ending == "succeeded");
    let succeeded: Vec<u32> = succeeded.map(|attempt| attempt.number).collect();
    let last = attempts.last().map(|attempt| attempt.number);
    if succeeded.len() > 1 {
        found.add("two-results", format!("attempts {succeeded:?} of job {id} all succeeded"));
    }
    // A job that was cancelled while it ran may have succeeded anyway.
    let may_succeed = matches!(job.state.as_str(), "succeeded" | "cancelled");
    if succeeded.first().is_some_and(|number| !may_succeed || Some(*number) != last) {
        let state = &job.state;
        let what = format!("attempt {succeeded:?} of job {id} succeeded, and it is {state}");
        found.add("result-ignored", what);
    }
    if job.state == "succeeded" && succeeded.is_empty() {
        found.add("no-result", format!("job {id} is succeeded, and no attempt of it"));
    }
    let token = last.zip(attempts.last()).map(|(n, last)| format!("{id} {n} {}", last.worker));
    if job.state == "succeeded" && job.result.is_some() && job.result != token {
        let (is, ought) = (job.result.as_deref(), token.as_deref());
        found.add("wrong-result", format!("job {id} has the result {is:?} and not {ought:?}"));
    }
    for attempt in attempts.iter().filter(|_| job.is_final()) {
        if attempt.ended_ms.is_none_or(|ended_ms| Some(ended_ms) > job.finished_ms) {
            let number = attempt.number;
            found.add("after-the-end", format!("attempt {number} outlives its job {id}"));
        }
    }
}

/// Failures and losses are counted, and limited.
fn counts(job: &Job, attempts: &[&Attempt], found: &mut Found) {
    let id = job.id;
    let n = |endings: &[&str]| {
        let ended = attempts.iter().filter(|attempt| endings.contains(&attempt.ending.as_str()));
        u32::try_from(ended.count()).unwrap_or(u32::MAX)
    };
    let counted = [
        ("failures", job.n_failures, n(&["transient", "permanent", "timeout"])),
        ("losses", job.n_losses, n(&["lost"])),
        ("refusals", job.n_refusals, n(&["refused"])),
        ("evictions", job.n_evictions, n(&["preempted"])),
    ];
    for (what, kept, n) in counted.into_iter().filter(|(_, kept, n)| kept != n) {
        found.add("counts", format!("job {id} has {n} {what}, and counts {kept}"));
    }
    if job.n_failures > job.attempts_max {
        let (failures, max) = (job.n_failures, job.attempts_max);
        found.add("too-many-tries", format!("job {id} failed {failures} times of {max}"));
    }
    if job.cause.as_deref() == Some("exhausted") && job.n_failures != job.attempts_max {
        let (failures, max) = (job.n_failures, job.attempts_max);
        found.add("given-up-early", format!("job {id} failed {failures} times of {max}"));
    }
}

/// Usage counts each result once.
fn ledger(facts: &Facts<'_>, found: &mut Found) {
    let mut by_ending: BTreeMap<&str, u64> = BTreeMap::new();
    for attempt in &facts.history.attempts {
        *by_ending.entry(&attempt.ending).or_default() += 1;
    }
    let n = by_ending.get("succeeded").copied().unwrap_or(0);
    let counted = facts.history.n_completed;
    if n != counted {
        found.add("ledger", format!("{n} attempts succeeded, and the ledger counts {counted}"));
    }
    let most = facts.history.limits.losses_max;
    for job in facts.jobs.values() {
        let (id, losses, is_parked) =
            (job.id, job.n_losses, job.cause.as_deref() == Some("poison"));
        let is_right = losses <= most && (!is_parked || losses == most);
        if !is_right {
            found.add("losses", format!("job {id} was lost {losses} times of {most}"));
        }
    }
}
