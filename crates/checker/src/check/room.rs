//! A preemption makes room for a job of higher priority whose tenant is below its minimum, and is
//! limited in number.

use std::collections::BTreeMap;

use super::fit::misfit;
use super::{Facts, Found};
use crate::{Attempt, Job};

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    let limits = &facts.history.limits;
    let waits = waits(facts);
    let owed = facts.jobs.values().copied().filter(|job| limits.owed.contains(&job.tenant));
    let owed: Vec<&Job> = owed.collect();
    for attempt in facts.history.attempts.iter().filter(|one| one.ending == "preempted") {
        let Some(job) = facts.jobs.get(&attempt.job) else { continue };
        let (id, number) = (job.id, attempt.number);
        let ran_ms = attempt.ended_ms.unwrap_or(i64::MAX) - attempt.claimed_ms;
        if ran_ms + facts.history.clocks_ms < limits.evicted_after_ms {
            let what = format!("attempt {number} of job {id} was stopped after {ran_ms} ms");
            found.add("stopped-early", what);
        }
        // Without records of the database, the waiting jobs are not known.
        if !waits.is_empty() && !is_for_somebody(facts, (job, attempt), (&owed, &waits)) {
            let what = format!("attempt {number} of job {id} was stopped, and nobody waited");
            found.add("stopped-for-nobody", what);
        }
    }
    for job in facts.jobs.values().filter(|job| job.n_evictions > limits.evictions_max) {
        let (id, n, max) = (job.id, job.n_evictions, limits.evictions_max);
        found.add("stopped-too-often", format!("job {id} was stopped {n} times of {max}"));
    }
}

/// The times at which each job was queued.
type Waits = BTreeMap<u64, Vec<(i64, i64)>>;

fn waits(facts: &Facts<'_>) -> Waits {
    let mut waits = Waits::new();
    for step in &facts.history.steps {
        let spans = waits.entry(step.job).or_default();
        if let Some(open) = spans.last_mut().filter(|(_, to_ms)| *to_ms == i64::MAX) {
            open.1 = step.at_ms;
        }
        if step.state.as_deref() == Some("queued") {
            spans.push((step.at_ms, i64::MAX));
        }
    }
    waits
}

/// Whether a job waited during the attempt that may preempt others, could have run there, and has a
/// strictly higher priority.
fn is_for_somebody(
    facts: &Facts<'_>,
    (job, attempt): (&Job, &Attempt),
    (owed, waits): (&[&Job], &Waits),
) -> bool {
    let offer = facts.history.workers.get(&attempt.worker);
    let until_ms = attempt.ended_ms.unwrap_or(i64::MAX);
    let waited = |other: &Job| {
        let mut spans = waits.get(&other.id).into_iter().flatten();
        spans.any(|(from_ms, to_ms)| *from_ms <= until_ms && attempt.claimed_ms <= *to_ms)
    };
    owed.iter().any(|other| {
        other.tenant != job.tenant
            && other.priority > job.priority
            && offer.is_none_or(|offer| misfit(other, offer).is_none())
            && waited(other)
    })
}
