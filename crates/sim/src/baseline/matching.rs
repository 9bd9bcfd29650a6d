//! All free slots and the best jobs at once: the assignment with the largest sum of weights.
//!
//! As many jobs as can be are started, then the best. Optima are not unique: what counts is the
//! sum, not who starts where.

use model::Timestamp;
use pathfinding::prelude::{Matrix, kuhn_munkres};

use super::lines::{Line, Lines, Place};
use super::seats::{Prefer, Seats};
use super::seed4;
use crate::engine::{Loss, Scheduler, Seat};
use crate::error::Error;
use crate::fleet::Fleet;
use crate::workload::{Job, Workload};

/// What a job that is started is worth, in thousandths, so that as many as can be are.
const STARTED: i64 = 1_000_000_000_000;
/// What each type that its slot could run takes away.
const TYPE: i64 = 1_000;
/// What each millisecond of length takes away under `match-sjf`.
const LENGTH: i64 = 10;
/// A fleet has at most so many slots: the time for an assignment grows with their cube.
const SLOTS_MAX: u64 = 1_024;

/// Which jobs are worth most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// Those with the highest score of `seed4`, without rarity.
    Score,
    /// The shortest.
    Short,
}

pub(super) struct Matching<'a> {
    workload: &'a Workload,
    seats: Seats,
    lines: Lines,
    worth: Worth,
    seated: Vec<usize>,
    /// How many types each worker runs; all of them where it takes any.
    n_types: Vec<i64>,
}

impl<'a> Matching<'a> {
    pub(super) fn new(workload: &'a Workload, fleet: &Fleet, worth: Worth) -> Result<Self, Error> {
        if let Some(job) = workload.jobs.iter().find(|job| job.slots != 1) {
            let problem = format!("is for jobs of one slot; job `{}` has {}", job.id, job.slots);
            return Err(Error::Unfit(problem));
        }
        if fleet.slots() > SLOTS_MAX {
            let slots = fleet.slots();
            let problem = format!("is for at most {SLOTS_MAX} slots; the fleet has {slots}");
            return Err(Error::Unfit(problem));
        }
        let n_types = |worker: &model::Worker| match worker.types.len() {
            0 => workload.fits.len(),
            some => some,
        };
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        Ok(Self {
            workload,
            seats: Seats::new(workload, fleet, Prefer::Lowest),
            lines: Lines::default(),
            worth,
            seated: vec![0; workload.jobs.len()],
            n_types: fleet.workers.iter().map(|worker| count(n_types(worker))).collect(),
        })
    }

    /// What it is worth to start a job, wherever that is.
    fn worth(&self, job: &Job, now: Timestamp) -> i64 {
        match self.worth {
            Worth::Score => seed4::score(job, now),
            Worth::Short => -LENGTH * job.duration.0,
        }
    }

    /// Of each fit, the best jobs: as many as slots could take.
    fn candidates(&self, now: Timestamp) -> Vec<(Line, Place)> {
        let mut all = Vec::new();
        for fit in 0..self.workload.fits.len() {
            let n_free = usize::try_from(self.seats.free(fit)).unwrap_or(usize::MAX);
            if n_free == 0 {
                continue;
            }
            let mut own: Vec<(i64, Place, Line)> = self
                .lines
                .of_fit(fit, n_free)
                .map(|(line, place)| {
                    (-self.worth(&self.workload.jobs[place.job], now), place, line)
                })
                .collect();
            own.sort_unstable();
            all.extend(own.into_iter().take(n_free).map(|(_, place, line)| (line, place)));
        }
        all
    }
}

