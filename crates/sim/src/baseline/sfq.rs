//! The tenant goes first that was served least for its weight, running jobs counted so far.

use model::Timestamp;

use super::lines::{Line, Lines};
use super::seats::{Prefer, Seats};
use crate::engine::{Loss, Scheduler, Seat};
use crate::fleet::Fleet;
use crate::workload::{Job, Workload};

pub(super) struct Sfq<'a> {
    workload: &'a Workload,
    seats: Seats,
    lines: Lines,
    key: fn(&Job) -> i64,
    seated: Vec<usize>,
    served: Vec<Served>,
}

/// What a tenant was served.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    /// Slot-milliseconds until `at`.
    area: i64,
    at: Timestamp,
    /// Slots in use since.
    slots: i64,
    /// What a slot-millisecond counts: inversely proportional to the weight, and whole.
    step: i128,
    /// What was added when it came back.
    lift: i128,
}

impl Served {
    /// Counts up to `now`.
    fn settle(&mut self, now: Timestamp) {
        self.area += self.slots * now.since(self.at).0;
        self.at = now;
    }

    fn level(&self, now: Timestamp) -> i128 {
        let area = self.area + self.slots * now.since(self.at).0;
        i128::from(area) * self.step + self.lift
    }
}

impl<'a> Sfq<'a> {
    /// Within a tenant, people first, then by arrival.
    pub(super) fn first_come(workload: &'a Workload, fleet: &Fleet) -> Self {
        Self::new(workload, fleet, |job| i64::from(!job.on_demand))
    }

    /// Within a tenant, shortest first.
    pub(super) fn shortest(workload: &'a Workload, fleet: &Fleet) -> Self {
        Self::new(workload, fleet, |job| job.duration.0)
    }

    fn new(workload: &'a Workload, fleet: &Fleet, key: fn(&Job) -> i64) -> Self {
        let weights = || workload.tenants.iter().map(|tenant| i128::from(tenant.weight));
        let whole = weights().fold(1, least_common_multiple);
        Self {
            workload,
            seats: Seats::new(workload, fleet, Prefer::Specialist),
            lines: Lines::default(),
            key,
            seated: vec![0; workload.jobs.len()],
            served: weights()
                .map(|weight| Served { step: whole / weight, ..Served::default() })
                .collect(),
        }
    }

    /// A tenant that has something waiting again is lifted to the least served of the others.
    fn lift(&mut self, tenant: usize, now: Timestamp) {
        let others = (0..self.served.len()).filter(|ix| self.lines.has_any_of(*ix));
        let least = others.map(|ix| self.served[ix].level(now)).min();
        let level = self.served[tenant].level(now);
        if let Some(least) = least {
            self.served[tenant].lift += (least - level).max(0);
        }
    }
}

fn least_common_multiple(one: i128, two: i128) -> i128 {
    let (mut divisor, mut rest) = (one, two);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    // Weights that have nothing in common are rounded in the end: so large a step is exact enough.
    (one / divisor * two).min(1 << 60)
}

impl Scheduler for Sfq<'_> {
    fn arrive(&mut self, job: usize, now: Timestamp) {
        let own = &self.workload.jobs[job];
        if !self.lines.has_any_of(own.tenant) {
            self.lift(own.tenant, now);
        }
        let line = Line { tenant: own.tenant, ..Line::of(own) };
        self.lines.add(line, (self.key)(own), job, own);
    }

    fn end(&mut self, job: usize, now: Timestamp) {
        let own = &self.workload.jobs[job];
        self.seats.give_back(self.seated[job], own.slots);
        let served = &mut self.served[own.tenant];
        served.settle(now);
        served.slots -= i64::from(own.slots);
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
                let level = self.served[line.tenant].level(now);
                Some((level, line.tenant, place, line, worker))
            });
            let Some((_, tenant, place, line, worker)) = fitting.min() else { return started };
            self.lines.remove(line, place);
            self.seats.take(worker, line.slots);
            self.seated[place.job] = worker;
            let served = &mut self.served[tenant];
            served.settle(now);
            served.slots += i64::from(line.slots);
            started.push(Seat { job: place.job, worker });
        }
    }
}
