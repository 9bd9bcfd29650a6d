//! One score of priority, age, rarity and on-demand, without an end to the bonus of people.

use model::Timestamp;

use super::lines::{Line, Lines, Place};
use super::seats::{Prefer, Seats};
use crate::engine::{Loss, Scheduler, Seat};
use crate::fleet::Fleet;
use crate::workload::{Job, Workload};

/// Thousandths of points for a step of priority.
const PRIORITY: i64 = 1_024_000;
/// Thousandths of points for a millisecond of age.
const AGE: i64 = 16;
/// Points shared by the free slots that could run the job.
const RARITY: i64 = 500;
/// Thousandths of points for a job that a person waits for …
const ON_DEMAND: i64 = 4_096_000;
/// … and for each millisecond that they wait.
const ON_DEMAND_AGE: i64 = 32;

pub(super) struct Seed4<'a> {
    workload: &'a Workload,
    seats: Seats,
    lines: Lines,
    seated: Vec<usize>,
}

impl<'a> Seed4<'a> {
    pub(super) fn new(workload: &'a Workload, fleet: &Fleet) -> Self {
        Self {
            workload,
            seats: Seats::new(workload, fleet, Prefer::Specialist),
            lines: Lines::default(),
            seated: vec![0; workload.jobs.len()],
        }
    }

    /// The score of the first of a line, in thousandths. Within a line all grow alike, so that
    /// their order by key is their order by score.
    fn score(&self, line: Line, place: Place, now: Timestamp) -> i64 {
        let free = i64::try_from(self.seats.free(line.fit)).unwrap_or(i64::MAX);
        let rarity = 1_000 * (RARITY / free.max(1));
        score(&self.workload.jobs[place.job], now) + rarity
    }
}

/// The score of a job without rarity, in thousandths.
pub(super) fn score(job: &Job, now: Timestamp) -> i64 {
    let on_demand = if job.on_demand { ON_DEMAND } else { 0 };
    slope(job.on_demand) * now.0 - key(job) + on_demand
}

/// What is smaller, the higher the score is among jobs of one mode.
pub(super) fn key(job: &Job) -> i64 {
    slope(job.on_demand) * job.arrival.0 - PRIORITY * i64::from(job.priority)
}

const fn slope(on_demand: bool) -> i64 {
    if on_demand { AGE + ON_DEMAND_AGE } else { AGE }
}

impl Scheduler for Seed4<'_> {
    fn arrive(&mut self, job: usize, _: Timestamp) {
        let own = &self.workload.jobs[job];
        let line = Line { on_demand: own.on_demand, ..Line::of(own) };
        self.lines.add(line, key(own), job, own);
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
        let mut started = Vec::new();
        loop {
            let fitting = self.lines.heads().filter_map(|(line, place)| {
                let worker = self.seats.find(line.fit, line.slots)?;
                let order = (-self.score(line, place, now), place.arrival, place.rank);
                Some((order, line, place, worker))
            });
            let best = fitting.min_by_key(|(order, ..)| *order);
            let Some((_, line, place, worker)) = best else { return started };
            self.lines.remove(line, place);
            self.seats.take(worker, line.slots);
            self.seated[place.job] = worker;
            started.push(Seat { job: place.job, worker });
        }
    }
}
