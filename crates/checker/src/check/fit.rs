//! Workers get only attempts that they can run.

use super::{Facts, Found};
use crate::{Job, Offer};

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    for attempt in facts.history.attempts.iter().filter(|_| !facts.history.workers.is_empty()) {
        let Some(job) = facts.jobs.get(&attempt.job) else { continue };
        let (number, id, worker) = (attempt.number, job.id, &attempt.worker);
        let why = match facts.history.workers.get(worker) {
            Some(offer) => misfit(job, offer),
            None => Some("which nobody knows".to_owned()),
        };
        if let Some(why) = why {
            let what = format!("attempt {number} of job {id} was given to {worker}, {why}");
            found.add("misfit", what);
        }
    }
}

/// The reason why a worker cannot run a job, even if it is idle.
pub(super) fn misfit(job: &Job, offer: &Offer) -> Option<String> {
    if !offer.types.contains(&job.kind) {
        return Some(format!("which does not do `{}`", job.kind));
    }
    if let Some(pool) = job.pool.as_ref().filter(|pool| **pool != offer.pool) {
        return Some(format!("which is in `{}` and not in `{pool}`", offer.pool));
    }
    let has = |key: &String, any: &[String]| {
        any.iter().any(|value| offer.has.get(key).is_some_and(|values| values.contains(value)))
    };
    if let Some((key, any)) = job.needs.iter().find(|(key, any)| !has(key, any)) {
        return Some(format!("which has no `{key}` of {any:?}"));
    }
    if job.slots > offer.slots {
        return Some(format!("which has {} slots of {}", offer.slots, job.slots));
    }
    let lacks = |name: &String, n: u64| offer.amounts.get(name).copied().unwrap_or(0) < n;
    let (name, n) = job.amounts.iter().find(|(name, n)| lacks(name, **n))?;
    Some(format!("which does not have {n} of `{name}`"))
}
