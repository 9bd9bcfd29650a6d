//! What jobs hold alone while they run.

use std::fmt;

use model::{Ask, Job, JobId, Name, TenantId};

use super::Violation;
use super::ledger::{Ledger, Placed};
use super::limits;

/// Why a job cannot hold a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// It belongs to somebody else.
    Foreign,
    /// This job holds it.
    Held(JobId),
    /// An attempt holds it.
    InUse,
    /// Several placements hold it.
    GivenTwice,
    /// The job did not ask for it.
    NotAsked,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("does not belong to its tenant"),
            Self::Held(holder) => write!(f, "is held by job {holder}"),
            Self::InUse => f.write_str("is held by an attempt"),
            Self::GivenTwice => f.write_str("is given to another job as well"),
            Self::NotAsked => f.write_str("it did not ask for"),
        }
    }
}

/// Whether what `job` must hold is still free, once the placements have started.
pub(super) fn is_free(ledger: &Ledger<'_>, job: &Job) -> bool {
    let is_free = |name: &Name| {
        held_before(ledger, name).is_none() && !ledger.placed.resource_holders.contains_key(name)
    };
    match &job.resource {
        None => true,
        Some(Ask::Named(name)) => is_allowed(ledger, &job.tenant, name) && is_free(name),
        Some(Ask::Any) => {
            let mut all = ledger.before.resources.iter();
            all.any(|res| res.tenant.as_ref() == Some(&job.tenant) && is_free(&res.name))
                || limits::workspaces(ledger, job).allows_one_more()
        }
    }
}

/// What is wrong with what each placed job holds.
pub(super) fn check(ledger: &Ledger<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for placed in &ledger.placements {
        if let Some((name, why)) = denial(ledger, placed) {
            violations.push(Violation::Resource { job: placed.job.id.clone(), name, why });
        }
    }
    violations
}

fn denial(ledger: &Ledger<'_>, placed: &Placed<'_>) -> Option<(Name, Denial)> {
    let Placed { job, given, .. } = *placed;
    let (name, is_allowed) = match (&job.resource, given) {
        (None | Some(Ask::Any), None) => return None,
        (None, Some(name)) => return Some((name.clone(), Denial::NotAsked)),
        (Some(Ask::Named(asked)), Some(name)) if asked != name => {
            return Some((name.clone(), Denial::NotAsked));
        }
        (Some(Ask::Named(name)), _) => (name, is_allowed(ledger, &job.tenant, name)),
        (Some(Ask::Any), Some(name)) => (name, is_own(ledger, &job.tenant, name)),
    };
    let is_given_twice = ledger.placed.resource_holders.get(name).is_some_and(|n| *n > 1);
    let why = if is_allowed {
        held_before(ledger, name).or(is_given_twice.then_some(Denial::GivenTwice))?
    } else {
        Denial::Foreign
    };
    Some((name.clone(), why))
}

/// Whether `name` is `tenant`'s own, or anybody's. A name without an entry is anybody's.
fn is_allowed(ledger: &Ledger<'_>, tenant: &TenantId, name: &Name) -> bool {
    let owner = ledger.resource(name).and_then(|resource| resource.tenant.as_ref());
    owner.is_none_or(|owner| owner == tenant)
}

/// Whether `name` is `tenant`'s own.
fn is_own(ledger: &Ledger<'_>, tenant: &TenantId, name: &Name) -> bool {
    ledger.resource(name).is_some_and(|resource| resource.tenant.as_ref() == Some(tenant))
}

/// Who held `name` before the decision.
fn held_before(ledger: &Ledger<'_>, name: &Name) -> Option<Denial> {
    if let Some(holder) = ledger.resource(name).and_then(|resource| resource.holder.clone()) {
        return Some(Denial::Held(holder));
    }
    ledger.running.resource_holders.contains_key(name).then_some(Denial::InUse)
}
