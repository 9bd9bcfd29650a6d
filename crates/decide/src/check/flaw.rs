//! What can be wrong with a preemption.

use std::fmt;

use model::{Fixed, JobId, Millis, Reason, WorkerId};

use super::{Limit, Misfit};

/// Why a victim should not be told to stop for a preemptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// The policy does not preempt.
    Off,
    /// The preemptor has been ready for so long only, of the delay that follows.
    TooSoon(Millis, Millis),
    /// The preemptor could not start even if there were room.
    NotRunnable(Reason),
    /// The preemptor waits for this victim already, which was told to stop before.
    WaitsAlready(JobId),
    /// The preemptor's tenant has, or was promised, so many slots in the pool, of a minimum that
    /// follows.
    NotBelowMin(u64, u32),
    /// The worker does not fit the preemptor.
    Unfit(Misfit),
    /// The worker is too small for the preemptor.
    TooSmall,
    /// Once all its victims have stopped, the worker has so little left over for all preemptors
    /// there: this is missing, of what the limit counts.
    NoRoom(Limit, Fixed),
    /// This worker has room for the preemptor.
    SlotFree(WorkerId),
    /// The preemptor has victims on this worker as well.
    ElsewhereToo(WorkerId),

    /// The victim is of the preemptor's own tenant.
    OwnTenant,
    /// The victim's priority, and the preemptor's, which is not higher.
    PriorityNotLower(i32, i32),
    /// The victim has run for so long only, of the time that follows.
    RanTooBriefly(Millis, Millis),
    /// The victim was preempted so often before, of a most that follows.
    EvictedTooOften(u32, u32),
    /// The victim was told to stop before, for this job.
    StopsAlready(JobId),
    /// The victim's tenant would be left with so many slots in the pool, of a minimum that follows.
    TenantBelowMin(u64, u32),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("but preemption is off"),
            Self::TooSoon(Millis(waited), Millis(delay)) => {
                write!(f, "which has been ready for {waited} ms only, of {delay} ms")
            }
            Self::NotRunnable(reason) => {
                write!(f, "which could not start with room either: {}", reason.name())
            }
            Self::WaitsAlready(victim) => write!(f, "which waits for job {victim} already"),
            Self::NotBelowMin(slots, min) => {
                write!(f, "whose tenant has {slots} slots in the pool and a minimum of {min}")
            }
            Self::Unfit(why) => write!(f, "but that worker {why}"),
            Self::TooSmall => f.write_str("but that worker is too small for it"),
            Self::NoRoom(limit, missing) => {
                write!(f, "but that makes no room: {missing} too many {limit}")
            }
            Self::SlotFree(worker) => write!(f, "but worker {worker} has room for it"),
            Self::ElsewhereToo(worker) => write!(f, "which has victims on worker {worker} too"),
            Self::OwnTenant => f.write_str("which is of the same tenant"),
            Self::PriorityNotLower(victim, preemptor) => {
                write!(f, "whose priority {preemptor} is not above {victim}")
            }
            Self::RanTooBriefly(Millis(ran), Millis(min)) => {
                write!(f, "but it has run for {ran} ms only, of {min} ms")
            }
            Self::EvictedTooOften(evictions, max) => {
                write!(f, "but it was preempted {evictions} times before, at most {max}")
            }
            Self::StopsAlready(job) => write!(f, "but it stops for job {job} already"),
            Self::TenantBelowMin(slots, min) => {
                write!(f, "but that leaves its tenant {slots} slots of its minimum of {min}")
            }
        }
    }
}
