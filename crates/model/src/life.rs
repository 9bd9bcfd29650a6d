//! The life of a job: its states, what ends an attempt, and what comes next.

use std::sync::Arc;

use crate::{Ask, Fixed, JobId, Name, Spec, Timestamp, WorkerId};

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Waits for other jobs.
    Blocked,
    /// Waits to be placed.
    Queued,
    /// Taken out of the queue for a worker that has not said yet that it runs.
    Claimed,
    /// Runs on a worker.
    Running,
    /// Done.
    Succeeded,
    /// Not done, and not tried again.
    Failed,
    /// Called off.
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

    /// The state of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether it is final.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// Whether a worker has it.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Claimed | Self::Running)
    }

    /// Whether a job may go from this state to `to` in one step.
    ///
    /// **Invariant:** a terminal state is never left. (A retry that a person asks for is a new
    /// life: the record says so by its `revived` count.)
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
    /// It did what it was to do.
    Succeeded,
    /// It failed in a way that may pass.
    Transient,
    /// It failed in a way that will not pass.
    Permanent,
    /// Its worker vanished, or the worker lost track of it.
    Lost,
    /// Its worker would not have it: no room after all, or it is leaving.
    Refused,
    /// It ran, or was silent, for longer than it may.
    Timeout,
    /// Nobody heard of it, or of its worker, for so long that it is given up.
    Stale,
    /// It was stopped to make room for another job.
    Preempted,
    /// It was called off.
    Cancelled,
}

impl Ending {
    /// All of them.
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

    /// Whether the attempt came to it by itself: it was begun, and nobody stopped it from outside.
    pub const fn is_own(self) -> bool {
        match self {
            Self::Succeeded | Self::Transient | Self::Permanent | Self::Timeout => true,
            Self::Lost | Self::Refused | Self::Stale | Self::Preempted | Self::Cancelled => false,
        }
    }

    /// The ending of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ending| ending.name() == name)
    }
}

/// Why a job is in a final state other than succeeded. Stored by name, and what filters ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Its last attempt failed, and it has no tries left.
    Exhausted,
    /// Its last attempt failed in a way that will not pass.
    Permanent,
    /// Its last attempt was given up because nobody heard of it, and it has no tries left.
    Stale,
    /// It took too many workers with it: parked until somebody looks at it.
    Poison,
    /// It still waited when it was no longer worth starting.
    TooLate,
    /// Somebody called it off.
    Asked,
    /// A job that it waited for did not succeed.
    Dependency,
}

impl Cause {
    /// All of them.
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

    /// The cause of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

/// How often what happened to a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attempts so far. The number of the current one is its fencing token.
    pub attempts: u32,
    /// Attempts that failed or timed out: the ones that use up tries.
    pub failures: u32,
    /// Attempts that were lost with their worker.
    pub losses: u32,
    /// Attempts that were stopped to make room.
    pub evictions: u32,
    /// Attempts that a worker would not have.
    pub refusals: u32,
    /// How often it was taken up again after it had finished.
    pub revived: u32,
}

impl Counts {
    /// The counts after an attempt that ended so.
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

/// A job over its whole life: what was asked, and what became of it so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub id: JobId,
    /// What was asked.
    pub spec: Arc<Spec>,
    /// Where it is.
    pub state: State,
    /// Goes up with every change of the record. Whoever claims it names the fence that it saw.
    pub fence: u64,
    /// What the submitter asked for, or whoever changed it since.
    pub priority: i32,
    /// How often what happened.
    pub counts: Counts,
    /// When it was submitted.
    pub created: Timestamp,
    /// When it first could have run; `None` while it is blocked. Never reset.
    pub ready: Option<Timestamp>,
    /// Not to be tried again earlier.
    pub backoff_until: Option<Timestamp>,
    /// Kept in the queue until somebody releases it.
    pub on_hold: bool,
    /// Somebody called it off while a worker had it; it ends as cancelled.
    pub cancelling: bool,
    /// Unfinished jobs that it waits for.
    pub n_blockers: u32,
    /// Unfinished jobs that wait for it.
    pub n_dependents: u32,
    /// Where its last attempt that ended ran.
    pub last_worker: Option<WorkerId>,
    /// The attempt that a worker has now; `Some` exactly while it is claimed or running.
    pub current: Option<Current>,
    /// When it came to its final state.
    pub finished: Option<Timestamp>,
    /// Why it is not succeeded, if it is final.
    pub cause: Option<Cause>,
    /// What its last failed attempt said, in words.
    pub error: Option<String>,
    /// What it returned.
    pub result: Option<Vec<u8>>,
    /// The exit code of its last attempt, if it was a command.
    pub exit_code: Option<i32>,
    /// What it cost in the end.
    pub cost: Option<Fixed>,
}

/// The attempt that a worker has now. Its number is [`Counts::attempts`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    /// Who has it.
    pub worker: WorkerId,
    /// The pool that its worker was in when it was claimed.
    pub pool: Name,
    /// When it was claimed.
    pub claimed: Timestamp,
    /// When its worker said that it runs; `None` while it is only claimed.
    pub started: Option<Timestamp>,
    /// What it holds: a named resource, or one of its tenant's workspaces without a name.
    pub holds: Option<Ask>,
    /// How far it is; `None` if it never said.
    pub progress: Option<Progress>,
    /// Why it was placed there, as it is to be shown.
    pub why: String,
}

/// How far an attempt says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// From 0 to 1.
    pub fraction: Fixed,
    /// In words; may be empty.
    pub note: String,
    /// Which of its steps it is at, by name; empty if it has none.
    pub stage: String,
}

/// What one attempt used. `None` means that it was not measured.
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
