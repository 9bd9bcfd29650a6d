//! Why a job waits: the one reason, the evidence, and what would change it.

use model::{Event, Fixed, Hold, Name, Reason, Record, Spec, State, Timestamp, Worker};

use crate::estimate::{Estimate, Pace, Wait, estimate, slots_that_fit};
use crate::queue::job_of;
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
        // What is another scheduler's to claim stands in line here for a moment.
        let is_guest = self.is_shared() && self.jobs.seen(job).is_none();
        if is_guest {
            self.world.apply(Event::Queued(Box::new(job_of(record, &self.histories))));
        }
        let hold = self.world.explain(job, now);
        let ahead = self.world.ahead(job, now).and_then(|n| u64::try_from(n).ok());
        if is_guest {
            self.world.apply(Event::Withdrawn(job.clone()));
        }
        let Some(hold) = hold else { return self.is_shared().then(anothers) };
        let slots_elsewhere = self.slots_elsewhere(record);
        let hold = retried(at_others(hold, slots_elsewhere), record, now);
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
        let slots = slots_that_fit(workers.iter(), spec, self.pool_for(spec).as_ref());
        let slots = slots + self.slots_elsewhere(record);
        Pace { slots, mean: lately.or_else(of_its_own) }
    }

    /// The pool that such a job goes to, if it goes to one in particular.
    pub(crate) fn pool_for(&self, spec: &Spec) -> Option<Name> {
        let of_type = || self.types.borrow().get(&spec.kind).and_then(|kind| kind.pool.clone());
        spec.pool.clone().or_else(of_type)
    }
}

/// A reason that is true of the workers here alone is none, if others have workers that fit.
fn at_others(hold: Hold, slots: u64) -> Hold {
    let is_of_workers =
        matches!(hold.reason, Reason::NoWorkerEver | Reason::NoWorkerNow | Reason::WorkerUnhealthy);
    if !is_of_workers || slots == 0 {
        return hold;
    }
    let n = if slots == 1 { "1 slot".to_owned() } else { format!("{slots} slots") };
    let detail = format!(
        "workers of other schedulers could run it, with {n} in all; it starts when one of them has \
         room"
    );
    Hold { reason: Reason::WorkersFull, detail, ..hold }
}

/// A job that backs off does so after an attempt: which, and what became of it.
fn retried(hold: Hold, record: &Record, now: Timestamp) -> Hold {
    let is_delayed = record.spec.not_before.is_some_and(|moment| moment > now);
    let until = record.backoff_until.filter(|until| *until > now && !is_delayed);
    let (Reason::NotBefore, Some(until)) = (hold.reason, until) else { return hold };
    let error = record.error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
    let detail = format!(
        "attempt {} did not succeed{error}; it is tried again in {} s",
        record.counts.attempts,
        Fixed::thousandths(until.since(now).0)
    );
    Hold { detail, ..hold }
}

/// Nothing keeps it from starting: whose it is to claim starts it.
fn anothers() -> Explained {
    let detail = "another scheduler is about to claim it".to_owned();
    Explained { reason: "claiming".to_owned(), detail, ..Explained::nothing() }
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
