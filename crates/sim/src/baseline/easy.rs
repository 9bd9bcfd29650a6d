//! First come, first served on one wide worker, with or without others going ahead.

use std::collections::{BTreeMap, BTreeSet};

use model::{Millis, Timestamp};

use crate::engine::{Loss, Scheduler, Seat};
use crate::error::Error;
use crate::fleet::Fleet;
use crate::workload::Workload;

/// In which order jobs may go ahead of the first that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backfill {
    /// By arrival.
    FirstCome,
    /// Shortest first, by what is believed.
    Shortest,
}

/// What is believed about how long jobs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// What was requested.
    Requested,
    /// The truth.
    Perfect,
}

/// Where a job stands: by arrival or by length, then by arrival and id.
type Standing = (Millis, Timestamp, u32, usize);

pub(super) struct Easy<'a> {
    workload: &'a Workload,
    /// `None` lets nobody go ahead.
    backfill: Option<Backfill>,
    times: Times,
    /// All slots, and those that are free.
    width: u32,
    free: u32,
    waiting: BTreeSet<(Timestamp, u32, usize)>,
    /// Those who wait, in the order in which they may go ahead.
    candidates: BTreeSet<Standing>,
    /// Running jobs, with when they are believed to end.
    running: BTreeMap<(Timestamp, usize), u32>,
    started: Vec<Timestamp>,
}

impl<'a> Easy<'a> {
    /// Stops at the first job that does not fit.
    pub(super) fn fcfs(workload: &'a Workload, fleet: &Fleet) -> Result<Self, Error> {
        let width = width(workload, fleet)?;
        Ok(Self {
            workload,
            backfill: None,
            times: Times::Perfect,
            width,
            free: width,
            waiting: BTreeSet::new(),
            candidates: BTreeSet::new(),
            running: BTreeMap::new(),
            started: vec![Timestamp(0); workload.jobs.len()],
        })
    }

    pub(super) fn new(
        workload: &'a Workload,
        fleet: &Fleet,
        backfill: Backfill,
        times: Times,
    ) -> Result<Self, Error> {
        let is_unknown = |job: &&crate::workload::Job| job.requested.is_none();
        if let (Times::Requested, Some(job)) = (times, workload.jobs.iter().find(is_unknown)) {
            let id = &job.id;
            let problem =
                format!("needs a requested time of each job; `{id}` has none; try `:perfect`");
            return Err(Error::Unfit(problem));
        }
        Ok(Self { backfill: Some(backfill), times, ..Self::fcfs(workload, fleet)? })
    }

    fn estimate(&self, job: usize) -> Millis {
        let job = &self.workload.jobs[job];
        match self.times {
            Times::Requested => job.requested.unwrap_or(job.duration),
            Times::Perfect => job.duration,
        }
    }

    fn standing(&self, job: usize) -> Standing {
        let length = match self.backfill {
            Some(Backfill::Shortest) => self.estimate(job),
            Some(Backfill::FirstCome) | None => Millis::ZERO,
        };
        let own = &self.workload.jobs[job];
        (length, own.arrival, own.rank, job)
    }

    fn start(&mut self, job: usize, now: Timestamp) -> Seat {
        let own = &self.workload.jobs[job];
        self.waiting.remove(&(own.arrival, own.rank, job));
        self.candidates.remove(&self.standing(job));
        self.free -= own.slots;
        self.started[job] = now;
        self.running.insert((now + self.estimate(job), job), own.slots);
        Seat { job, worker: 0 }
    }

    /// When `slots` will be free, as is believed, and how many more will be then. A job that has
    /// run for longer than it should is believed to end now.
    fn shadow(&self, slots: u32, now: Timestamp) -> (Timestamp, u32) {
        let mut free = self.free;
        let mut ends = self.running.iter().map(|((end, _), own)| (now.max(*end), *own)).peekable();
        while let Some((end, own)) = ends.next() {
            free += own;
            let all_at_once = ends.peek().is_none_or(|(next, _)| *next > end);
            if all_at_once && free >= slots {
                return (end, free - slots);
            }
        }
        (now, 0)
    }

    /// Others go ahead of `head` if they fit, and end before it is due or take what it leaves.
    fn go_ahead(&mut self, head: usize, now: Timestamp, started: &mut Vec<Seat>) {
        let (shadow, mut extra) = self.shadow(self.workload.jobs[head].slots, now);
        let candidates: Vec<usize> = self.candidates.iter().map(|(.., job)| *job).collect();
        for job in candidates.into_iter().filter(|job| *job != head) {
            let slots = self.workload.jobs[job].slots;
            if slots > self.free {
                continue;
            }
            if now + self.estimate(job) > shadow {
                if slots > extra {
                    continue;
                }
                extra -= slots;
            }
            started.push(self.start(job, now));
        }
    }
}

/// The slots of the one worker.
fn width(workload: &Workload, fleet: &Fleet) -> Result<u32, Error> {
    match fleet.workers.as_slice() {
        [worker] if workload.fits.len() <= 1 => Ok(worker.slots),
        _ => Err(Error::Unfit(
            "is for one wide worker and jobs of one type; try `--fleet 1x100`".to_owned(),
        )),
    }
}

impl Scheduler for Easy<'_> {
    fn arrive(&mut self, job: usize, _: Timestamp) {
        let own = &self.workload.jobs[job];
        self.waiting.insert((own.arrival, own.rank, job));
        if self.backfill.is_some() {
            self.candidates.insert(self.standing(job));
        }
    }

    fn end(&mut self, job: usize, _: Timestamp) {
        let end = self.started[job] + self.estimate(job);
        self.running.remove(&(end, job));
        self.free += self.workload.jobs[job].slots;
    }

    fn lose(&mut self, job: usize, _: Loss, now: Timestamp) {
        self.end(job, now);
        self.arrive(job, now);
    }

    fn leave(&mut self, _: usize, _: Timestamp) {
        self.free = 0;
    }

    fn join(&mut self, _: usize, _: Timestamp) {
        self.free = self.width;
    }

    fn pass(&mut self, now: Timestamp) -> Vec<Seat> {
        let mut started = Vec::new();
        while let Some((.., head)) = self.waiting.first().copied() {
            if self.workload.jobs[head].slots > self.free {
                if self.backfill.is_some() && self.free > 0 {
                    self.go_ahead(head, now, &mut started);
                }
                break;
            }
            started.push(self.start(head, now));
        }
        started
    }
}
