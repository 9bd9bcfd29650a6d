//! Ends of attempts, and what becomes of them.

use std::sync::Arc;

use model::{Ending, Fixed, JobId, Measured, Record, WorkerId};

use crate::Run;

/// An attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The job.
    pub job: JobId,
    /// The number of the attempt.
    pub attempt: u32,
    /// Who had it.
    pub worker: WorkerId,
    /// How it ended.
    pub ending: Ending,
    /// What went wrong, in words.
    pub error: Option<String>,
    /// What it returned.
    pub result: Option<Vec<u8>>,
    /// The exit code, if it was a command.
    pub exit_code: Option<i32>,
    /// What it used.
    pub measured: Measured,
    /// What it cost; `None` means what was expected.
    pub cost: Option<Fixed>,
    /// What its worker had to fetch for it: paths and bytes.
    pub fetched: Option<(u32, u64)>,
    /// Its worker said that it ran: written down with the end, if it was not before.
    pub has_started: bool,
    /// Nobody heard it from its worker.
    pub is_silent: bool,
    /// What must still be so for it to count.
    pub provided: Provided,
    /// Nobody will ask about its job if it leaves nothing behind: then nothing of it is kept.
    pub forget: bool,
    /// Any number: spreads retries.
    pub draw: u64,
}

impl End {
    /// An end that says nothing but how.
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

/// What must still be so for an end to count that nobody heard from the worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provided {
    /// Nothing: the worker said it, or has lost track of it.
    #[default]
    Nothing,
    /// The worker's lease is over. Its session is over with it: nobody can renew it any more.
    Silence,
    /// Nobody wrote down that it runs.
    NoStart,
}

/// What became of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It counts.
    Accepted {
        /// The job as it is now: queued again, or final.
        record: Arc<Record>,
        /// What was charged to its tenant.
        charged: Fixed,
        /// What the attempt was like, if that says anything about its kind.
        run: Option<Box<Run>>,
        /// Jobs that waited for it and are queued now.
        released: Vec<Record>,
        /// Jobs that waited for it and are cancelled now.
        cancelled: Vec<Record>,
        /// Unfinished jobs that have fewer dependents or blockers now.
        changed: Vec<Record>,
    },
    /// This attempt ended before, in the same way; nothing is changed.
    Repeated,
    /// This attempt is not the current one, or ended before in another way, or what it was provided
    /// for is not so any more; nothing is changed.
    Stale,
}
