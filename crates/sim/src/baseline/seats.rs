//! Free slots, and which of them a job gets.

use crate::fleet::Fleet;
use crate::workload::Workload;

/// Which of the workers that fit and have room is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefer {
    /// The smallest id.
    Lowest,
    /// The one that runs the fewest types, then the smallest id.
    Specialist,
}

/// The slots of a fleet.
pub(super) struct Seats {
    /// Free slots of each worker.
    free: Vec<u32>,
    /// All slots of each worker.
    all: Vec<u32>,
    /// The workers of each fit, preferred ones first.
    by_fit: Vec<Vec<usize>>,
    /// Free slots of each fit.
    free_by_fit: Vec<u64>,
    /// The fits of each worker.
    by_worker: Vec<Vec<usize>>,
}

impl Seats {
    pub(super) fn new(workload: &Workload, fleet: &Fleet, prefer: Prefer) -> Self {
        let mut order: Vec<usize> = (0..fleet.workers.len()).collect();
        if prefer == Prefer::Specialist {
            // A worker without types takes any, and is the least specialised.
            let n_types = |ix: &usize| fleet.workers[*ix].types.len().wrapping_sub(1);
            order.sort_by_key(n_types);
        }
        let fits = |ix: usize, fit: usize| fleet.fits(&fleet.workers[ix], &workload.fits[fit]);
        let n_fits = workload.fits.len();
        let of_fit = |fit| order.iter().copied().filter(|ix| fits(*ix, fit)).collect();
        let by_fit: Vec<Vec<usize>> = (0..n_fits).map(of_fit).collect();
        let free: Vec<u32> = fleet.workers.iter().map(|worker| worker.slots).collect();
        let sum = |of: &Vec<usize>| of.iter().map(|ix| u64::from(free[*ix])).sum();
        Self {
            free_by_fit: by_fit.iter().map(sum).collect(),
            by_worker: (0..free.len())
                .map(|ix| (0..n_fits).filter(|fit| fits(ix, *fit)).collect())
                .collect(),
            by_fit,
            all: free.clone(),
            free,
        }
    }

    /// Free slots on workers of this fit.
    pub(super) fn free(&self, fit: usize) -> u64 {
        self.free_by_fit[fit]
    }

    /// Free slots of a worker.
    pub(super) fn free_on(&self, worker: usize) -> u32 {
        self.free[worker]
    }

    pub(super) fn n_workers(&self) -> usize {
        self.free.len()
    }

    /// Whether the worker could run jobs of this fit.
    pub(super) fn runs(&self, worker: usize, fit: usize) -> bool {
        self.by_worker[worker].contains(&fit)
    }

    /// The preferred worker with room.
    pub(super) fn find(&self, fit: usize, slots: u32) -> Option<usize> {
        if self.free_by_fit[fit] < u64::from(slots) {
            return None;
        }
        self.by_fit[fit].iter().copied().find(|ix| self.free[*ix] >= slots)
    }

    pub(super) fn take(&mut self, worker: usize, slots: u32) {
        self.free[worker] -= slots;
        for fit in &self.by_worker[worker] {
            self.free_by_fit[*fit] -= u64::from(slots);
        }
    }

    pub(super) fn give_back(&mut self, worker: usize, slots: u32) {
        self.free[worker] += slots;
        for fit in &self.by_worker[worker] {
            self.free_by_fit[*fit] += u64::from(slots);
        }
    }

    /// A worker on which nothing runs is gone.
    pub(super) fn leave(&mut self, worker: usize) {
        self.take(worker, self.free[worker]);
    }

    /// A worker that was gone is back.
    pub(super) fn join(&mut self, worker: usize) {
        self.give_back(worker, self.all[worker]);
    }
}
