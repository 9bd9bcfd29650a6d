//! Why a job waits: the one reason, the evidence, and what would change it.

use model::{Record, State, Worker};

use crate::estimate::{Estimate, Pace, Wait, estimate, slots_that_fit};
use crate::scheduler::Scheduler;

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Explained {
    /// The reason's permanent name.
    pub(crate) reason: String,
    pub(crate) detail: String,
    /// Jobs that go before it; `None` if it stands in no line.
    pub(crate) ahead: Option<u64>,
    /// When it may start.
    pub(crate) estimate: Option<Estimate>,
}

impl Explained {
    /// There is nothing to say: it does not wait.
    pub(crate) const fn nothing() -> Self {
        Self { reason: String::new(), detail: String::new(), ahead: None, estimate: None }
    }
}

impl Scheduler {
    /// Why a job in the world waits; `None` if it is not in it.
    pub(crate) fn explain(&mut self, record: &Record) -> Option<Explained> {
        let job = &record.id;
        if let Some(worker) = self.jobs.claimer(job) {
            let detail = format!("it is being claimed for worker `{worker}`");
            return Some(Explained {
                reason: "claiming".to_owned(),
                detail,
                ..Explained::nothing()
            });
        }
        let now = self.store.now();
        let Some(hold) = self.world.explain(job, now) else {
            return self.is_shared().then(beyond_the_window);
        };
        let ahead = self.world.ahead(job, now).and_then(|n| u64::try_from(n).ok());
        let wait = Wait {
            spec: &record.spec,
            reason: hold.reason,
            ahead: ahead.unwrap_or(0),
            backoff_until: record.backoff_until,
            now,
        };
        let estimate = estimate(&wait, &self.pace(record));
        let reason = hold.reason.name().to_owned();
        Some(Explained { reason, detail: hold.detail, ahead, estimate })
    }

    /// How fast those who could run a job run jobs.
    fn pace(&self, record: &Record) -> Pace {
        let spec = &record.spec;
        let seats = self.fleet.seats.values();
        let workers: Vec<Worker> =
            seats.filter(|seat| seat.runs_jobs).map(|seat| seat.worker(&self.closed)).collect();
        let lately = self.samples.mean_duration(self.store.now());
        let of_its_own = || self.histories.length(spec);
        let kind = self.types.borrow().get(&spec.kind).and_then(|kind| kind.pool.clone());
        let pool = spec.pool.clone().or(kind);
        let slots = slots_that_fit(workers.iter(), spec, pool.as_ref());
        Pace { slots, mean: lately.or_else(of_its_own) }
    }
}

/// Where several share a store, each sees the first jobs of each queue.
fn beyond_the_window() -> Explained {
    let detail = "others of its kind and tenant go before it, or another scheduler is about to \
        claim it; this scheduler sees the first jobs of each queue";
    Explained {
        reason: model::Reason::Outranked.name().to_owned(),
        detail: detail.to_owned(),
        ..Explained::nothing()
    }
}

/// Why a job is where it is, as far as its record alone says.
pub(crate) fn from_record(record: &Record) -> Option<Explained> {
    let explained = |reason: &str, detail: String| {
        Some(Explained { reason: reason.to_owned(), detail, ..Explained::nothing() })
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
