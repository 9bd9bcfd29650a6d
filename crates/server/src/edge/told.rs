//! Why a job waits, in the words of the wire.

use decide::Nearest;
use model::{Check, JobId, Millis};
use proto::v1;

use crate::explain::Explained;

/// Why a job waits, in the words of the wire.
pub(super) fn told(explained: Explained) -> v1::ExplainResponse {
    let Explained { reason, detail, ahead, estimate, checks, nearest } = explained;
    let ms = |length: Millis| length.0.max(0).unsigned_abs();
    let estimate = estimate.as_ref();
    let check = |check: Check| v1::Check {
        code: check.reason.name().to_owned(),
        detail: check.detail,
        numbers: check.numbers.iter().map(|(name, n)| ((*name).to_owned(), n.to_f64())).collect(),
        jobs: check.jobs.iter().filter_map(JobId::as_number).collect(),
        workers: check.workers.iter().map(ToString::to_string).collect(),
        tenants: check.tenants.iter().map(ToString::to_string).collect(),
    };
    let near =
        |near: Nearest| v1::NearWorker { worker: near.worker.to_string(), lacks: near.lacks };
    v1::ExplainResponse {
        reason,
        detail,
        ahead,
        starts_in_ms: estimate.map(|one| ms(one.starts_in)),
        estimate_basis: estimate.map(|one| one.basis.clone()).unwrap_or_default(),
        checks: checks.into_iter().map(check).collect(),
        nearest: nearest.into_iter().map(near).collect(),
        starts_in_min_ms: estimate.map(|one| ms(one.min)),
        starts_in_max_ms: estimate.and_then(|one| one.max).map(ms),
        ..v1::ExplainResponse::default()
    }
}
