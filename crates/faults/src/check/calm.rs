//! Once nothing is hurt any more, what nobody runs is let go, and what can start does.

use std::collections::BTreeMap;

use super::fit::misfit;
use super::{Facts, Found, runs};
use crate::{Attempt, Calm, History, Job, Offer};

/// How soon all was well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Attempts that were under way when nothing was hurt any more, and that nobody ran.
    pub n_orphans: usize,
    /// How long it took until the last attempt was let go that nobody ran.
    pub orphan_ms: i64,
    /// How long a job waited at most beside a slot that was free for it.
    pub wait_ms: i64,
}

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    let Some(calm) = &facts.history.calm else { return };
    for orphan in orphans(facts, calm) {
        let (any_more, at_all) = ((calm.orphan_ms, "any more"), (calm.offer_ms, "at all"));
        let (max_ms, why) = if orphan.was_run { any_more } else { at_all };
        if orphan.length_ms > max_ms {
            let Attempt { job, number, worker, .. } = orphan.attempt;
            let ms = orphan.length_ms;
            let what = format!("attempt {number} of job {job} was under way for {ms} ms, ")
                + &format!("and {worker} did not run it {why}");
            found.add("slow-recovery", what);
        }
    }
    for (job, wait_ms) in waits(facts, calm) {
        if wait_ms > calm.wait_ms {
            let what = format!("job {job} waited for {wait_ms} ms beside a slot that was free");
            found.add("slow-start", what);
        }
    }
}

/// How soon all was well; `None` if nobody asks.
pub fn recovery(history: &History) -> Option<Recovery> {
    let (facts, calm) = (Facts::of(history), history.calm.as_ref()?);
    let orphans = orphans(&facts, calm);
    Some(Recovery {
        n_orphans: orphans.iter().filter(|orphan| orphan.is_left).count(),
        orphan_ms: orphans.iter().map(|orphan| orphan.length_ms).max().unwrap_or(0),
        wait_ms: waits(&facts, calm).into_iter().map(|(_, ms)| ms).max().unwrap_or(0),
    })
}

/// An attempt that is under way, and that nobody runs.
struct Orphan<'a> {
    attempt: &'a Attempt,
    /// For so long, since nothing was hurt any more.
    length_ms: i64,
    was_run: bool,
    /// Whether nobody ran it when all was well again.
    is_left: bool,
}

fn orphans<'a>(facts: &Facts<'a>, calm: &Calm) -> Vec<Orphan<'a>> {
    let ran = runs::runs(&facts.history.marks);
    let orphan = |attempt: &'a Attempt| {
        let run = ran.get(&(attempt.job, attempt.number));
        let last_ms = run.map_or(attempt.claimed_ms, |run| run.last_ms);
        let since_ms = last_ms.max(calm.healed_ms);
        let length_ms = attempt.ended_ms.unwrap_or(calm.read_ms) - since_ms;
        let is_left = last_ms <= calm.healed_ms;
        Orphan { attempt, length_ms, was_run: run.is_some(), is_left }
    };
    let orphans = facts.history.attempts.iter().map(orphan);
    orphans.filter(|orphan| orphan.length_ms > 0).collect()
}

/// A job stands in a queue and could run, and from when to when it does.
struct Wait<'a> {
    job: &'a Job,
    from_ms: i64,
    to_ms: i64,
}

/// Each wait during which one worker had room all the time, and how long it was.
fn waits(facts: &Facts<'_>, calm: &Calm) -> Vec<(u64, i64)> {
    let waiting = waiting(facts, calm);
    let spent: Vec<Spent<'_>> = spent(facts, calm);
    let is_free = |wait: &&Wait<'_>| {
        let within = is_within_limits(facts, wait, &spent);
        let offers = facts.history.workers.iter();
        let mut offers = offers.filter(|(name, _)| !calm.away.contains(*name));
        within && offers.any(|(name, offer)| has_room((name, offer), wait, (&waiting, &spent)))
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

/// What an attempt takes, and for how long.
struct Spent<'a> {
    job: &'a Job,
    worker: &'a str,
    from_ms: i64,
    to_ms: i64,
}

