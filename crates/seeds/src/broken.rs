//! Intended bugs, which the checker must find.

use model::{JobId, Record};
use store::{Claim, Claimed, End, Memory, Store as _};

use crate::line::at_once;

/// One intended bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Claims have no guard: a second scheduler also gets the job, with the same token.
    Guard,
    /// The token of a result is ignored: a result of any attempt ends the current one.
    Token,
    /// Leases do not run out.
    Expiry,
    /// A repeated submission is accepted twice.
    Key,
    /// After a start, a scheduler does not count live attempts.
    Recovery,
    /// Workers continue after their lease.
    Overstay,
    /// A claim ignores the usage of limits that hold across schedulers.
    Limit,
}

impl Broken {
    /// All bugs.
    pub const ALL: [Self; 7] = [
        Self::Guard,
        Self::Token,
        Self::Expiry,
        Self::Key,
        Self::Recovery,
        Self::Overstay,
        Self::Limit,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Token => "token",
            Self::Expiry => "expiry",
            Self::Key => "key",
            Self::Recovery => "recovery",
            Self::Overstay => "overstay",
            Self::Limit => "limit",
        }
    }

    /// The bug with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|broken| broken.name() == name)
    }
}

/// The answers to claims without a guard: all of them win.
pub(crate) fn unguarded(claims: &[Claim], answers: Vec<Claimed>) -> Vec<Claimed> {
    let mut wins = Vec::with_capacity(answers.len());
    for (claim, answer) in claims.iter().zip(answers) {
        wins.push(match answer {
            Claimed::Lost(Some(mut record)) if record.current.is_some() => {
                if let Some(current) = record.current.as_mut() {
                    current.worker = claim.worker.clone();
                }
                Claimed::Won(record.into())
            }
            Claimed::Won(_) | Claimed::Lost(_) | Claimed::Refused(_) => answer,
        });
    }
    wins
}

/// Moves ends to the current attempt, as if the token were ignored.
pub(crate) fn without_token(memory: &Memory, ends: Vec<End>) -> Vec<End> {
    let current = |job: &JobId| -> Option<Record> { at_once(memory.job(job.clone())) };
    let retold = |end: End| match current(&end.job) {
        Some(Record { current: Some(current), counts, .. }) => {
            End { attempt: counts.attempts, worker: current.worker, ..end }
        }
        Some(_) | None => end,
    };
    ends.into_iter().map(retold).collect()
}
