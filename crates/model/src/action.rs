//! What a decision says to do.

use crate::policy::Rule;
use crate::{Fixed, Hold, JobId, Name, Timestamp, WorkerId};

/// One decision: what to do, and why everything else waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What to do, in the order it was decided.
    pub actions: Vec<Action>,
    /// Every job that was not placed, with its one reason, by job id.
    pub holds: Vec<Hold>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run a job on a worker.
    Place(Placement),
    /// Stop an attempt to make room for a job.
    Preempt(Preempt),
    /// Do not look at a job again before a moment.
    Defer(Defer),
}

/// Run `job` on `worker`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The job.
    pub job: JobId,
    /// Where it goes.
    pub worker: WorkerId,
    /// The sum of its points.
    pub score: Fixed,
    /// What each rule said; rules that said nothing are left out.
    pub points: Vec<Points>,
    /// The resource it was given, if it asked for any free one.
    pub resource: Option<Name>,
}

/// What one rule said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Points {
    /// The rule.
    pub rule: Rule,
    /// Its opinion.
    pub points: Fixed,
}

/// Stop the attempt of job `victim` on `worker`, to make room for another job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preempt {
    /// The job whose attempt stops.
    pub victim: JobId,
    /// Where it runs.
    pub worker: WorkerId,
    /// The job that needs the room.
    pub preemptor: JobId,
}

/// Do not look at `job` again before `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defer {
    /// The job.
    pub job: JobId,
    /// The moment.
    pub until: Timestamp,
}
