//! The life of a job: its states, and the endings of its attempts.

use std::sync::Arc;

use crate::{Ask, Fixed, JobId, Name, Spec, Timestamp, WorkerId};

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Waits for other jobs.
    Blocked,
    /// Waits to be placed.
    Queued,
    /// Claimed for a worker that has not reported its start.
    Claimed,
    /// Runs on a worker.
    Running,
    /// Final: succeeded.
    Succeeded,
    /// Final: failed, without a further try.
    Failed,
    /// Final: cancelled.
    Cancelled,
}

impl State {
    /// All states, in the order of a life.
    pub const ALL: [Self; 7] = [
        Self::Blocked,
        Self::Queued,
        Self::Claimed,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Queued => "queued",
            Self::Claimed => "claimed",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether it is final.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// Whether a worker has the job.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Claimed | Self::Running)
    }

    /// Whether a job may go from this state to `to` in one step.
    ///
    /// **Invariant:** a job never leaves a terminal state. (A requested retry is a new life, which
    /// the `revived` count of the record shows.)
    pub const fn may_become(self, to: Self) -> bool {
        match self {
            Self::Blocked => matches!(to, Self::Queued | Self::Cancelled),
            Self::Queued => matches!(to, Self::Claimed | Self::Failed | Self::Cancelled),
            Self::Claimed => matches!(to, Self::Queued | Self::Running) || to.is_terminal(),
            Self::Running => matches!(to, Self::Queued) || to.is_terminal(),
            Self::Succeeded | Self::Failed | Self::Cancelled => false,
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ending {
    /// It succeeded.
    Succeeded,
    /// It failed, and a retry may succeed.
    Transient,
    /// It failed, and a retry cannot succeed.
    Permanent,
    /// Its worker disappeared, or lost track of it.
    Lost,
    /// Its worker refused it: it has no room after all, or it is leaving.
    Refused,
    /// It exceeded its run timeout or its silence timeout.
    Timeout,
    /// The scheduler ended it, because no heartbeat named it for too long.
    Stale,
    /// It was preempted for a different job.
    Preempted,
    /// Its job was cancelled.
    Cancelled,
}

impl Ending {
    /// All endings.
    pub const ALL: [Self; 9] = [
        Self::Succeeded,
        Self::Transient,
        Self::Permanent,
        Self::Lost,
        Self::Refused,
        Self::Timeout,
        Self::Stale,
        Self::Preempted,
        Self::Cancelled,
    ];

    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Transient => "transient",
            Self::Permanent => "permanent",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Stale => "stale",
            Self::Preempted => "preempted",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the attempt ended by itself: it started, and was not stopped from outside.
    pub const fn is_own(self) -> bool {
        match self {
            Self::Succeeded | Self::Transient | Self::Permanent | Self::Timeout => true,
            Self::Lost | Self::Refused | Self::Stale | Self::Preempted | Self::Cancelled => false,
        }
    }

    /// The ending with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ending| ending.name() == name)
    }
}

/// The cause of a final state other than succeeded. Stored and filtered by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Its last attempt failed, and it has no tries left.
    Exhausted,
    /// Its last attempt failed in a way that a retry cannot fix.
    Permanent,
    /// Its last attempt was ended as stale, and it has no tries left.
    Stale,
    /// Too many workers died while they ran it. Parked for an operator.
    Poison,
    /// It still waited at its `start_before`.
    TooLate,
    /// A client cancelled it.
    Asked,
    /// A job that it depends on did not succeed.
    Dependency,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 7] = [
        Self::Exhausted,
        Self::Permanent,
        Self::Stale,
        Self::Poison,
        Self::TooLate,
        Self::Asked,
        Self::Dependency,
    ];

    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::Permanent => "permanent",
            Self::Stale => "stale",
            Self::Poison => "poison",
            Self::TooLate => "too-late",
            Self::Asked => "asked",
            Self::Dependency => "dependency",
        }
    }

    /// The cause with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

