//! What clients and workers write down for themselves: all that the checker hears of them.

use faults::{Mark, Said};
use model::{Ending, State};

/// All notes of one play.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// What clients were told.
    pub(crate) said: Vec<Said>,
    /// What runs wrote down.
    pub(crate) marks: Vec<Mark>,
    /// What workers were told about their results.
    pub(crate) acks: Vec<Ack>,
    /// Jobs that somebody saw in a final state.
    pub(crate) finals: Vec<(u64, State)>,
}

/// A worker was told that its result is durable, or too late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) worker: String,
    pub(crate) job: u64,
    pub(crate) attempt: u32,
    /// The result.
    pub(crate) ending: Ending,
    pub(crate) is_stale: bool,
}
