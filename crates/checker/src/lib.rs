//! The offline checker. A test harness records the history of a run: the rows of the store, the
//! answers that clients got, and the notes of the jobs. The checker reads the history after the run
//! and lists every rule that the run broke.
//!
//! **Invariant:** the checker shares no code with the scheduler and its store, and never asks a
//! scheduler.

mod history;
mod check;

pub use check::{Recovery, Scope, Violation, check, recovery};
pub use history::{
    Asked, Attempt, Calm, Fault, Harm, History, Job, Key, Limits, Mark, Note, Offer, Op, Outcome,
    Piece, Said, Step,
};
