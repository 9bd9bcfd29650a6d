//! Waits of jobs beside a worker that has room for them.

use std::collections::BTreeMap;

use super::Facts;
use super::fit::misfit;
use super::timeline::Timeline;
use crate::{Calm, Job, Offer};

/// A wait of a queued job that could run.
struct Wait<'a> {
    job: &'a Job,
    from_ms: i64,
    to_ms: i64,
}

/// Each wait during which one worker had room all the time, and its duration.
pub(super) fn beside_a_free_slot(facts: &Facts<'_>, calm: &Calm) -> Vec<(u64, i64)> {
    let waiting = waiting(facts, calm);
    let used = Used::of(facts, calm, &waiting);
    let is_free = |wait: &&Wait<'_>| {
        let mut offers =
            facts.history.workers.iter().filter(|(name, _)| !calm.away.contains(*name));
        is_within_limits(facts, wait, &used)
            && offers.any(|(name, offer)| has_room((name, offer), wait, &used))
    };
    let free = waiting.iter().filter(is_free);
    free.map(|wait| (wait.job.id, wait.to_ms - wait.from_ms)).collect()
}

fn waiting<'a>(facts: &Facts<'a>, calm: &Calm) -> Vec<Wait<'a>> {
    let mut open: BTreeMap<u64, i64> = BTreeMap::new();
    let mut waits = Vec::new();
    let mut close = |id: u64, from_ms: i64, to_ms: i64| {
        if let Some(job) = facts.jobs.get(&id).filter(|_| from_ms < to_ms) {
            waits.push(Wait { job, from_ms, to_ms });
        }
    };
    for step in &facts.history.steps {
        if let Some(from_ms) = open.remove(&step.job) {
            close(step.job, from_ms, step.at_ms);
        }
        if step.state.as_deref() == Some("queued") {
            let from_ms = step.at_ms.max(step.not_before_ms.unwrap_or(i64::MIN));
            open.insert(step.job, from_ms.max(calm.healed_ms));
        }
    }
    for (job, from_ms) in open {
        close(job, from_ms, calm.read_ms);
    }
    waits
}

/// A used quantity.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What<'a> {
    /// The slots of a worker, and one of its amounts.
    Slots(&'a str),
    Amount(&'a str, &'a str),
    TenantSlots(&'a str),
    TenantJobs(&'a str),
    TypeJobs(&'a str),
    Resource(&'a str),
    /// Waiting jobs with this many slots, for which a worker may keep room.
    Keeps(&'a str, u32),
}

/// The usage of each quantity over time.
struct Used<'a>(BTreeMap<What<'a>, Timeline>);

impl<'a> Used<'a> {
    fn of(facts: &Facts<'a>, calm: &Calm, waiting: &[Wait<'a>]) -> Self {
        let mut spans: BTreeMap<What<'a>, Vec<(i64, i64, u64)>> = BTreeMap::new();
        let mut add = |what: What<'a>, (from_ms, to_ms): (i64, i64), n: u64| {
            spans.entry(what).or_default().push((from_ms, to_ms, n));
        };
        for attempt in &facts.history.attempts {
            let to_ms = attempt.ended_ms.unwrap_or(i64::MAX);
            let Some(job) = facts.jobs.get(&attempt.job).filter(|_| to_ms > calm.healed_ms) else {
                continue;
            };
            let (span, slots) = ((attempt.claimed_ms, to_ms), u64::from(job.slots));
            add(What::Slots(&attempt.worker), span, slots);
            for (amount, n) in &job.amounts {
                add(What::Amount(&attempt.worker, amount), span, *n);
            }
            add(What::TenantSlots(&job.tenant), span, slots);
            add(What::TenantJobs(&job.tenant), span, 1);
            add(What::TypeJobs(&job.kind), span, 1);
            if let Some(resource) = &job.resource {
                add(What::Resource(resource), span, 1);
            }
        }
        for (name, offer) in &facts.history.workers {
            for wait in waiting.iter().filter(|wait| misfit(wait.job, offer).is_none()) {
                add(What::Keeps(name, wait.job.slots), (wait.from_ms, wait.to_ms), 1);
            }
        }
        Self(spans.into_iter().map(|(what, spans)| (what, Timeline::of(spans))).collect())
    }

    /// The largest usage during a wait.
    fn most(&self, what: &What<'_>, wait: &Wait<'_>) -> u64 {
        self.0.get(what).map_or(0, |timeline| timeline.most(wait.from_ms, wait.to_ms))
    }

    /// Whether a job with more slots waits meanwhile, for which the worker may keep room.
    fn is_kept(&self, worker: &str, wait: &Wait<'_>) -> bool {
        let Some(wider) = wait.job.slots.checked_add(1) else { return false };
        let mut wider = self.0.range(What::Keeps(worker, wider)..=What::Keeps(worker, u32::MAX));
        wider.any(|(_, timeline)| timeline.most(wait.from_ms, wait.to_ms) > 0)
    }
}

/// Whether all limits left room during the wait.
fn is_within_limits(facts: &Facts<'_>, wait: &Wait<'_>, used: &Used<'_>) -> bool {
    let (limits, job) = (&facts.history.limits, wait.job);
    let is_over = |what: &What<'_>, max: Option<&u32>, own: u32| {
        max.is_some_and(|max| used.most(what, wait).saturating_add(own.into()) > u64::from(*max))
    };
    let is_held = |resource: &String| used.most(&What::Resource(resource), wait) > 0;
    let tenant = &job.tenant;
    !(limits.budgets.contains(tenant)
        || is_over(&What::TenantSlots(tenant), limits.tenant_slots.get(tenant), job.slots)
        || is_over(&What::TenantJobs(tenant), limits.tenant_jobs.get(tenant), 1)
        || is_over(&What::TypeJobs(&job.kind), limits.type_jobs.get(&job.kind), 1)
        || job.resource.as_ref().is_some_and(is_held))
}

/// Whether a worker had room during the whole wait, and kept none of it for a multi-slot job.
fn has_room((name, offer): (&String, &Offer), wait: &Wait<'_>, used: &Used<'_>) -> bool {
    let job = wait.job;
    let slots = used.most(&What::Slots(name), wait).saturating_add(job.slots.into());
    let has_amount = |(amount, n): (&String, &u64)| {
        let most = used.most(&What::Amount(name, amount), wait);
        most.saturating_add(*n) <= offer.amounts.get(amount).copied().unwrap_or(0)
    };
    misfit(job, offer).is_none()
        && slots <= u64::from(offer.slots)
        && job.amounts.iter().all(has_amount)
        && !used.is_kept(name, wait)
}
