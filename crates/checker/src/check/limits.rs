//! No limit is exceeded at any time, neither by the store's records nor by the processes that ran.

use std::collections::{BTreeMap, BTreeSet};

use super::runs::{self, SLACK_MS};
use super::{Facts, Found};
use crate::{Harm, History, Job};

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    let claimed: Vec<Span<'_>> = facts
        .history
        .attempts
        .iter()
        .filter_map(|attempt| {
            let job = facts.jobs.get(&attempt.job)?;
            let (worker, from_ms) = (attempt.worker.as_str(), attempt.claimed_ms);
            Some(Span { job, worker, from_ms, to_ms: attempt.ended_ms })
        })
        .collect();
    within(facts, &claimed, &CLAIMED, found);
    for (worker, max) in &facts.history.limits.worker_slots {
        let takes = |span: &Span<'_>| (span.worker == worker).then_some(span.job.slots.into());
        if let Some(most) = too_many(&claimed, (*max).into(), takes) {
            found.add("worker-slots", format!("worker {worker} has {most} slots of {max}"));
        }
    }
    dedupe(facts, found);
}

/// Checks the processes. Attempts that timed out on suspended workers are excepted, because such a
/// worker could not stop them.
pub(super) fn check_runs(facts: &Facts<'_>, found: &mut Found) {
    let (mut ran, mut taken) = (Vec::new(), Vec::new());
    let known = runs::known(facts);
    for (token, run) in runs::runs(&facts.history.marks) {
        let Some(job) = facts.jobs.get(&token.0) else { continue };
        let attempt = known.get(&token).copied();
        let (worker, from_ms) = (run.worker, run.first_ms);
        let span = |to_ms: i64| Span { job, worker, from_ms, to_ms: Some(to_ms) };
        // A worker knows its own slots, so no exception applies.
        taken.push(span(run.last_ms));
        let during = (run.first_ms, run.last_ms);
        if run.was_told(attempt) || !was_suspended(facts.history, run.worker, during) {
            ran.push(span(run.until_ms(attempt)));
        }
    }
    within(facts, &ran, &RAN, found);
    for (worker, offer) in &facts.history.workers {
        let own = || taken.iter().filter(|span| span.worker == worker);
        let takes = |span: &Span<'_>| Some(u64::from(span.job.slots));
        if let Some(most) = too_many(own(), offer.slots.into(), takes) {
            let max = offer.slots;
            found.add("ran-over-slots", format!("worker {worker} ran {most} slots of {max}"));
        }
        for (name, max) in &offer.amounts {
            let takes = |span: &Span<'_>| span.job.amounts.get(name).copied();
            if let Some(most) = too_many(own(), *max, takes) {
                let what = format!("worker {worker} used {most} of `{name}` of {max}");
                found.add("ran-over-amounts", what);
            }
        }
    }
}

/// Whether a worker was suspended at some time between two times.
pub(super) fn was_suspended(history: &History, worker: &str, (from, to): (i64, i64)) -> bool {
    let mut since = None;
    for fault in history.faults.iter().filter(|fault| fault.who == worker) {
        match (fault.harm, since) {
            (Harm::Stop, None) => since = Some(fault.at_ms),
            (Harm::Continue | Harm::Kill, Some(since_ms)) => {
                if since_ms <= to && from <= fault.at_ms + SLACK_MS {
                    return true;
                }
                since = None;
            }
            (Harm::Stop, Some(_)) | (Harm::Continue | Harm::Kill, None) => {}
        }
    }
    since.is_some_and(|since_ms| since_ms <= to)
}

/// The time during which an attempt used limited resources.
struct Span<'a> {
    job: &'a Job,
    worker: &'a str,
    from_ms: i64,
    /// `None`: it still does.
    to_ms: Option<i64>,
}

/// The rule names of the violations.
struct Names {
    quota: &'static str,
    jobs_max: &'static str,
    type_max: &'static str,
    resource: &'static str,
}

