//! Nobody has more than they may, at any moment.

use std::collections::BTreeMap;

use super::{Facts, Found};
use crate::{Attempt, Job};

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    let limits = &facts.history.limits;
    let slots = |job: &Job| job.slots;
    let one = |_: &Job| 1;
    for (tenant, max) in &limits.tenant_slots {
        let is_own = |_: &Attempt, job: &Job| job.tenant == *tenant;
        within(facts, *max, is_own, slots, &mut |what| {
            found.add("quota", format!("tenant {tenant} has {what} slots of at most {max}"));
        });
    }
    for (tenant, max) in &limits.tenant_jobs {
        let is_own = |_: &Attempt, job: &Job| job.tenant == *tenant;
        within(facts, *max, is_own, one, &mut |what| {
            found.add("jobs-max", format!("tenant {tenant} runs {what} jobs of at most {max}"));
        });
    }
    for (worker, max) in &limits.worker_slots {
        let is_own = |attempt: &Attempt, _: &Job| attempt.worker == *worker;
        within(facts, *max, is_own, slots, &mut |what| {
            found.add("worker-slots", format!("worker {worker} has {what} slots of {max}"));
        });
    }
    dedupe(facts, found);
}

/// Adds up what attempts take while they are claimed, and tells when it is too much for the
/// first time.
fn within(
    facts: &Facts<'_>,
    max: u32,
    is_own: impl Fn(&Attempt, &Job) -> bool,
    takes: impl Fn(&Job) -> u32,
    tell: &mut dyn FnMut(String),
) {
    // At one moment, what ends comes before what begins.
    let mut changes: Vec<(i64, i64, u64)> = Vec::new();
    for attempt in &facts.history.attempts {
        let Some(job) = facts.jobs.get(&attempt.job).filter(|job| is_own(attempt, job)) else {
            continue;
        };
        let slots = i64::from(takes(job));
        changes.push((attempt.claimed_ms, slots, job.id));
        if let Some(ended_ms) = attempt.ended_ms {
            changes.push((ended_ms, -slots, job.id));
        }
    }
    changes.sort_unstable();
    let mut taken = 0;
    for (at_ms, change, job) in changes {
        taken += change;
        if taken > i64::from(max) {
            return tell(format!("at {at_ms}, with job {job}, {taken}"));
        }
    }
}

/// At most one unfinished job of a tenant, type and key.
fn dedupe(facts: &Facts<'_>, found: &mut Found) {
    let mut by_key: BTreeMap<(&str, &str, &str), Vec<&Job>> = BTreeMap::new();
    for job in facts.jobs.values() {
        if let Some(key) = &job.dedupe {
            by_key.entry((&job.tenant, &job.kind, key)).or_default().push(job);
        }
    }
    for ((_, _, key), jobs) in by_key {
        for pair in jobs.windows(2) {
            // Ids are in the order of time.
            if pair[0].finished_ms.is_none_or(|finished_ms| finished_ms > pair[1].created_ms) {
                let (one, other) = (pair[0].id, pair[1].id);
                found.add("dedupe", format!("jobs {one} and {other} have {key} at once"));
            }
        }
    }
}
