//! The store deletes at once only jobs that no client can query. The other rules also hold for
//! these jobs: each ran once, to its end, and is counted.

use std::collections::{BTreeMap, BTreeSet};

use super::{Facts, Found};
use crate::Job;

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    let with_key: BTreeSet<u64> =
        facts.history.keys.iter().flat_map(|key| key.ids.iter().copied()).collect();
    let waiters = waiters(facts);
    for job in facts.jobs.values().filter(|job| job.is_forgotten) {
        let mut own = waiters.get(&job.id).into_iter().flatten();
        let why = if !facts.history.forgetful.contains(&job.kind) {
            "is of a type that is kept"
        } else if !is_first_try(job) {
            "did not succeed at its first attempt"
        } else if job.dedupe.is_some() {
            "has a name"
        } else if job.was_cancelling {
            "was being called off"
        } else if with_key.contains(&job.id) {
            "answers a key"
        } else if job.n_dependents > 0 || own.any(|waiter| waits(facts, *waiter, job)) {
            "is waited for"
        } else {
            continue;
        };
        found.add("forgotten", format!("job {} {why}, and is forgotten", job.id));
    }
}

fn is_first_try(job: &Job) -> bool {
    (job.n_attempts, job.n_failures, job.n_losses, job.n_refusals) == (1, 0, 0, 0)
}

/// The dependents of each job, by the answers to clients.
fn waiters(facts: &Facts<'_>) -> BTreeMap<u64, Vec<u64>> {
    let mut waiters: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for said in &facts.history.said {
        for (waiter, asked) in said.ids.iter().zip(&said.asked) {
            let places = asked.after_indexes.iter().filter_map(|place| said.ids.get(*place));
            for blocker in asked.after.iter().chain(places) {
                waiters.entry(*blocker).or_default().push(*waiter);
            }
        }
    }
    waiters
}

/// Whether `waiter` existed and was not cancelled when `job` was deleted.
fn waits(facts: &Facts<'_>, waiter: u64, job: &Job) -> bool {
    let (Some(waiter), Some(gone_ms)) = (facts.jobs.get(&waiter), job.finished_ms) else {
        return false;
    };
    waiter.created_ms < gone_ms && waiter.finished_ms.is_none_or(|at_ms| at_ms > gone_ms)
}
