//! What happens to a world.

use crate::{
    Attempt, Budget, Cluster, Eviction, Fixed, Inputs, Job, JobId, JobType, Metrics, Name, Policy,
    Resource, Tenant, TenantId, Timestamp, Worker, WorkerId,
};

/// One thing that happened. A world takes them in any order that could have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The policy was set; every order is built again.
    Policy(Box<Policy>),
    /// The policy of a pool was set; every order is built again.
    PoolPolicy {
        /// The pool.
        pool: Name,
        /// What decides on jobs of the pool; `None` means the site's policy.
        policy: Option<Box<Policy>>,
    },
    /// What all tenants together may use was set.
    Budget(Option<Budget>),
    /// A tenant was set, by id.
    Tenant(Tenant),
    /// A resource was set, by name.
    Resource(Resource),
    /// A job type was set, by name.
    Type(JobType),
    /// The averages were computed anew.
    Cluster(Box<Cluster>),
    /// A tenant's usage was counted anew, after old usage left the window.
    Usage {
        /// Whose.
        tenant: TenantId,
        /// Cost settled within the window.
        used: Fixed,
        /// Jobs completed within the window.
        completed: u64,
    },
    /// A job of a tenant was preempted.
    Evicted(Eviction),

    /// A worker came, or came again with other properties. Its attempts stay.
    Joined(Box<Worker>),
    /// A worker said how it is.
    Heartbeat(Heartbeat),
    /// A worker is gone. Its attempts stay until they are ended one by one.
    Left(WorkerId),
    /// A worker said what it lacks of a job's inputs.
    Inputs {
        /// Who said it.
        worker: WorkerId,
        /// Of which job.
        job: JobId,
        /// What is missing.
        inputs: Inputs,
    },

    /// Another round passed in which nobody knew what a job's inputs are.
    Unscored(JobId),
    /// A job was submitted, or came back; if it waits already, it is replaced.
    Queued(Box<Job>),
    /// A waiting job was withdrawn.
    Withdrawn(JobId),
    /// A job runs. If it waits in this world, it waits no longer.
    Started(Box<Attempt>),
    /// A job's attempt came to an end.
    Ended(Ended),
    /// An attempt was told to stop, to make room for another job.
    Stopping {
        /// The job whose attempt stops.
        victim: JobId,
        /// The job that needs the room.
        preemptor: JobId,
    },
    /// An attempt goes on: it turned out that nobody needs the room.
    Spared {
        /// The job whose attempt was to stop.
        victim: JobId,
        /// The job for which it was.
        preemptor: JobId,
    },
}

/// An attempt came to an end; its slots, amounts and resource are free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The job.
    pub job: JobId,
    /// What it cost in the end, settled to its tenant; zero if it is to be forgotten.
    pub cost: Fixed,
    /// Whether it counts as completed.
    pub completed: bool,
    /// When.
    pub at: Timestamp,
}

/// How a worker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Who says it.
    pub worker: WorkerId,
    /// Slots it says are free; `None` means all that its attempts leave.
    pub slots_free: Option<u32>,
    /// Whether it is well enough to take work.
    pub healthy: bool,
    /// Whether it takes no more work.
    pub draining: bool,
    /// Locality labels that it has, sorted.
    pub hints: Vec<Name>,
    /// What it measures of itself.
    pub metrics: Metrics,
    /// When it said so.
    pub at: Timestamp,
}
