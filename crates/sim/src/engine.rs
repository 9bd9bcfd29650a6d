//! Moments in order, and what happens at each: ends, workers that fail or come back, arrivals, one
//! pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::{Millis, Timestamp};

use crate::conditions::{Caches, Conditions, Turn, Weather, run_time};
use crate::error::Error;
use crate::fleet::Fleet;
use crate::workload::Workload;

/// What decides. Jobs and workers are places in the workload and in the fleet.
pub trait Scheduler {
    /// A job arrives and waits.
    fn arrive(&mut self, job: usize, now: Timestamp);
    /// A job that was started has ended, and its slots are free.
    fn end(&mut self, job: usize, now: Timestamp);
    /// A job's attempt came to nothing: its slots are free, and it waits again with its age.
    fn lose(&mut self, job: usize, loss: Loss, now: Timestamp);
    /// A worker is gone. Nothing runs on it any more.
    fn leave(&mut self, worker: usize, now: Timestamp);
    /// A worker is back.
    fn join(&mut self, worker: usize, now: Timestamp);
    /// A worker has what stands behind these labels now, and nothing else.
    fn keeps(&mut self, _worker: usize, _labels: &[usize], _now: Timestamp) {}
    /// Starts what can be started; nothing more could be started at this moment.
    fn pass(&mut self, now: Timestamp) -> Vec<Seat>;
    /// Jobs that the last pass wants stopped to make room for others.
    fn stops(&mut self) -> Vec<usize> {
        Vec::new()
    }
    /// How often one scheduler asked for a job that another had taken.
    fn n_conflicts(&self) -> u64 {
        0
    }
    /// The next moment at which a pass may start something although nothing happened.
    fn wake_at(&self) -> Option<Timestamp> {
        None
    }
}

/// Why an attempt came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its worker failed.
    Failed,
    /// It was stopped to make room for another job.
    Preempted,
}

/// A job is started on a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The job.
    pub job: usize,
    /// The worker.
    pub worker: usize,
}

/// When and where an attempt ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// When it started.
    pub at: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// Where.
    pub worker: usize,
}

/// An attempt that came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The job.
    pub job: usize,
    /// When and where.
    pub start: Start,
    /// Why.
    pub loss: Loss,
}

/// What happened in a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// For each job of the workload, the attempt that brought it to its end.
    pub starts: Vec<Start>,
    /// Attempts that came to nothing, in the order in which they ended.
    pub lost: Vec<Lost>,
    /// How many passes there were.
    pub n_passes: u64,
    /// How often one scheduler asked for a job that another had taken.
    pub n_conflicts: u64,
}

impl Replay {
    /// All attempts, with their jobs.
    pub fn attempts(&self) -> impl Iterator<Item = (usize, Start)> {
        let lost = self.lost.iter().map(|lost| (lost.job, lost.start));
        self.starts.iter().copied().enumerate().chain(lost)
    }
}

/// Where nothing is under way and jobs still wait, a pass is tried again after this time …
const STALL: Millis = Millis::from_secs(1);
/// … and so often at most.
const STALLS_MAX: u32 = 100_000;
/// So many attempts may come to nothing for each job, on average.
const LOST_MAX: usize = 100;

/// Replays a workload on a fleet. `watch` is told how many jobs have ended, now and then.
pub fn replay(
    workload: &Workload,
    fleet: &Fleet,
    scheduler: &mut dyn Scheduler,
    conditions: &Conditions,
    watch: &mut dyn FnMut(usize),
) -> Result<Replay, Error> {
    let mut run = Run::new(workload, fleet, scheduler, conditions);
    let mut n_stalls = 0;
    let mut wake = None;
    while run.n_ended < workload.jobs.len() {
        let next = [run.next_event(), wake].into_iter().flatten().min();
        let now = next.unwrap_or(run.now + STALL);
        if conditions.until.is_some_and(|until| now >= until) {
            break;
        }
        run.take_in(now, watch);
        run.check_lost()?;
        let n_started =
            if conditions.tick.is_none_or(|tick| now.0 % tick.0 == 0) { run.passes()? } else { 0 };
        n_stalls = if n_started == 0 && run.is_idle() { n_stalls + 1 } else { 0 };
        if n_stalls > STALLS_MAX {
            let n_left = workload.jobs.len() - run.n_ended;
            let why = "a quota or a budget has no room for them";
            return Err(Error::Unfit(format!("{n_left} jobs are never started; {why}?")));
        }
        wake = match conditions.tick {
            Some(tick) if run.n_waiting > 0 => Some(Timestamp((now.0 / tick.0 + 1) * tick.0)),
            Some(_) => None,
            None => run.scheduler.wake_at().map(|at| at.max(now + Millis(1))),
        };
    }
    let n_conflicts = run.scheduler.n_conflicts();
    let Run { starts, lost, n_passes, .. } = run;
    Ok(Replay { starts, lost, n_passes, n_conflicts })
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Waiting,
    Running,
    Done,
}

/// A replay under way.
struct Run<'a> {
    workload: &'a Workload,
    fleet: &'a Fleet,
    scheduler: &'a mut dyn Scheduler,
    now: Timestamp,
    /// The next job to arrive.
    next: usize,
    n_waiting: usize,
    n_ended: usize,
    n_passes: u64,
    places: Vec<Place>,
    starts: Vec<Start>,
    lost: Vec<Lost>,
    /// By moment, then by the job's id. Those of attempts that came to nothing stay in there.
    ends: BinaryHeap<Reverse<(Timestamp, u32, usize)>>,
    weather: Option<Weather>,
    /// What runs on each worker; kept only where workers fail.
    seated: Vec<Vec<usize>>,
    caches: Option<Caches>,
}

