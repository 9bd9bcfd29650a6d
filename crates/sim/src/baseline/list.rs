//! One order for all jobs; those that do not fit are passed over.

use model::Timestamp;

use super::lines::{Line, Lines};
use super::seats::{Prefer, Seats};
use crate::engine::{Loss, Scheduler, Seat};
use crate::fleet::Fleet;
use crate::workload::{Job, Workload};

pub(super) struct List<'a> {
    workload: &'a Workload,
    seats: Seats,
    lines: Lines,
    key: fn(&Job) -> i64,
    seated: Vec<usize>,
}

impl<'a> List<'a> {
    pub(super) fn fifo(workload: &'a Workload, fleet: &Fleet) -> Self {
        Self::new(workload, Seats::new(workload, fleet, Prefer::Lowest), |_| 0)
    }

    pub(super) fn prio(workload: &'a Workload, fleet: &Fleet) -> Self {
        let key = |job: &Job| -i64::from(job.priority);
        Self::new(workload, Seats::new(workload, fleet, Prefer::Lowest), key)
    }

    pub(super) fn sjf(workload: &'a Workload, fleet: &Fleet) -> Self {
        let key = |job: &Job| job.duration.0;
        Self::new(workload, Seats::new(workload, fleet, Prefer::Specialist), key)
    }

    fn new(workload: &'a Workload, seats: Seats, key: fn(&Job) -> i64) -> Self {
        let seated = vec![0; workload.jobs.len()];
        Self { workload, seats, lines: Lines::default(), key, seated }
    }
}

impl Scheduler for List<'_> {
    fn arrive(&mut self, job: usize, _: Timestamp) {
        let own = &self.workload.jobs[job];
        self.lines.add(Line::of(own), (self.key)(own), job, own);
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

    fn pass(&mut self, _: Timestamp) -> Vec<Seat> {
        let mut started = Vec::new();
        loop {
            let fitting = self.lines.heads().filter_map(|(line, place)| {
                Some((place, line, self.seats.find(line.fit, line.slots)?))
            });
            let Some((place, line, worker)) = fitting.min() else { return started };
            self.lines.remove(line, place);
            self.seats.take(worker, line.slots);
            self.seated[place.job] = worker;
            started.push(Seat { job: place.job, worker });
        }
    }
}
