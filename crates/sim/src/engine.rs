//! Moments in order, and what happens at each: ends, arrivals, one pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::{Millis, Timestamp};

use crate::error::Error;
use crate::workload::Workload;

/// What decides. Jobs and workers are places in the workload and in the fleet.
pub trait Scheduler {
    /// A job arrives and waits.
    fn arrive(&mut self, job: usize, now: Timestamp);
    /// A job that was started has ended, and its slots are free.
    fn end(&mut self, job: usize, now: Timestamp);
    /// Starts what can be started; nothing more could be started at this moment.
    fn pass(&mut self, now: Timestamp) -> Vec<Seat>;
    /// The next moment at which a pass may start something although nothing happened.
    fn wake_at(&self) -> Option<Timestamp> {
        None
    }
}

/// A job is started on a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The job.
    pub job: usize,
    /// The worker.
    pub worker: usize,
}

/// When and where a job was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// When.
    pub at: Timestamp,
    /// Where.
    pub worker: usize,
}

/// What happened in a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// For each job of the workload.
    pub starts: Vec<Start>,
    /// How many passes there were.
    pub n_passes: u64,
}

/// Where nothing is under way and jobs still wait, a pass is tried again after this time …
const STALL: Millis = Millis::from_secs(1);
/// … and so often at most.
const STALLS_MAX: u32 = 3_600;

/// Replays a workload. With a tick, passes are at its multiples alone. `watch` is told how many
/// jobs have ended, now and then.
pub fn replay(
    workload: &Workload,
    scheduler: &mut dyn Scheduler,
    tick: Option<Millis>,
    watch: &mut dyn FnMut(usize),
) -> Result<Replay, Error> {
    let mut run = Run::new(workload);
    let mut n_stalls = 0;
    let mut wake = None;
    while run.n_ended < workload.jobs.len() {
        let next = [run.next_event(), wake].into_iter().flatten().min();
        let now = match next {
            Some(next) => next,
            None if n_stalls < STALLS_MAX => {
                n_stalls += 1;
                run.now + STALL
            }
            None => {
                let n_left = workload.jobs.len() - run.n_ended;
                return Err(Error::Unfit(format!("{n_left} jobs are never started")));
            }
        };
        run.take_in(now, scheduler, watch);
        if tick.is_none_or(|tick| now.0 % tick.0 == 0) && run.pass(scheduler) > 0 {
            n_stalls = 0;
        }
        wake = match tick {
            Some(tick) if run.n_waiting > 0 => Some(Timestamp((now.0 / tick.0 + 1) * tick.0)),
            Some(_) => None,
            None => scheduler.wake_at().map(|at| at.max(now + Millis(1))),
        };
    }
    Ok(Replay { starts: run.starts, n_passes: run.n_passes })
}

/// A replay under way.
struct Run<'a> {
    workload: &'a Workload,
    now: Timestamp,
    /// The next job to arrive.
    next: usize,
    n_waiting: usize,
    n_ended: usize,
    n_passes: u64,
    starts: Vec<Start>,
    /// By moment, then by the job's id.
    ends: BinaryHeap<Reverse<(Timestamp, u32, usize)>>,
}

/// So many ends lie between two calls of who watches.
const WATCH_EVERY: usize = 256;

impl<'a> Run<'a> {
    fn new(workload: &'a Workload) -> Self {
        Self {
            workload,
            now: Timestamp(0),
            next: 0,
            n_waiting: 0,
            n_ended: 0,
            n_passes: 0,
            starts: vec![Start::default(); workload.jobs.len()],
            ends: BinaryHeap::new(),
        }
    }

    fn next_event(&self) -> Option<Timestamp> {
        let arrival = self.workload.jobs.get(self.next).map(|job| job.arrival);
        let end = self.ends.peek().map(|Reverse((at, ..))| *at);
        [arrival, end].into_iter().flatten().min()
    }

    /// All that happens at `now`: ends by id, then arrivals in the order of the file.
    fn take_in(
        &mut self,
        now: Timestamp,
        scheduler: &mut dyn Scheduler,
        watch: &mut dyn FnMut(usize),
    ) {
        self.now = now;
        while let Some(Reverse((at, _, job))) = self.ends.peek().copied()
            && at <= now
        {
            self.ends.pop();
            scheduler.end(job, now);
            self.n_ended += 1;
            if self.n_ended.is_multiple_of(WATCH_EVERY) {
                watch(self.n_ended);
            }
        }
        while let Some(job) = self.workload.jobs.get(self.next)
            && job.arrival <= now
        {
            scheduler.arrive(self.next, now);
            self.next += 1;
            self.n_waiting += 1;
        }
    }

    /// One pass; how many jobs it started.
    fn pass(&mut self, scheduler: &mut dyn Scheduler) -> usize {
        self.n_passes += 1;
        let seats = scheduler.pass(self.now);
        for Seat { job, worker } in &seats {
            let Self { now, workload, .. } = *self;
            self.starts[*job] = Start { at: now, worker: *worker };
            let end = now + workload.jobs[*job].duration;
            self.ends.push(Reverse((end, workload.jobs[*job].rank, *job)));
            self.n_waiting -= 1;
        }
        seats.len()
    }
}
