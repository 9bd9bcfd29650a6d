//! What no schedule can do better than.
//!
//! A **set** is some of the types, as bits; its jobs can use the slots that run any of them. The
//! bounds hold for every set, and the best one counts. Where there are too many types or jobs to
//! try all sets, all types together and each alone are tried.

use crate::fleet::Fleet;
use crate::measure::SLOWDOWN_BOUND;
use crate::number::float;
use crate::relax;
use crate::workload::{Job, Workload};

/// What no schedule can do better than, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// The mean wait.
    pub mean_wait_ms: f64,
    /// The mean bounded slowdown.
    pub slowdown: f64,
    /// The longest that any job takes from its arrival to its end.
    pub flow_max_ms: f64,
    /// The longest wait.
    pub wait_max_ms: f64,
    /// When the last job ends.
    pub makespan_ms: f64,
}

/// All sets are tried up to so many types …
const TYPES_MAX: usize = 8;
/// … and so many jobs.
const JOBS_MAX: usize = 500_000;
/// So many lengths are tried as the longest of a set of jobs.
const LENGTHS: usize = 13;

impl Bounds {
    /// The bounds of a workload on a fleet.
    pub fn new(workload: &Workload, fleet: &Fleet) -> Self {
        let sets = Sets::new(workload, fleet);
        let trivial =
            |job: &Job| f64::max(1.0, float(job.duration.0.into()) / sets.fastest / bounded(job));
        let all = workload.jobs.iter();
        let n_jobs = float(workload.jobs.len().try_into().unwrap_or(i128::MAX)).max(1.0);
        let alone: f64 = all.map(trivial).sum();
        Self {
            mean_wait_ms: sets.best_partition(|set| wait_sum(&set)) / n_jobs,
            slowdown: sets.best_partition(|set| slowdown_sum(&set)).max(alone) / n_jobs,
            flow_max_ms: sets.best(|set| set.backlog(None)),
            wait_max_ms: sets.best(wait_max),
            makespan_ms: sets.best(Set::makespan),
        }
    }
}

/// Jobs of some types, by arrival, and the slots that run any of them.
struct Set<'a> {
    jobs: Vec<&'a Job>,
    slots: f64,
    /// What all those slots do in the time in which one of speed 1 does 1.
    capacity: f64,
    /// The speeds of the fastest and of the slowest worker.
    fastest: f64,
    slowest: f64,
}

/// The sum of waits: of ends, less what every job needs anyway. Nobody waits less than nothing.
fn wait_sum(set: &Set<'_>) -> f64 {
    let ends = relax::weighted_ends(&set.jobs, (set.capacity, set.fastest), |_| 1.0);
    // A wait ends when the job starts: no sooner than it ends, less the longest it can run.
    let earliest =
        |job: &&Job| float(job.arrival.0.into()) + float(job.duration.0.into()) / set.slowest;
    (ends - set.jobs.iter().map(earliest).sum::<f64>()).max(0.0)
}

/// The sum of slowdowns, without what is gained by none being below 1.
fn slowdown_sum(set: &Set<'_>) -> f64 {
    let ends =
        relax::weighted_ends(&set.jobs, (set.capacity, set.fastest), |job| 1.0 / bounded(job));
    let arrivals = set.jobs.iter().map(|job| float(job.arrival.0.into()) / bounded(job));
    let least =
        set.jobs.iter().map(|job| float(job.duration.0.into()) / set.fastest / bounded(job));
    (ends - arrivals.sum::<f64>()).max(least.sum())
}

fn bounded(job: &Job) -> f64 {
    float(job.duration.max(SLOWDOWN_BOUND).0.into())
}

/// Jobs up to a length that arrived until some moment must all start; the last of them cannot
/// start before the others' work, less its own length, is done.
fn wait_max(set: &Set<'_>) -> f64 {
    let mut lengths: Vec<i64> = set.jobs.iter().map(|job| job.duration.0).collect();
    lengths.sort_unstable();
    let Some(last) = lengths.len().checked_sub(1) else { return 0.0 };
    let quantiles = (1..=LENGTHS).map(|at| lengths[last * at / LENGTHS]);
    // When the last of them starts, no slot has more than one such job left to do.
    let left = |length: i64| float(length.into()) * set.slots / set.capacity.max(f64::MIN_POSITIVE);
    let waits = quantiles.map(|length| set.backlog(Some(length)) - left(length));
    waits.fold(0.0, f64::max)
}

