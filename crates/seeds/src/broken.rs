//! Bugs on purpose: what the checker must find, or it proves nothing.

use model::{JobId, Record};
use store::{Claim, Claimed, End, Memory, Store as _};

use crate::line::at_once;

/// One thing that is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A claim is not guarded: whoever comes second gets the job too, under the same token.
    Guard,
    /// The token of a result is not looked at: whatever attempt it is of, it ends the current one.
    Token,
    /// Leases do not end.
    Expiry,
    /// A submission that comes twice is taken in twice.
    Key,
    /// After a start, attempts that are under way are not counted.
    Recovery,
    /// Workers go on when their lease is over.
    Overstay,
    /// A claim does not look at what is in use of limits that hold across schedulers.
    Limit,
}

impl Broken {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Guard,
        Self::Token,
        Self::Expiry,
        Self::Key,
        Self::Recovery,
        Self::Overstay,
        Self::Limit,
    ];

    /// Its name, for those who ask for it.
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

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|broken| broken.name() == name)
    }
}

/// What claims come to without a guard: all of them win.
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

/// Ends as they are understood by whoever does not look at the token.
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
