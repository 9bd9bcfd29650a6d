//! The records of clients and workers, which are the input of the checker.

use checker::{Mark, Said};
use model::{Ending, State};

/// All records of one run.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Answers to clients.
    pub(crate) said: Vec<Said>,
    /// Records of runs.
    pub(crate) marks: Vec<Mark>,
    /// Acknowledgements to workers.
    pub(crate) acks: Vec<Ack>,
    /// Jobs that a client saw in a final state.
    pub(crate) finals: Vec<(u64, State)>,
}

/// A worker's result was acknowledged as durable, or as stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) worker: String,
    pub(crate) job: u64,
    pub(crate) attempt: u32,
    /// The result.
    pub(crate) ending: Ending,
    pub(crate) is_stale: bool,
}
