//! Why a job waits: the one reason, the evidence, and what would change it.

use model::{JobId, Record, State};

use crate::scheduler::Scheduler;

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Explained {
    /// The reason's permanent name.
    pub(crate) reason: String,
    pub(crate) detail: String,
    /// Jobs that go before it; `None` if it stands in no line.
    pub(crate) ahead: Option<u64>,
}

impl Scheduler {
    /// Why a job in the world waits; `None` if it is not in it.
    pub(crate) fn explain(&mut self, job: &JobId) -> Option<Explained> {
        if let Some(worker) = self.jobs.claimer(job) {
            let detail = format!("it is being claimed for worker `{worker}`");
            return Some(Explained { reason: "claiming".to_owned(), detail, ahead: None });
        }
        let now = self.store.now();
        let hold = self.world.explain(job, now)?;
        let ahead = self.world.ahead(job, now).and_then(|n| u64::try_from(n).ok());
        Some(Explained { reason: hold.reason.name().to_owned(), detail: hold.detail, ahead })
    }
}

/// Why a job is where it is, as far as its record alone says.
pub(crate) fn from_record(record: &Record) -> Option<Explained> {
    let explained = |reason: &str, detail: String| {
        Some(Explained { reason: reason.to_owned(), detail, ahead: None })
    };
    match record.state {
        State::Blocked => {
            let n = record.n_blockers;
            let jobs = if n == 1 { "1 job".to_owned() } else { format!("{n} jobs") };
            explained("not-ready", format!("it waits for {jobs} to finish first"))
        }
        State::Queued if record.on_hold => explained(
            "on-hold",
            "somebody holds it; it waits until it is released (`maitre release`)".to_owned(),
        ),
        State::Queued
        | State::Claimed
        | State::Running
        | State::Succeeded
        | State::Failed
        | State::Cancelled => None,
    }
}
