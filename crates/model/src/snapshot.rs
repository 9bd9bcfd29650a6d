//! The scheduler state as a value.

use std::collections::BTreeMap;

use crate::{
    Attempt, Budget, Cluster, Eviction, Job, JobType, Millis, Name, Policy, Resource, Tenant,
    Timestamp, Worker, WorkerId,
};

/// All input of a decision.
///
/// **Invariant:** checked. Ids are unique, each named tenant and worker is included, and each
/// number is within its range. Code that builds a snapshot from outside data checks this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The time of the decision.
    pub now: Timestamp,
    /// The mean run time of jobs that ended lately. `None` if none did.
    pub usual: Option<Millis>,
    /// The seed of random choices.
    pub seed: u64,
    /// The policy.
    pub policy: Policy,
    /// Policies of pools, by name, for the jobs of these pools.
    pub pools: BTreeMap<Name, Policy>,
    /// The budget of all tenants together. `None` means no limit.
    pub budget: Option<Budget>,
    /// All tenants.
    pub tenants: Vec<Tenant>,
    /// All named resources.
    pub resources: Vec<Resource>,
    /// Types with settings of their own.
    pub types: Vec<JobType>,
    /// All workers.
    pub workers: Vec<Worker>,
    /// Waiting jobs.
    pub jobs: Vec<Job>,
    /// Live attempts.
    pub attempts: Vec<Attempt>,
    /// Recent preemptions.
    pub evictions: Vec<Eviction>,
    /// The worker that asks for work. `None` means a full scheduling cycle.
    pub freed: Option<Freed>,
    /// Averages over the fleet.
    pub cluster: Cluster,
}

/// A worker finished jobs and asks for more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freed {
    /// The asking worker.
    pub worker: WorkerId,
    /// The number of jobs that it just completed.
    pub completed: u32,
}
