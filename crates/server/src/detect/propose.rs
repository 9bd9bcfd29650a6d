//! From a proposal to a job.

use ::detect::{Policy, Proposal};
use model::maxima::NAME_BYTES_MAX;
use model::{Ask, Millis, Retry, Spec};
use proto::{Invalid, v1};
use store::{NewJob, Repeat};

use super::group_of;

/// A job may expect to take so long, for its timeout.
const ESTIMATE_MAX: Millis = Millis::from_secs(8 * 3_600);
/// The label that says in a line what a job is about.
const SUMMARY: &str = "summary";

/// A proposal, read; or what is wrong with it.
pub(super) fn proposal(proposal: v1::Proposal, policy: &Policy) -> Result<Proposal<Spec>, String> {
    checked(proposal, policy).map_err(|invalid| invalid.to_string())
}

fn checked(proposal: v1::Proposal, policy: &Policy) -> Result<Proposal<Spec>, Invalid> {
    let wire = proposal.spec.unwrap_or_default();
    // Who may propose may not choose for others.
    let fixed = [
        ("tenant", wire.tenant.is_empty()),
        ("group", wire.group.is_empty()),
        ("after", wire.after.is_empty() && wire.after_indexes.is_empty()),
        ("parent", wire.parent == 0),
        ("retry", wire.retry.is_none()),
        ("run_timeout_ms", wire.run_timeout_ms.is_none()),
        ("on_hold", !wire.on_hold),
    ];
    if let Some((field, _)) = fixed.into_iter().find(|(_, is_absent)| !is_absent) {
        return Err(Invalid::new(field, "is not a proposal's to say"));
    }
    let mut spec = wire.checked(Retry::DEFAULT)?;
    proto::text("id", &proposal.id, NAME_BYTES_MAX)?;
    proto::text("summary", &proposal.summary, NAME_BYTES_MAX)?;
    let own = Some(proposal.id).filter(|id| !id.is_empty());
    let Some(key) = spec.dedupe_key.take().or(own) else {
        return Err(Invalid::new("dedupe_key", "is missing: what is it about?"));
    };
    if !proposal.summary.is_empty() {
        spec.labels.entry(SUMMARY.to_owned()).or_insert(proposal.summary);
    }
    spec.tenant = policy.tenant.clone();
    Ok(Proposal {
        kind: spec.kind.clone(),
        key,
        priority: spec.priority,
        not_before: spec.not_before,
        expires: spec.start_before,
        job: spec,
    })
}

/// The job that is made of a proposal.
pub(super) fn new_job(proposal: Proposal<Spec>, policy: &Policy, run: &str) -> NewJob {
    let mut spec = proposal.job;
    let expected = spec.estimate.unwrap_or(Millis::ZERO).min(ESTIMATE_MAX);
    spec.run_timeout = Some(policy.run_timeout.max(expected));
    spec.retry = Retry {
        attempts_max: policy.retries_max + 1,
        backoff: policy.retry_backoff,
        backoff_max: policy.retry_backoff.max(Retry::DEFAULT.backoff_max),
    };
    spec.dedupe_key = Some(proposal.key);
    spec.group = Some(group_of(run));
    if let Some(resource) = &policy.resource {
        spec.resource = Some(Ask::Named(resource.clone()));
    }
    NewJob { spec, after_indexes: Vec::new(), repeat: Repeat::Drop, on_hold: false }
}
