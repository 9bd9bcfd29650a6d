//! Whether no job of a replay waited longer than a bound.

use model::Millis;

use crate::engine::Replay;
use crate::workload::Workload;

/// A bound on waits and how often it was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// No job waits longer than this.
    pub bound: Millis,
    /// How many did.
    pub n_violations: usize,
}

impl Promise {
    /// How a bound for all jobs was kept in a replay.
    pub fn new(workload: &Workload, replay: &Replay, bound: Millis) -> Self {
        let jobs = workload.jobs.iter().zip(&replay.starts);
        let late = jobs.filter(|(job, start)| start.at.since(job.arrival) > bound);
        Self { bound, n_violations: late.count() }
    }
}
