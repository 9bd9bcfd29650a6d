//! Where each unfinished job is: it waits, is being claimed, or a worker has it.
//!
//! **Invariant:** a job is in one place at a time. One that is nowhere is blocked, on hold, or
//! about to be read again.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;
use model::{JobId, WorkerId};
use proto::v1;

use crate::complete::Live;
use crate::queue::Seen;

/// Where a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whereabouts {
    /// It waits in the world.
    Waiting(Seen),
    /// The world has placed it, and the store has not given it yet.
    Claiming { worker: WorkerId, is_cancelled: bool },
    /// A worker has it.
    Live(Box<Live>),
}

/// The jobs that are somewhere.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    all: HashMap<JobId, Whereabouts>,
    n_claiming: usize,
    /// The jobs that each worker has, also of workers that have not come back yet.
    of_worker: BTreeMap<WorkerId, BTreeSet<JobId>>,
}

impl Jobs {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// How many are being claimed.
    pub(crate) const fn n_claiming(&self) -> usize {
        self.n_claiming
    }

    /// Whether the job is somewhere.
    pub(crate) fn knows(&self, job: &JobId) -> bool {
        self.all.contains_key(job)
    }

    /// How the job was seen when it came to wait; `None` if it does not.
    pub(crate) fn seen(&self, job: &JobId) -> Option<&Seen> {
        match self.all.get(job)? {
            Whereabouts::Waiting(seen) => Some(seen),
            Whereabouts::Claiming { .. } | Whereabouts::Live(_) => None,
        }
    }

    /// The worker that the job is being claimed for.
    pub(crate) fn claimer(&self, job: &JobId) -> Option<&WorkerId> {
        match self.all.get(job)? {
            Whereabouts::Claiming { worker, .. } => Some(worker),
            Whereabouts::Waiting(_) | Whereabouts::Live(_) => None,
        }
    }

    /// The attempt of a job that a worker has.
    pub(crate) fn live(&self, job: &JobId) -> Option<&Live> {
        match self.all.get(job)? {
            Whereabouts::Live(live) => Some(live),
            Whereabouts::Waiting(_) | Whereabouts::Claiming { .. } => None,
        }
    }

    pub(crate) fn live_mut(&mut self, job: &JobId) -> Option<&mut Live> {
        match self.all.get_mut(job)? {
            Whereabouts::Live(live) => Some(live),
            Whereabouts::Waiting(_) | Whereabouts::Claiming { .. } => None,
        }
    }

    /// Whether the world has placed the job: what becomes of that brings its newest record.
    pub(crate) fn is_placed(&self, job: &JobId) -> bool {
        matches!(self.all.get(job), Some(Whereabouts::Claiming { .. } | Whereabouts::Live(_)))
    }

    /// Whether this attempt is the job's newest, and the worker's own.
    pub(crate) fn is_current(&self, worker: &WorkerId, attempt: v1::AttemptRef) -> bool {
        let live = self.live(&JobId::number(attempt.job));
        live.is_some_and(|live| live.number == attempt.attempt && live.worker == *worker)
    }

    /// The job waits, as it is seen now.
    pub(crate) fn wait(&mut self, job: JobId, seen: Seen) {
        self.all.insert(job, Whereabouts::Waiting(seen));
    }

    /// The job waits no longer.
    pub(crate) fn unwait(&mut self, job: &JobId) -> Option<Seen> {
        match self.all.remove(job)? {
            Whereabouts::Waiting(seen) => Some(seen),
            elsewhere @ (Whereabouts::Claiming { .. } | Whereabouts::Live(_)) => {
                self.all.insert(job.clone(), elsewhere);
                None
            }
        }
    }

    /// The job is being claimed.
    pub(crate) fn claim(&mut self, job: JobId, worker: WorkerId) {
        self.all.insert(job, Whereabouts::Claiming { worker, is_cancelled: false });
        self.n_claiming += 1;
    }

    /// The job was called off. `false`: it is not being claimed.
    pub(crate) fn cancel_claim(&mut self, job: &JobId) -> bool {
        let Some(Whereabouts::Claiming { is_cancelled, .. }) = self.all.get_mut(job) else {
            return false;
        };
        *is_cancelled = true;
        true
    }

    /// The claim was answered; whether the job was called off meanwhile.
    pub(crate) fn unclaim(&mut self, job: &JobId) -> bool {
        let Some(Whereabouts::Claiming { is_cancelled, .. }) = self.all.get(job) else {
            return false;
        };
        let is_cancelled = *is_cancelled;
        self.all.remove(job);
        self.n_claiming -= 1;
        is_cancelled
    }

    /// A worker has the job.
    pub(crate) fn give(&mut self, job: JobId, live: Live) {
        self.of_worker.entry(live.worker.clone()).or_default().insert(job.clone());
        self.all.insert(job, Whereabouts::Live(Box::new(live)));
    }

    /// No worker has the job any longer.
    pub(crate) fn take(&mut self, job: &JobId) -> Option<Live> {
        let live = match self.all.remove(job)? {
            Whereabouts::Live(live) => *live,
            elsewhere @ (Whereabouts::Waiting(_) | Whereabouts::Claiming { .. }) => {
                self.all.insert(job.clone(), elsewhere);
                return None;
            }
        };
        if let Some(jobs) = self.of_worker.get_mut(&live.worker) {
            jobs.remove(job);
            if jobs.is_empty() {
                self.of_worker.remove(&live.worker);
            }
        }
        Some(live)
    }

    /// The jobs that a worker has.
    pub(crate) fn of(&self, worker: &WorkerId) -> Vec<JobId> {
        self.of_worker.get(worker).map(|jobs| jobs.iter().cloned().collect()).unwrap_or_default()
    }

    /// The slots that they take.
    pub(crate) fn slots_of(&self, worker: &WorkerId) -> u32 {
        let jobs = self.of_worker.get(worker).into_iter().flatten();
        let slots = jobs.filter_map(|job| self.live(job)).map(|live| live.slots);
        slots.fold(0, u32::saturating_add)
    }

    /// The jobs that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &JobId> {
        self.all.iter().filter_map(|(job, at)| match at {
            Whereabouts::Waiting(_) => Some(job),
            Whereabouts::Claiming { .. } | Whereabouts::Live(_) => None,
        })
    }

    /// The jobs that workers have.
    pub(crate) fn live_jobs(&self) -> impl Iterator<Item = &JobId> {
        self.of_worker.values().flatten()
    }

    /// The workers that have jobs.
    pub(crate) fn workers(&self) -> impl Iterator<Item = &WorkerId> {
        self.of_worker.keys()
    }
}
