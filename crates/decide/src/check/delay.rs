//! Whether the moment of a job has come.

use std::fmt;

use model::{Job, Reason, Timestamp};

use super::ledger::Ledger;

/// Why a job may not start at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delay {
    /// It becomes ready then.
    Ready(Timestamp),
    /// Its submitter asked for that moment.
    NotBefore(Timestamp),
    /// The scheduler leaves it alone until then.
    Backoff(Timestamp),
    /// A worker that asks for work passes over it, because its backoff ended then.
    BackoffOver(Timestamp),
}

impl Delay {
    /// The reason of a job that is held for this.
    pub(super) const fn reason(self) -> Reason {
        match self {
            Self::Ready(_) => Reason::NotReady,
            Self::NotBefore(_) | Self::Backoff(_) | Self::BackoffOver(_) => Reason::NotBefore,
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(Timestamp(at)) => write!(f, "it becomes ready at {at} ms"),
            Self::NotBefore(Timestamp(at)) => write!(f, "it may not start before {at} ms"),
            Self::Backoff(Timestamp(at)) => write!(f, "its backoff lasts until {at} ms"),
            Self::BackoffOver(Timestamp(at)) => {
                write!(f, "its backoff ended at {at} ms and a worker that asks passes over it")
            }
        }
    }
}

/// What `job` waits for at the moment of the decision, if its moment has not come.
pub(super) fn delay(ledger: &Ledger<'_>, job: &Job) -> Option<Delay> {
    let (now, policy) = (ledger.before.now, ledger.policy_of(job));
    if job.ready > now {
        return Some(Delay::Ready(job.ready));
    }
    if let Some(at) = job.not_before.filter(|at| *at > now) {
        return Some(Delay::NotBefore(at));
    }
    if ledger.before.freed.is_none() {
        return job.backoff_until.filter(|at| *at > now).map(Delay::Backoff);
    }
    if policy.proactive_fetch_to_capacity {
        return None;
    }
    let unset = policy.proactive_fetch_literal.then_some(job.created);
    job.backoff_until.or(unset).filter(|at| *at < now).map(Delay::BackoffOver)
}