/// Counters of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attempts so far. The number of the current one is its fencing token.
    pub attempts: u32,
    /// Attempts that failed or timed out. These use up tries.
    pub failures: u32,
    /// Attempts that were lost with their worker.
    pub losses: u32,
    /// Attempts that were preempted.
    pub evictions: u32,
    /// Attempts that a worker refused.
    pub refusals: u32,
    /// Revivals after a final state.
    pub revived: u32,
}

impl Counts {
    /// The counts after an attempt with this ending.
    #[must_use]
    pub const fn after(mut self, ending: Ending) -> Self {
        match ending {
            Ending::Transient | Ending::Permanent | Ending::Timeout | Ending::Stale => {
                self.failures += 1;
            }
            Ending::Lost => self.losses += 1,
            Ending::Refused => self.refusals += 1,
            Ending::Preempted => self.evictions += 1,
            Ending::Succeeded | Ending::Cancelled => {}
        }
        self
    }
}

/// A job over its whole life: its specification, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub id: JobId,
    /// Its specification.
    pub spec: Arc<Spec>,
    /// Its state.
    pub state: State,
    /// Increases with every change of the record. A claim names the fence that it expects.
    pub fence: u64,
    /// The submitter's priority, or a later one that a client set.
    pub priority: i32,
    /// Its counters.
    pub counts: Counts,
    /// When it was submitted.
    pub created: Timestamp,
    /// When it could first have run. `None` while it is blocked. Never reset.
    pub ready: Option<Timestamp>,
    /// The time before which it is not retried.
    pub backoff_until: Option<Timestamp>,
    /// Kept in the queue until a client releases it.
    pub on_hold: bool,
    /// A client cancelled it while a worker had it. It ends as cancelled.
    pub cancelling: bool,
    /// Unfinished jobs that it depends on.
    pub n_blockers: u32,
    /// Unfinished jobs that depend on it.
    pub n_dependents: u32,
    /// The worker of its last ended attempt.
    pub last_worker: Option<WorkerId>,
    /// The live attempt. `Some` exactly while the job is claimed or running.
    pub current: Option<Current>,
    /// When it became final.
    pub finished: Option<Timestamp>,
    /// The cause, if it is final and did not succeed.
    pub cause: Option<Cause>,
    /// The error message of its last failed attempt.
    pub error: Option<String>,
    /// Its result.
    pub result: Option<Vec<u8>>,
    /// The exit code of its last attempt, if it was a command.
    pub exit_code: Option<i32>,
    /// Its final cost.
    pub cost: Option<Fixed>,
}

/// The live attempt. Its number is [`Counts::attempts`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    /// Its worker.
    pub worker: WorkerId,
    /// The pool of its worker at the claim.
    pub pool: Name,
    /// When it was claimed.
    pub claimed: Timestamp,
    /// When its worker reported the start. `None` while it is only claimed.
    pub started: Option<Timestamp>,
    /// The lock that it holds: a named resource, or one of its tenant's workspaces.
    pub holds: Option<Ask>,
    /// Its progress. `None` if it never reported any.
    pub progress: Option<Progress>,
    /// The explanation of its placement, for users.
    pub why: String,
}

/// The progress that an attempt reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// From 0 to 1.
    pub fraction: Fixed,
    /// A note for users, may be empty.
    pub note: String,
    /// The name of its current step. Empty if it has none.
    pub stage: String,
}

/// The usage of one attempt. `None` means not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Peak memory of all its processes.
    pub ram_peak_mb: Option<u64>,
    /// CPU time of all its processes.
    pub cpu_ms: Option<u64>,
    /// Bytes read from and written to disks.
    pub disk_bytes: Option<u64>,
    /// Whether it ran out of memory.
    pub out_of_memory: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_state_is_never_left() {
        for from in State::ALL.into_iter().filter(|state| state.is_terminal()) {
            assert!(State::ALL.into_iter().all(|to| !from.may_become(to)));
        }
    }

    #[test]
    fn names_lead_back_to_what_they_name() {
        assert!(State::ALL.into_iter().all(|one| State::named(one.name()) == Some(one)));
        assert!(Ending::ALL.into_iter().all(|one| Ending::named(one.name()) == Some(one)));
        assert!(Cause::ALL.into_iter().all(|one| Cause::named(one.name()) == Some(one)));
    }
}
