//! Why a job waits.

use crate::JobId;

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

/// The one reason why a job waits. When several apply, the first in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Its dependencies are not done: it becomes ready later.
    NotReady,
    /// Its submitter, or a backoff after a failed try, asked for a later moment.
    NotBefore,
    /// No worker that is known, whatever its state, could ever run it.
    NoWorkerEver,
    /// Workers could run it, but every one of them is draining or gone.
    NoWorkerNow,
    /// Every worker that could run it has no room.
    WorkersFull,
    /// Workers could run it, but they are unhealthy.
    WorkerUnhealthy,
    /// Its tenant is paused.
    TenantPaused,
    /// Its tenant holds all the slots that its quota allows.
    TenantAtMax,
    /// A victim was told to stop for it.
    Preempting,
    /// The policy keeps the free slots for rarer work that is expected.
    Guarded,
    /// The policy keeps the free slots for a wider job that came first.
    Reserved,
    /// Its tenant runs as many jobs as it may.
    TenantAtJobsMax,
    /// Its type runs as many jobs as it may, in all or on each worker.
    TypeAtMax,
    /// Its tenant's budget does not cover it.
    BudgetSpent,
    /// The budget of all tenants together does not cover it.
    BudgetSpentGlobal,
    /// What it must hold is held by another job.
    ResourceHeld,
    /// A rule said "not now" for every worker with room.
    Vetoed,
    /// Its points are below zero on every worker with room.
    BelowZero,
    /// Others went first, and nobody asked further in this decision.
    Outranked,
}

impl Reason {
    /// All reasons, in the order in which they are looked for.
    pub const ALL: [Self; 19] = [
        Self::NotReady,
        Self::NotBefore,
        Self::NoWorkerEver,
        Self::NoWorkerNow,
        Self::WorkersFull,
        Self::WorkerUnhealthy,
        Self::TenantPaused,
        Self::TenantAtMax,
        Self::Preempting,
        Self::Guarded,
        Self::Reserved,
        Self::TenantAtJobsMax,
        Self::TypeAtMax,
        Self::BudgetSpent,
        Self::BudgetSpentGlobal,
        Self::ResourceHeld,
        Self::Vetoed,
        Self::BelowZero,
        Self::Outranked,
    ];

    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotReady => "not-ready",
            Self::NotBefore => "not-before",
            Self::NoWorkerEver => "no-worker-ever",
            Self::NoWorkerNow => "no-worker-now",
            Self::WorkersFull => "workers-full",
            Self::WorkerUnhealthy => "worker-unhealthy",
            Self::TenantPaused => "tenant-paused",
            Self::TenantAtMax => "tenant-at-max",
            Self::Preempting => "preempting",
            Self::Guarded => "guarded",
            Self::Reserved => "reserved",
            Self::TenantAtJobsMax => "tenant-at-jobs-max",
            Self::TypeAtMax => "type-at-max",
            Self::BudgetSpent => "budget-spent",
            Self::BudgetSpentGlobal => "budget-spent-global",
            Self::ResourceHeld => "resource-held",
            Self::Vetoed => "vetoed",
            Self::BelowZero => "below-zero",
            Self::Outranked => "outranked",
        }
    }
}
