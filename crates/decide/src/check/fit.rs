//! Which workers could run a job: now, or ever.

use std::fmt;

use model::{Job, Name, Worker};

use super::ledger::Ledger;

/// What about a worker does not fit a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// It is in another pool than the one that the job must run in.
    Pool(Name),
    /// It does not run jobs of this type.
    Type(Name),
    /// It has none of the values that the job needs for this key.
    Need(Name),
    /// It is unhealthy.
    Unhealthy,
    /// It takes no more work.
    Draining,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(pool) => write!(f, "is not in pool {pool}"),
            Self::Type(kind) => write!(f, "does not run type {kind}"),
            Self::Need(key) => write!(f, "has no value for {key} that the job needs"),
            Self::Unhealthy => f.write_str("is unhealthy"),
            Self::Draining => f.write_str("is draining"),
        }
    }
}

/// The first thing that keeps `worker` from taking `job`, room and limits apart.
pub(super) fn misfit(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> Option<Misfit> {
    mismatch(ledger, job, worker).or(if !worker.healthy {
        Some(Misfit::Unhealthy)
    } else if worker.draining {
        Some(Misfit::Draining)
    } else {
        None
    })
}

/// Whether `worker`, once it were empty and well, could run `job`.
pub(super) fn could_ever_run(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> bool {
    let has_amounts = job.amounts.iter().all(|(name, asked)| {
        let total = worker.amounts.get(name).copied().unwrap_or(0);
        *asked <= total
    });
    mismatch(ledger, job, worker).is_none() && job.slots <= worker.slots && has_amounts
}

/// What `worker` would have to be another worker for, to run `job`.
fn mismatch(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> Option<Misfit> {
    if let Some(pool) = ledger.pool_of(job)
        && *pool != worker.pool
    {
        return Some(Misfit::Pool(pool.clone()));
    }
    if let Some(kind) = &job.kind
        && !worker.types.is_empty()
        && !worker.types.contains(kind)
    {
        return Some(Misfit::Type(kind.clone()));
    }
    job.needs.iter().find_map(|(key, alternatives)| {
        let has = worker.has.get(key).map_or(&[][..], Vec::as_slice);
        let is_met = alternatives.iter().any(|value| has.contains(value));
        (!is_met).then(|| Misfit::Need(key.clone()))
    })
}
