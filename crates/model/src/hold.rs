//! Hold reasons: why a job waits.

use std::collections::BTreeMap;

use crate::{Fixed, JobId, TenantId, WorkerId};

/// The hold reason of a job that was not placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The job.
    pub job: JobId,
    /// The first reason that applies, in the order of [`Reason`].
    pub reason: Reason,
    /// The evidence and the remedy, in a sentence or two.
    pub detail: String,
}

/// A hold reason. When several apply, the first in this order is reported.
///
/// Reasons that last come before reasons that pass. First come reasons that only an operator or a
/// new worker can end. Then come times, unreachable workers and limits, and last the reasons that
/// end when a slot is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// An operator holds the job. Only the scheduler knows this, not a decision.
    OnHold,
    /// No known worker, in any state, could ever run it.
    NoWorkerEver,
    /// Its tenant can never get the exclusive lock that it asks for.
    NoResourceEver,
    /// Its tenant is paused.
    TenantPaused,
    /// Every worker that could run it is in a pool that an operator paused. Only the scheduler
    /// knows this. A decision sees those workers as draining.
    PoolPaused,
    /// Its tenant's budget does not cover it.
    BudgetSpent,
    /// The budget of all tenants together does not cover it.
    BudgetSpentGlobal,
    /// Its dependencies are not final: it becomes ready later.
    NotReady,
    /// The submitter set a later time, or a retry backoff has not passed.
    NotBefore,
    /// Every worker that could run it is draining or disconnected.
    NoWorkerNow,
    /// Every worker that could run it is unhealthy.
    WorkerUnhealthy,
    /// A victim was asked to stop for it.
    Preempting,
    /// Its tenant uses all slots of its quota.
    TenantAtMax,
    /// Its tenant has reached its limit of jobs.
    TenantAtJobsMax,
    /// Its type has reached its limit of jobs, in total or on each worker.
    TypeAtMax,
    /// A different job holds the exclusive lock that it asks for.
    ResourceHeld,
    /// Every worker that could run it, and that limits let it use, is full.
    WorkersFull,
    /// The policy reserves the free slots for rare work that is expected.
    Guarded,
    /// The policy keeps the free slots for an earlier multi-slot job.
    Reserved,
    /// A rule vetoed every worker with room.
    Vetoed,
    /// Its points are below zero on every worker with room.
    BelowZero,
    /// Other jobs went first, and the workers of this decision asked for no more.
    Outranked,
    /// It is being claimed. Only the scheduler knows this.
    Claiming,
}

impl Reason {
    /// All reasons, in their order.
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

    /// Whether it ends only by an action of an operator, by a new worker, or when old usage leaves
    /// the window of a budget.
    pub fn is_lasting(self) -> bool {
        self <= Self::BudgetSpentGlobal
    }
}

/// One of the reasons that apply to a waiting job, with its evidence as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The reason.
    pub reason: Reason,
    /// The evidence and the remedy, in a sentence or two.
    pub detail: String,
    /// The numbers of the evidence, by name.
    pub numbers: BTreeMap<&'static str, Fixed>,
    /// Jobs that the evidence names.
    pub jobs: Vec<JobId>,
    /// Workers that the evidence names.
    pub workers: Vec<WorkerId>,
    /// Tenants that the evidence names.
    pub tenants: Vec<TenantId>,
}

impl Check {
    /// A reason without numbers as evidence.
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