fn spent<'a>(facts: &Facts<'a>, calm: &Calm) -> Vec<Spent<'a>> {
    let spent = |attempt: &'a Attempt| {
        let to_ms = attempt.ended_ms.unwrap_or(i64::MAX);
        let job = facts.jobs.get(&attempt.job).filter(|_| to_ms > calm.healed_ms)?;
        Some(Spent { job, worker: &attempt.worker, from_ms: attempt.claimed_ms, to_ms })
    };
    facts.history.attempts.iter().filter_map(spent).collect()
}

/// The most that is taken at any moment of a wait.
fn most<'a>(
    wait: &Wait<'_>,
    spent: impl Iterator<Item = &'a Spent<'a>>,
    takes: impl Fn(&Spent<'_>) -> u64,
) -> u64 {
    let mut changes: Vec<(i64, i128)> = Vec::new();
    for one in spent.filter(|one| one.from_ms <= wait.to_ms && wait.from_ms <= one.to_ms) {
        let taken = i128::from(takes(one));
        // Whoever leaves at the last moment was there until then.
        changes.extend([(one.from_ms, taken), (one.to_ms.saturating_add(1), -taken)]);
    }
    changes.sort_unstable();
    let (mut taken, mut most) = (0, 0);
    for (_, change) in changes {
        taken += change;
        most = most.max(taken);
    }
    u64::try_from(most).unwrap_or(u64::MAX)
}

/// Whether nothing but a slot was missing, all the time.
fn is_within_limits(facts: &Facts<'_>, wait: &Wait<'_>, spent: &[Spent<'_>]) -> bool {
    let (limits, job) = (&facts.history.limits, wait.job);
    let same_tenant = || spent.iter().filter(|one| one.job.tenant == job.tenant);
    let slots = |one: &Spent<'_>| u64::from(one.job.slots);
    let is_over = |max: Option<&u32>, most: u64, own: u32| {
        max.is_some_and(|max| most + u64::from(own) > u64::from(*max))
    };
    let same_kind = spent.iter().filter(|one| one.job.kind == job.kind);
    let same_resource =
        spent.iter().filter(|one| job.resource.is_some() && one.job.resource == job.resource);
    let tenant = &job.tenant;
    !(limits.budgets.contains(tenant)
        || is_over(limits.tenant_slots.get(tenant), most(wait, same_tenant(), slots), job.slots)
        || is_over(limits.tenant_jobs.get(tenant), most(wait, same_tenant(), |_| 1), 1)
        || is_over(limits.type_jobs.get(&job.kind), most(wait, same_kind, |_| 1), 1)
        || most(wait, same_resource, |_| 1) > 0)
}

/// Whether a worker had room all the time, and nobody waited who needs more of it: that may be kept
/// for them.
fn has_room(
    (name, offer): (&String, &Offer),
    wait: &Wait<'_>,
    (waiting, spent): (&[Wait<'_>], &[Spent<'_>]),
) -> bool {
    let job = wait.job;
    let is_wider = |other: &Wait<'_>| {
        other.job.slots > job.slots
            && other.from_ms <= wait.to_ms
            && wait.from_ms <= other.to_ms
            && misfit(other.job, offer).is_none()
    };
    let own = || spent.iter().filter(|one| one.worker == name);
    let slots = most(wait, own(), |one| one.job.slots.into()) + u64::from(job.slots);
    let has_amount = |(amount, n): (&String, &u64)| {
        let of = |one: &Spent<'_>| one.job.amounts.get(amount).copied().unwrap_or(0);
        most(wait, own(), of) + n <= offer.amounts.get(amount).copied().unwrap_or(0)
    };
    misfit(job, offer).is_none()
        && slots <= u64::from(offer.slots)
        && job.amounts.iter().all(has_amount)
        && !waiting.iter().any(is_wider)
}
