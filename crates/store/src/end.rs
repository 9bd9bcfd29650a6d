//! Completions of attempts, and their effects.

use std::sync::Arc;

use model::{Ending, Fixed, JobId, Measured, Record, WorkerId};

use crate::Run;

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The job.
    pub job: JobId,
    /// The number of the attempt.
    pub attempt: u32,
    /// The worker of the attempt.
    pub worker: WorkerId,
    /// Its ending.
    pub ending: Ending,
    /// The error message.
    pub error: Option<String>,
    /// The returned result.
    pub result: Option<Vec<u8>>,
    /// The exit code, if it was a command.
    pub exit_code: Option<i32>,
    /// The measured usage.
    pub measured: Measured,
    /// The cost. `None` means the expected cost.
    pub cost: Option<Fixed>,
    /// The inputs that the worker fetched for the attempt: number of paths and of bytes.
    pub fetched: Option<(u32, u64)>,
    /// The worker reported the start. Stored with the end if it was not stored before.
    pub has_started: bool,
    /// The scheduler ends the attempt, without a report of the worker.
    pub is_silent: bool,
    /// The condition under which this end counts.
    pub provided: Provided,
    /// Keep nothing of the job if it succeeds without a trace: no client will ask about it.
    pub forget: bool,
    /// A random number that spreads retries.
    pub draw: u64,
}

impl End {
    /// An end with this ending and defaults.
    pub fn new(job: JobId, attempt: u32, worker: WorkerId, ending: Ending) -> Self {
        Self {
            job,
            attempt,
            worker,
            ending,
            error: None,
            result: None,
            exit_code: None,
            measured: Measured::default(),
            cost: None,
            fetched: None,
            has_started: false,
            is_silent: false,
            provided: Provided::Nothing,
            forget: false,
            draw: 0,
        }
    }
}

/// The condition for an end that no worker reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provided {
    /// None: the worker reported it, or no longer knows the attempt.
    #[default]
    Nothing,
    /// The worker's lease is over. Its session ends with it, so that no heartbeat can renew it.
    Silence,
    /// The store has no start of the attempt.
    NoStart,
}

/// The outcome of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The end counts.
    Accepted {
        /// The job after the end: queued again, or final.
        record: Arc<Record>,
        /// The cost that its tenant was charged.
        charged: Fixed,
        /// The run, if it says anything about its type.
        run: Option<Box<Run>>,
        /// Dependents that are queued now.
        released: Vec<Record>,
        /// Dependents that are cancelled now.
        cancelled: Vec<Record>,
        /// Unfinished jobs with fewer dependents or blockers than before.
        changed: Vec<Record>,
    },
    /// This attempt ended before, in the same way. Nothing changes.
    Repeated,
    /// This attempt is not the current one, ended before in a different way, or the condition of
    /// the end no longer holds. Nothing changes.
    Stale,
}