impl Set<'_> {
    /// The longest that a fluid of these jobs, up to a length, takes to flow off.
    fn backlog(&self, length_max: Option<i64>) -> f64 {
        let (mut left, mut now, mut most) = (0.0_f64, 0.0, 0.0_f64);
        let short = |job: &&&Job| length_max.is_none_or(|max| job.duration.0 <= max);
        for job in self.jobs.iter().filter(short) {
            let arrival = float(job.arrival.0.into());
            left = (left - (arrival - now) * self.capacity).max(0.0) + float(job.area().into());
            now = arrival;
            most = most.max(left);
        }
        most / self.capacity.max(f64::MIN_POSITIVE)
    }

    /// What is released from some moment on cannot be done sooner than all slots can.
    fn makespan(&self) -> f64 {
        let (mut work, mut latest) = (0.0, 0.0_f64);
        for job in self.jobs.iter().rev() {
            work += float(job.area().into());
            latest = latest
                .max(float(job.arrival.0.into()) + work / self.capacity.max(f64::MIN_POSITIVE));
        }
        latest
    }
}

/// The sets that are tried.
struct Sets<'a> {
    workload: &'a Workload,
    /// Slots by which types they run, as bits, and how fast they are.
    slots: Vec<(u128, u32, f64)>,
    n_types: usize,
    fastest: f64,
    slowest: f64,
}

impl<'a> Sets<'a> {
    fn new(workload: &'a Workload, fleet: &Fleet) -> Self {
        let fits = |worker: &model::Worker| {
            let fits = workload.fits.iter().take(128).enumerate();
            fits.fold(0_u128, |bits, (at, fit)| bits | u128::from(fleet.fits(worker, fit)) << at)
        };
        let speed = |ix: usize| fleet.speed(ix).to_f64();
        let speeds = || (0..fleet.workers.len()).map(speed);
        let workers = fleet.workers.iter().enumerate();
        Self {
            workload,
            slots: workers.map(|(ix, own)| (fits(own), own.slots, speed(ix))).collect(),
            n_types: workload.fits.len(),
            fastest: speeds().fold(f64::MIN_POSITIVE, f64::max),
            slowest: speeds().fold(f64::INFINITY, f64::min),
        }
    }

    fn tries_all(&self) -> bool {
        self.n_types <= TYPES_MAX && self.workload.jobs.len() <= JOBS_MAX
    }

    fn all(&self) -> u128 {
        u128::MAX >> (128 - self.n_types.clamp(1, 128))
    }

    fn set(&self, bits: u128) -> Set<'a> {
        let is_all = bits == self.all();
        let jobs = self.workload.jobs.iter();
        let jobs = jobs.filter(|job| is_all || job.fit < 128 && bits >> job.fit & 1 == 1);
        let slots = || self.slots.iter().filter(|(own, ..)| is_all || own & bits != 0);
        Set {
            jobs: jobs.collect(),
            slots: slots().map(|(_, slots, _)| f64::from(*slots)).sum(),
            capacity: slots().map(|(_, slots, speed)| f64::from(*slots) * speed).sum(),
            fastest: self.fastest,
            slowest: self.slowest,
        }
    }

    /// All types together, each alone, and all between if they are not too many.
    fn tried(&self) -> Vec<u128> {
        if self.tries_all() {
            return (1..=self.all()).collect();
        }
        let each = (0..self.n_types.min(128)).map(|at| 1 << at);
        std::iter::once(self.all()).chain(each).collect()
    }

    /// The best bound of any set.
    fn best(&self, bound: impl Fn(&Set<'a>) -> f64) -> f64 {
        self.tried().into_iter().map(|bits| bound(&self.set(bits))).fold(0.0, f64::max)
    }

    /// The best sum of bounds over sets that have no type in common and all types in all.
    fn best_partition(&self, bound: impl Fn(Set<'a>) -> f64) -> f64 {
        let tried = self.tried();
        if !self.tries_all() {
            let bounds: Vec<f64> = tried.iter().map(|bits| bound(self.set(*bits))).collect();
            let apart = bounds.iter().skip(1).sum();
            return bounds.first().map_or(0.0, |all| all.max(apart));
        }
        // Bounds of sets by their bits; the best way to part a set is with or without a cut.
        let mut best: Vec<f64> = vec![0.0];
        for bits in tried {
            let mut most = bound(self.set(bits));
            let mut part = (bits - 1) & bits;
            while part > 0 {
                most = most.max(best[place(part)] + best[place(bits ^ part)]);
                part = (part - 1) & bits;
            }
            best.push(most);
        }
        best.last().copied().unwrap_or(0.0)
    }
}

fn place(bits: u128) -> usize {
    usize::try_from(bits).expect("there are few types")
}
