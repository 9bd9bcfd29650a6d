//! Events that change the scheduler state.

use crate::{
    Attempt, Budget, Cluster, Eviction, Fixed, Inputs, Job, JobId, JobType, Metrics, Name, Policy,
    Resource, Tenant, TenantId, Timestamp, Worker, WorkerId,
};

/// One event. The scheduler state accepts events in any order that could have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The policy was set. Every order is built again.
    Policy(Box<Policy>),
    /// The policy of a pool was set. Every order is built again.
    PoolPolicy {
        /// The pool.
        pool: Name,
        /// The policy for jobs of the pool. `None` means the site's policy.
        policy: Option<Box<Policy>>,
    },
    /// The budget of all tenants together was set.
    Budget(Option<Budget>),
    /// A tenant was set, by id.
    Tenant(Tenant),
    /// A resource was set, by name.
    Resource(Resource),
    /// A job type was set, by name.
    Type(JobType),
    /// New averages were computed.
    Cluster(Box<Cluster>),
    /// A tenant's usage was computed again, after old usage left the window.
    Usage {
        /// The tenant.
        tenant: TenantId,
        /// Cost settled within the window.
        used: Fixed,
        /// Jobs completed within the window.
        completed: u64,
    },
    /// A job of a tenant was preempted.
    Evicted(Eviction),

    /// A worker connected, or connected again with new properties. Its attempts stay.
    Joined(Box<Worker>),
    /// A worker sent a heartbeat.
    Heartbeat(Heartbeat),
    /// A worker is gone. Its attempts stay until they are ended one by one.
    Left(WorkerId),
    /// A worker reported the missing inputs of a job.
    Inputs {
        /// The reporting worker.
        worker: WorkerId,
        /// The job.
        job: JobId,
        /// The missing inputs.
        inputs: Inputs,
    },

    /// A further scheduling cycle passed without information about a job's inputs.
    Unscored(JobId),
    /// A job was submitted, or was queued again. If it waits already, it is replaced.
    Queued(Box<Job>),
    /// A waiting job was withdrawn.
    Withdrawn(JobId),
    /// A job runs. If it waited in this state, it waits no longer.
    Started(Box<Attempt>),
    /// A job's attempt ended.
    Ended(Ended),
    /// An attempt was asked to stop, to make room for a different job.
    Stopping {
        /// The job whose attempt stops.
        victim: JobId,
        /// The job that needs the room.
        preemptor: JobId,
    },
    /// An attempt continues, because no job needs its room any more.
    Spared {
        /// The job whose attempt was to stop.
        victim: JobId,
        /// The job that needed the room.
        preemptor: JobId,
    },
}

/// An attempt ended. Its slots, amounts and resource are free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The job.
    pub job: JobId,
    /// Its final cost, charged to its tenant. Zero if the attempt is not charged.
    pub cost: Fixed,
    /// Whether it counts as completed.
    pub completed: bool,
    /// When it ended.
    pub at: Timestamp,
}

/// The condition of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The reporting worker.
    pub worker: WorkerId,
    /// Slots that it reports as free. `None` means all that its attempts leave.
    pub slots_free: Option<u32>,
    /// Whether it can take jobs.
    pub healthy: bool,
    /// Whether it takes no more jobs.
    pub draining: bool,
    /// Locality labels that it has, sorted.
    pub hints: Vec<Name>,
    /// Its measurements.
    pub metrics: Metrics,
    /// When it reported.
    pub at: Timestamp,
}
