//! The result of a decision.

use crate::policy::Rule;
use crate::{Fixed, Hold, JobId, Name, Timestamp, WorkerId};

/// One decision: the actions, and a hold reason for each job that still waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The actions, in the order of the decision.
    pub actions: Vec<Action>,
    /// The hold reason of each job that was not placed, by job id.
    pub holds: Vec<Hold>,
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run a job on a worker.
    Place(Placement),
    /// Stop an attempt to make room for a job.
    Preempt(Preempt),
    /// Do not consider a job again before a time.
    Defer(Defer),
}

/// Run `job` on `worker`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The job.
    pub job: JobId,
    /// Its worker.
    pub worker: WorkerId,
    /// The sum of its points.
    pub score: Fixed,
    /// The points of each rule. Rules without an opinion are left out.
    pub points: Vec<Points>,
    /// The resource that it gets, if it asked for any free one.
    pub resource: Option<Name>,
}

/// The points of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Points {
    /// The rule.
    pub rule: Rule,
    /// Its points.
    pub points: Fixed,
}

/// Stop the attempt of job `victim` on `worker`, to make room for a different job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preempt {
    /// The job whose attempt stops.
    pub victim: JobId,
    /// The worker of the attempt.
    pub worker: WorkerId,
    /// The job that needs the room.
    pub preemptor: JobId,
}

/// Do not consider `job` again before `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defer {
    /// The job.
    pub job: JobId,
    /// The time.
    pub until: Timestamp,
}