/// So many ends lie between two calls of who watches.
const WATCH_EVERY: usize = 256;

impl<'a> Run<'a> {
    fn new(
        workload: &'a Workload,
        fleet: &'a Fleet,
        scheduler: &'a mut dyn Scheduler,
        conditions: &Conditions,
    ) -> Self {
        let (n_jobs, n_workers) = (workload.jobs.len(), fleet.workers.len());
        Self {
            workload,
            fleet,
            scheduler,
            now: Timestamp(0),
            next: 0,
            n_waiting: 0,
            n_ended: 0,
            n_passes: 0,
            places: vec![Place::Waiting; n_jobs],
            starts: vec![Start::default(); n_jobs],
            lost: Vec::new(),
            ends: BinaryHeap::new(),
            weather: conditions.failures.map(|failures| Weather::new(failures, n_workers)),
            seated: conditions.failures.map_or_else(Vec::new, |_| vec![Vec::new(); n_workers]),
            caches: conditions.transfer.map(|transfer| Caches::new(transfer, n_workers)),
        }
    }

    fn next_event(&self) -> Option<Timestamp> {
        let arrival = self.workload.jobs.get(self.next).map(|job| job.arrival);
        let end = self.ends.peek().map(|Reverse((at, ..))| *at);
        let turn = self.weather.as_ref().and_then(Weather::next);
        [arrival, end, turn].into_iter().flatten().min()
    }

    /// Whether nothing runs and nothing will arrive.
    fn is_idle(&self) -> bool {
        self.ends.is_empty() && self.next == self.workload.jobs.len()
    }

    /// All that happens at `now`: ends by id, workers, then arrivals in the order of the file.
    fn take_in(&mut self, now: Timestamp, watch: &mut dyn FnMut(usize)) {
        self.now = now;
        while let Some(Reverse((at, _, job))) = self.ends.peek().copied()
            && at <= now
        {
            self.ends.pop();
            if self.places[job] == Place::Running && self.starts[job].end == at {
                self.end(job);
                if self.n_ended.is_multiple_of(WATCH_EVERY) {
                    watch(self.n_ended);
                }
            }
        }
        while let Some((turn, worker)) = self.weather.as_mut().and_then(|own| own.take(now)) {
            self.turn(turn, worker);
        }
        while let Some(job) = self.workload.jobs.get(self.next)
            && job.arrival <= now
        {
            self.scheduler.arrive(self.next, now);
            self.next += 1;
            self.n_waiting += 1;
        }
    }

    fn end(&mut self, job: usize) {
        self.places[job] = Place::Done;
        self.n_ended += 1;
        self.unseat(job);
        self.scheduler.end(job, self.now);
    }

    fn unseat(&mut self, job: usize) {
        if let Some(seated) = self.seated.get_mut(self.starts[job].worker) {
            seated.retain(|other| *other != job);
        }
    }

    fn turn(&mut self, turn: Turn, worker: usize) {
        match turn {
            Turn::Join => self.scheduler.join(worker, self.now),
            Turn::Leave => {
                let mut jobs = std::mem::take(&mut self.seated[worker]);
                jobs.sort_by_key(|job| self.workload.jobs[*job].rank);
                for job in jobs {
                    self.lose(job, Loss::Failed);
                }
                if let Some(caches) = &mut self.caches {
                    caches.forget(worker);
                    self.scheduler.keeps(worker, &[], self.now);
                }
                self.scheduler.leave(worker, self.now);
            }
        }
    }

    /// What runs of a job comes to nothing, and it waits again.
    fn lose(&mut self, job: usize, loss: Loss) {
        let start = Start { end: self.now, ..self.starts[job] };
        self.lost.push(Lost { job, start, loss });
        self.places[job] = Place::Waiting;
        self.n_waiting += 1;
        self.unseat(job);
        self.scheduler.lose(job, loss, self.now);
    }

    /// Passes, until nobody is to be stopped; how many jobs were started.
    fn passes(&mut self) -> Result<usize, Error> {
        let mut n_started = 0;
        loop {
            n_started += self.pass();
            let stops = self.scheduler.stops();
            let running = stops.into_iter().filter(|job| self.places[*job] == Place::Running);
            let running: Vec<usize> = running.collect();
            if running.is_empty() {
                return Ok(n_started);
            }
            for job in running {
                self.lose(job, Loss::Preempted);
            }
            self.check_lost()?;
        }
    }

    /// Where jobs are longer than workers last, there is no end.
    fn check_lost(&self) -> Result<(), Error> {
        if self.lost.len() / LOST_MAX <= self.workload.jobs.len() {
            return Ok(());
        }
        let problem = "attempts a job come to nothing; do workers last long enough?";
        Err(Error::Unfit(format!("more than {LOST_MAX} {problem}")))
    }

    /// One pass; how many jobs it started.
    fn pass(&mut self) -> usize {
        self.n_passes += 1;
        let seats = self.scheduler.pass(self.now);
        for seat in &seats {
            self.start(*seat);
        }
        seats.len()
    }

    fn start(&mut self, Seat { job, worker }: Seat) {
        let own = &self.workload.jobs[job];
        let mut length = run_time(self.fleet, worker, own.duration);
        if let (Some(caches), Some(label)) = (&mut self.caches, own.label) {
            let (fetching, kept) = caches.fetch(worker, label);
            length.0 += fetching.0;
            if let Some(kept) = kept {
                self.scheduler.keeps(worker, &kept, self.now);
            }
        }
        let end = self.now + length;
        self.starts[job] = Start { at: self.now, end, worker };
        self.places[job] = Place::Running;
        self.ends.push(Reverse((end, own.rank, job)));
        self.n_waiting -= 1;
        if let Some(seated) = self.seated.get_mut(worker) {
            seated.push(job);
        }
    }
}
