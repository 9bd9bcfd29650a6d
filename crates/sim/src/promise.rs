//! How long a job waits at most, where that is promised, and whether it was kept.

use model::{Millis, Policy};

use crate::engine::Replay;
use crate::fleet::Fleet;
use crate::workload::Workload;

/// The longest wait that a policy promises to every job of a workload on a fleet; `None` if it
/// promises nothing.
///
/// No preset states a bound yet: one that does says here how to work it out from what it is given.
pub const fn bound(_policy: &Policy, _workload: &Workload, _fleet: &Fleet) -> Option<Millis> {
    None
}

/// A promise and how often it was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// No job waits longer than this.
    pub bound: Millis,
    /// How many did.
    pub n_violations: usize,
}

impl Promise {
    /// How a promise was kept in a replay.
    pub fn new(workload: &Workload, replay: &Replay, bound: Millis) -> Self {
        let jobs = workload.jobs.iter().zip(&replay.starts);
        let late = jobs.filter(|(job, start)| start.at.since(job.arrival) > bound);
        Self { bound, n_violations: late.count() }
    }
}
