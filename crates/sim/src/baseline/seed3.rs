//! Each free slot asks the tenants in turn: those without anything completed lately, then by how
//! far they are behind, counting completed jobs only.

use std::collections::VecDeque;

use model::{Millis, Timestamp};

use super::lines::{Line, Lines, Place};
use super::seats::{Prefer, Seats};
use crate::engine::{Loss, Scheduler, Seat};
use crate::fleet::Fleet;
use crate::workload::Workload;

pub(super) struct Seed3<'a> {
    workload: &'a Workload,
    seats: Seats,
    lines: Lines,
    seated: Vec<usize>,
    window: Millis,
    /// Jobs that ended within the window, with when.
    ended: VecDeque<(Timestamp, usize)>,
    /// Slot-milliseconds of each tenant's jobs that ended within the window, and how many.
    used: Vec<(i64, u64)>,
}

impl<'a> Seed3<'a> {
    pub(super) fn new(workload: &'a Workload, fleet: &Fleet, window: Millis) -> Self {
        Self {
            workload,
            seats: Seats::new(workload, fleet, Prefer::Lowest),
            lines: Lines::default(),
            seated: vec![0; workload.jobs.len()],
            window,
            ended: VecDeque::new(),
            used: vec![(0, 0); workload.tenants.len()],
        }
    }

    /// What ended before the window is forgotten.
    fn forget(&mut self, now: Timestamp) {
        while let Some((at, job)) = self.ended.front().copied()
            && at <= now - self.window
        {
            self.ended.pop_front();
            let job = &self.workload.jobs[job];
            let (used, completed) = &mut self.used[job.tenant];
            *used -= job.area();
            *completed -= 1;
        }
    }

    /// Tenants with waiting jobs, whose turn is first first.
    fn turns(&self) -> Vec<usize> {
        let tenants = 0..self.workload.tenants.len();
        let waiting: Vec<usize> = tenants.filter(|ix| self.lines.has_any_of(*ix)).collect();
        let weight = |ix: usize| i128::from(self.workload.tenants[ix].weight);
        let weights: i128 = waiting.iter().map(|ix| weight(*ix)).sum();
        let all: i128 = self.used.iter().map(|(used, _)| i128::from(*used)).sum();
        // `used / all − weight / weights`, times both: nothing is rounded.
        let ahead = |ix: usize| i128::from(self.used[ix].0) * weights - weight(ix) * all.max(1);
        let mut turns: Vec<(bool, i128, usize)> =
            waiting.into_iter().map(|ix| (self.used[ix].1 > 0, ahead(ix), ix)).collect();
        turns.sort_unstable();
        turns.into_iter().map(|(.., ix)| ix).collect()
    }

    /// The job that a worker takes next.
    fn best_for(&self, worker: usize) -> Option<(Place, Line)> {
        let free = self.seats.free_on(worker);
        let fits = |line: &Line| line.slots <= free && self.seats.runs(worker, line.fit);
        let first = |tenant: usize| {
            let heads = self.lines.heads_of(tenant).filter(|(line, _)| fits(line));
            heads.map(|(line, place)| (place, line)).min()
        };
        self.turns().into_iter().find_map(first)
    }
}

impl Scheduler for Seed3<'_> {
    fn arrive(&mut self, job: usize, _: Timestamp) {
        let own = &self.workload.jobs[job];
        let line = Line { tenant: own.tenant, ..Line::of(own) };
        self.lines.add(line, -i64::from(own.priority), job, own);
    }

    fn end(&mut self, job: usize, now: Timestamp) {
        let own = &self.workload.jobs[job];
        self.seats.give_back(self.seated[job], own.slots);
        self.ended.push_back((now, job));
        let (used, completed) = &mut self.used[own.tenant];
        *used += own.area();
        *completed += 1;
    }

    fn lose(&mut self, job: usize, _: Loss, now: Timestamp) {
        // Only what was completed counts as used.
        self.seats.give_back(self.seated[job], self.workload.jobs[job].slots);
        self.arrive(job, now);
    }

    fn leave(&mut self, worker: usize, _: Timestamp) {
        self.seats.leave(worker);
    }

    fn join(&mut self, worker: usize, _: Timestamp) {
        self.seats.join(worker);
    }

    fn pass(&mut self, now: Timestamp) -> Vec<Seat> {
        self.forget(now);
        let mut started = Vec::new();
        for worker in 0..self.seats.n_workers() {
            while self.seats.free_on(worker) > 0
                && let Some((place, line)) = self.best_for(worker)
            {
                self.lines.remove(line, place);
                self.seats.take(worker, line.slots);
                self.seated[place.job] = worker;
                started.push(Seat { job: place.job, worker });
            }
        }
        started
    }
}
