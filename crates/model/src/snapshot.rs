//! A world written down.

use std::collections::BTreeMap;

use crate::{
    Attempt, Budget, Cluster, Eviction, Job, JobType, Millis, Name, Policy, Resource, Tenant,
    Timestamp, Worker, WorkerId,
};

/// Everything a decision may depend on.
///
/// **Invariant:** checked. Ids are unique; every tenant and worker that is named is in here; no
/// number is outside its range. Whoever builds one from the outside checks this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The moment of the decision.
    pub now: Timestamp,
    /// How long jobs ran that ended lately, as a mean; `None` if none did.
    pub usual: Option<Millis>,
    /// What draws come from.
    pub seed: u64,
    /// How to decide.
    pub policy: Policy,
    /// Policies of pools, by their names; they decide on jobs of these pools.
    pub pools: BTreeMap<Name, Policy>,
    /// What all tenants together may use; `None` means no limit.
    pub budget: Option<Budget>,
    /// Who shares the fleet.
    pub tenants: Vec<Tenant>,
    /// What can be held.
    pub resources: Vec<Resource>,
    /// Types with settings of their own.
    pub types: Vec<JobType>,
    /// The fleet.
    pub workers: Vec<Worker>,
    /// What waits.
    pub jobs: Vec<Job>,
    /// What runs.
    pub attempts: Vec<Attempt>,
    /// Who was preempted lately.
    pub evictions: Vec<Eviction>,
    /// A worker that asks for work; `None` means a full round.
    pub freed: Option<Freed>,
    /// Averages over the fleet.
    pub cluster: Cluster,
}

/// A worker finished jobs and asks for more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freed {
    /// Who asks.
    pub worker: WorkerId,
    /// How many jobs it just completed.
    pub completed: u32,
}
