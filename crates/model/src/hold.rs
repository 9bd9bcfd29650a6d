//! Why a job waits.

use std::collections::BTreeMap;

use crate::{Fixed, JobId, TenantId, WorkerId};

/// Why one job was not placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The job.
    pub job: JobId,
    /// The first reason that applies, in the order of [`Reason`].
    pub reason: Reason,
    /// The evidence, and what would change it, in a sentence or two.
    pub detail: String,
}

/// Why a job waits. When several reasons apply, the first in this order is the one that is told.
///
/// The order is from what lasts to what passes. First come reasons that only a person, or a new
/// worker, can end. Then come moments, workers that are away, limits, and last the reasons that end
/// when a slot is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// An operator holds the job. The scheduler knows this, a decision does not.
    OnHold,
    /// No worker that is known, whatever its state, could ever run it.
    NoWorkerEver,
    /// The exclusive lock that it asks for will never be its tenant's.
    NoResourceEver,
    /// Its tenant is paused.
    TenantPaused,
    /// Every worker that could run it is in a pool that an operator paused. The scheduler knows
    /// this; to a decision, those workers drain.
    PoolPaused,
    /// Its tenant's budget does not cover it.
    BudgetSpent,
    /// The budget of all tenants together does not cover it.
    BudgetSpentGlobal,
    /// Its dependencies are not done: it becomes ready later.
    NotReady,
    /// Its submitter, or a backoff after a failed try, asked for a later moment.
    NotBefore,
    /// Workers could run it, but every one of them is draining or gone.
    NoWorkerNow,
    /// Workers could run it, but they are unhealthy.
    WorkerUnhealthy,
    /// A victim was told to stop for it.
    Preempting,
    /// Its tenant holds all the slots that its quota allows.
    TenantAtMax,
    /// Its tenant runs as many jobs as it may.
    TenantAtJobsMax,
    /// Its type runs as many jobs as it may, in all or on each worker.
    TypeAtMax,
    /// The exclusive lock that it asks for is held by another job.
    ResourceHeld,
    /// Every worker that could run it, and that limits let it use, has no room.
    WorkersFull,
    /// The policy keeps the free slots for rarer work that is expected.
    Guarded,
    /// The policy keeps the free slots for a wider job that came first.
    Reserved,
    /// A rule said "not now" for every worker with room.
    Vetoed,
    /// Its points are below zero on every worker with room.
    BelowZero,
    /// Other jobs went first, and no worker asked for more in this decision.
    Outranked,
    /// It is being given to a worker at this moment. The scheduler knows this.
    Claiming,
}

impl Reason {
    /// All reasons, in the order in which they are looked for.
    pub const ALL: [Self; 23] = [
        Self::OnHold,
        Self::NoWorkerEver,
        Self::NoResourceEver,
        Self::TenantPaused,
        Self::PoolPaused,
        Self::BudgetSpent,
        Self::BudgetSpentGlobal,
        Self::NotReady,
        Self::NotBefore,
        Self::NoWorkerNow,
        Self::WorkerUnhealthy,
        Self::Preempting,
        Self::TenantAtMax,
        Self::TenantAtJobsMax,
        Self::TypeAtMax,
        Self::ResourceHeld,
        Self::WorkersFull,
        Self::Guarded,
        Self::Reserved,
        Self::Vetoed,
        Self::BelowZero,
        Self::Outranked,
        Self::Claiming,
    ];

    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnHold => "on-hold",
            Self::NoWorkerEver => "no-worker-ever",
            Self::NoResourceEver => "no-resource-ever",
            Self::TenantPaused => "tenant-paused",
            Self::PoolPaused => "pool-paused",
            Self::BudgetSpent => "budget-spent",
            Self::BudgetSpentGlobal => "budget-spent-global",
            Self::NotReady => "not-ready",
            Self::NotBefore => "not-before",
            Self::NoWorkerNow => "no-worker-now",
            Self::WorkerUnhealthy => "worker-unhealthy",
            Self::Preempting => "preempting",
            Self::TenantAtMax => "tenant-at-max",
            Self::TenantAtJobsMax => "tenant-at-jobs-max",
            Self::TypeAtMax => "type-at-max",
            Self::ResourceHeld => "resource-held",
            Self::WorkersFull => "workers-full",
            Self::Guarded => "guarded",
            Self::Reserved => "reserved",
            Self::Vetoed => "vetoed",
            Self::BelowZero => "below-zero",
            Self::Outranked => "outranked",
            Self::Claiming => "claiming",
        }
    }

    /// Whether it ends only when a person acts, a worker that did not exist comes, or old usage
    /// leaves the window of a budget.
    pub fn is_lasting(self) -> bool {
        self <= Self::BudgetSpentGlobal
    }
}

/// One of the reasons that apply to a waiting job, with its evidence as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The reason.
    pub reason: Reason,
    /// The evidence, and what would change it, in a sentence or two.
    pub detail: String,
    /// What the evidence counts, by name.
    pub numbers: BTreeMap<&'static str, Fixed>,
    /// Jobs that the evidence names.
    pub jobs: Vec<JobId>,
    /// Workers that the evidence names.
    pub workers: Vec<WorkerId>,
    /// Tenants that the evidence names.
    pub tenants: Vec<TenantId>,
}

impl Check {
    /// A reason without evidence that could be counted.
    pub const fn new(reason: Reason, detail: String) -> Self {
        Self {
            reason,
            detail,
            numbers: BTreeMap::new(),
            jobs: Vec::new(),
            workers: Vec::new(),
            tenants: Vec::new(),
        }
    }
}