const CLAIMED: Names = Names {
    quota: "quota",
    jobs_max: "jobs-max",
    type_max: "type-max",
    resource: "resource-shared",
};
const RAN: Names = Names {
    quota: "ran-over-quota",
    jobs_max: "ran-over-jobs-max",
    type_max: "ran-over-type-max",
    resource: "ran-on-one-resource",
};

fn within(facts: &Facts<'_>, spans: &[Span<'_>], names: &Names, found: &mut Found) {
    let limits = &facts.history.limits;
    for (tenant, max) in &limits.tenant_slots {
        let takes = |span: &Span<'_>| (span.job.tenant == *tenant).then_some(span.job.slots.into());
        if let Some(most) = too_many(spans, (*max).into(), takes) {
            found.add(names.quota, format!("tenant {tenant} has {most} slots of at most {max}"));
        }
    }
    for (tenant, max) in &limits.tenant_jobs {
        let takes = |span: &Span<'_>| (span.job.tenant == *tenant).then_some(1);
        if let Some(most) = too_many(spans, (*max).into(), takes) {
            found.add(names.jobs_max, format!("tenant {tenant} runs {most} jobs of at most {max}"));
        }
    }
    for (kind, max) in &limits.type_jobs {
        let takes = |span: &Span<'_>| (span.job.kind == *kind).then_some(1);
        if let Some(most) = too_many(spans, (*max).into(), takes) {
            found.add(names.type_max, format!("type {kind} runs {most} jobs of at most {max}"));
        }
    }
    let resources: BTreeSet<&String> =
        spans.iter().filter_map(|span| span.job.resource.as_ref()).collect();
    for resource in resources {
        let takes = |span: &Span<'_>| (span.job.resource.as_ref() == Some(resource)).then_some(1);
        if let Some(most) = too_many(spans, 1, takes) {
            found.add(names.resource, format!("resource {resource} is held by {most} jobs"));
        }
    }
}

/// Sums the usage of attempts, and reports the first time at which it exceeds the maximum.
fn too_many<'a>(
    spans: impl IntoIterator<Item = &'a Span<'a>>,
    max: u64,
    takes: impl Fn(&Span<'_>) -> Option<u64>,
) -> Option<String> {
    // At equal times, ends come before starts.
    let mut changes: Vec<(i64, i128, u64)> = Vec::new();
    let is_long = |span: &&Span<'_>| span.to_ms.is_none_or(|to_ms| to_ms > span.from_ms);
    for span in spans.into_iter().filter(is_long) {
        let Some(taken) = takes(span).map(i128::from) else { continue };
        changes.push((span.from_ms, taken, span.job.id));
        changes.extend(span.to_ms.map(|to_ms| (to_ms, -taken, span.job.id)));
    }
    changes.sort_unstable();
    let mut taken = 0;
    changes.into_iter().find_map(|(at_ms, change, job)| {
        taken += change;
        (taken > i128::from(max)).then(|| format!("at {at_ms}, with job {job}, {taken}"))
    })
}

/// A tenant has at most one unfinished job of a type and dedupe key.
fn dedupe(facts: &Facts<'_>, found: &mut Found) {
    let mut by_key: BTreeMap<(&str, &str, &str), Vec<&Job>> = BTreeMap::new();
    for job in facts.jobs.values() {
        if let Some(key) = &job.dedupe {
            by_key.entry((&job.tenant, &job.kind, key)).or_default().push(job);
        }
    }
    for ((_, _, key), mut jobs) in by_key {
        jobs.sort_by_key(|job| (job.created_ms, job.id));
        for pair in jobs.windows(2) {
            if pair[0].finished_ms.is_none_or(|finished_ms| finished_ms > pair[1].created_ms) {
                let (one, other) = (pair[0].id, pair[1].id);
                found.add("dedupe", format!("jobs {one} and {other} have {key} at once"));
            }
        }
    }
}