/// The best assignment of rows to columns; a pair without a weight cannot be.
fn assign(weights: &[Vec<Option<i64>>]) -> Vec<(usize, usize)> {
    let (n_rows, n_columns) = (weights.len(), weights.first().map_or(0, Vec::len));
    if n_rows == 0 || n_columns == 0 {
        return Vec::new();
    }
    let weight = |row: usize, column: usize| weights[row][column].unwrap_or(0);
    let is_wide = n_rows <= n_columns;
    let matrix = if is_wide {
        Matrix::from_fn(n_rows, n_columns, |(row, column)| weight(row, column))
    } else {
        Matrix::from_fn(n_columns, n_rows, |(column, row)| weight(row, column))
    };
    let (_, to) = kuhn_munkres(&matrix);
    let pairs = to.into_iter().enumerate();
    let pairs = pairs.map(|(one, two)| if is_wide { (one, two) } else { (two, one) });
    pairs.filter(|(row, column)| weights[*row][*column].is_some()).collect()
}

impl Scheduler for Matching<'_> {
    fn arrive(&mut self, job: usize, _: Timestamp) {
        let own = &self.workload.jobs[job];
        let (on_demand, key) = match self.worth {
            Worth::Score => (own.on_demand, seed4::key(own)),
            Worth::Short => (false, own.duration.0),
        };
        self.lines.add(Line { on_demand, ..Line::of(own) }, key, job, own);
    }

    fn end(&mut self, job: usize, _: Timestamp) {
        self.seats.give_back(self.seated[job], self.workload.jobs[job].slots);
    }

    fn lose(&mut self, job: usize, _: Loss, now: Timestamp) {
        self.end(job, now);
        self.arrive(job, now);
    }

    fn leave(&mut self, worker: usize, _: Timestamp) {
        self.seats.leave(worker);
    }

    fn join(&mut self, worker: usize, _: Timestamp) {
        self.seats.join(worker);
    }

    fn pass(&mut self, now: Timestamp) -> Vec<Seat> {
        let candidates = self.candidates(now);
        if candidates.is_empty() {
            return Vec::new();
        }
        let workers = 0..self.seats.n_workers();
        let slots: Vec<usize> = workers
            .flat_map(|worker| (0..self.seats.free_on(worker)).map(move |_| worker))
            .collect();
        let weight = |worker: usize, line: Line, place: Place| {
            let worth = self.worth(&self.workload.jobs[place.job], now);
            let weight = STARTED + worth - TYPE * self.n_types[worker];
            self.seats.runs(worker, line.fit).then_some(weight)
        };
        let row = |worker: &usize| {
            candidates.iter().map(|(line, place)| weight(*worker, *line, *place)).collect()
        };
        let weights: Vec<Vec<Option<i64>>> = slots.iter().map(row).collect();
        let mut started = Vec::new();
        for (row, column) in assign(&weights) {
            let (worker, (line, place)) = (slots[row], candidates[column]);
            self.lines.remove(line, place);
            self.seats.take(worker, 1);
            self.seated[place.job] = worker;
            started.push(Seat { job: place.job, worker });
        }
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    fn sum(weights: &[Vec<Option<i64>>], pairs: &[(usize, usize)]) -> i64 {
        pairs.iter().filter_map(|(row, column)| weights[*row][*column]).sum()
    }

    /// Tries everything.
    fn best(weights: &[Vec<Option<i64>>], row: usize, taken: u32) -> i64 {
        let Some(own) = weights.get(row) else { return 0 };
        let free = own.iter().enumerate().filter(|(column, _)| taken >> column & 1 == 0);
        let with = free.filter_map(|(column, weight)| {
            Some((*weight)? + best(weights, row + 1, taken | 1 << column))
        });
        with.chain([best(weights, row + 1, taken)]).max().unwrap_or(0)
    }

    #[test]
    fn no_assignment_has_a_larger_sum() {
        for seed in 0..200 {
            let mut chance = Chance::new(seed, 0);
            let (n_rows, n_columns) = (1 + chance.draw() % 5, 1 + chance.draw() % 6);
            let mut weight = || {
                let draw = i64::try_from(chance.draw() % 1_000).unwrap_or(0);
                (draw % 3 > 0).then_some(STARTED + draw)
            };
            let weights: Vec<Vec<Option<i64>>> =
                (0..n_rows).map(|_| (0..n_columns).map(|_| weight()).collect()).collect();
            assert_eq!(sum(&weights, &assign(&weights)), best(&weights, 0, 0), "seed {seed}");
        }
    }
}
