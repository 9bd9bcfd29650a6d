//! The workers of a replay.

use std::collections::BTreeSet;

use model::{Fixed, Name, Worker, WorkerId};

use crate::error::Error;
use crate::terms;
use crate::workload::{Fit, Workload};

/// Workers by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    /// By id.
    pub workers: Vec<Worker>,
    /// How fast each worker is: jobs take as long as they say on one of speed 1. Where there are
    /// none, all are of speed 1.
    pub speeds: Vec<Fixed>,
    /// Whether any worker will do, whatever jobs need: a fleet of which only the size is known.
    pub takes_all: bool,
}

impl Fleet {
    /// So many workers of so many slots each, that take all.
    pub fn of_size(n_workers: u32, slots: u32) -> Self {
        let workers = (0..n_workers)
            .map(|id| Worker { slots, ..Worker::new(WorkerId::number(u64::from(id))) });
        Self { workers: workers.collect(), speeds: Vec::new(), takes_all: true }
    }

    /// `64` for so many workers of one slot, `10x8` for so many of so many slots.
    pub fn parse_size(text: &str) -> Option<Self> {
        let (n_workers, slots) = text.split_once('x').unwrap_or((text, "1"));
        let (n_workers, slots) = (n_workers.parse().ok()?, slots.parse().ok()?);
        (n_workers > 0 && slots > 0).then(|| Self::of_size(n_workers, slots))
    }

    /// Workers by id, all of speed 1; `None` if there are none.
    pub fn of_workers(workers: Vec<Worker>) -> Option<Self> {
        Self::new("the fleet", workers.into_iter().map(|own| (own, Fixed::ONE)).collect()).ok()
    }

    /// Workers in any order, each with its speed.
    pub(crate) fn new(name: &str, mut all: Vec<(Worker, Fixed)>) -> Result<Self, Error> {
        all.sort_by(|(one, _), (two, _)| one.id.cmp(&two.id));
        if let Some(two) = all.windows(2).find(|two| two[0].0.id == two[1].0.id) {
            return Err(Error::form(name, format!("has worker `{}` twice", two[0].0.id)));
        }
        if all.is_empty() {
            return Err(Error::form(name, "has no workers"));
        }
        let has_speeds = all.iter().any(|(_, speed)| *speed != Fixed::ONE);
        let (workers, speeds): (Vec<Worker>, Vec<Fixed>) = all.into_iter().unzip();
        let speeds = if has_speeds { speeds } else { Vec::new() };
        Ok(Self { workers, speeds, takes_all: false })
    }

    /// How fast a worker is.
    pub fn speed(&self, worker: usize) -> Fixed {
        self.speeds.get(worker).copied().unwrap_or(Fixed::ONE)
    }

    /// All slots of all workers.
    pub fn slots(&self) -> u64 {
        self.workers.iter().map(|worker| u64::from(worker.slots)).sum()
    }

    /// What all slots do in the time in which one of speed 1 does 1, rounded.
    pub fn capacity(&self) -> u64 {
        let workers = self.workers.iter().enumerate();
        let done = workers
            .map(|(ix, own)| i128::from(own.slots) * i128::from(self.speed(ix).in_thousandths()));
        u64::try_from(done.sum::<i128>() / 1_000).unwrap_or(u64::MAX).max(1)
    }

    /// Whether the worker could run jobs of this fit.
    pub fn fits(&self, worker: &Worker, fit: &Fit) -> bool {
        let runs = |kind: &Name| worker.types.is_empty() || worker.types.contains(kind);
        let offers = |key: &Name, values: &[Name]| {
            let own = worker.has.get(key);
            own.is_some_and(|own| values.iter().any(|value| own.contains(value)))
        };
        self.takes_all
            || fit.kind.as_ref().is_none_or(runs)
                && fit.needs.iter().all(|(key, values)| offers(key, values))
    }

    /// Lets workers have what they have also under the names that jobs' terms go by.
    pub(crate) fn answer(&mut self, fits: &[Fit]) {
        let needs: BTreeSet<(&Name, &Vec<Name>)> = fits.iter().flat_map(|fit| &fit.needs).collect();
        for worker in &mut self.workers {
            for (name, values) in &needs {
                terms::answer(worker, name, values);
            }
        }
    }

    /// The fleet and the workload meet: the jobs that no worker could ever run are taken out and
    /// counted as bad; `bad_max` of all rows may be.
    pub fn sift(&mut self, workload: &mut Workload, bad_max: usize) -> Result<(), Error> {
        self.answer(&workload.fits);
        let room = |fit: &Fit| {
            let fitting = self.workers.iter().filter(|worker| self.fits(worker, fit));
            fitting.map(|worker| worker.slots).max().unwrap_or(0)
        };
        let room: Vec<u32> = workload.fits.iter().map(room).collect();
        let bad = &mut workload.bad;
        workload.jobs.retain(|job| {
            let has_room = job.slots <= room[job.fit];
            if !has_room {
                bad.add(|| format!("job `{}` fits no worker", job.id));
            }
            has_room
        });
        workload.bad.check("the workload", bad_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_of_workers_and_of_slots() {
        assert_eq!(Fleet::parse_size("64").map(|fleet| fleet.slots()), Some(64));
        assert_eq!(Fleet::parse_size("10x8").map(|fleet| fleet.slots()), Some(80));
        assert_eq!(Fleet::parse_size("0"), None);
        assert_eq!(Fleet::parse_size("het.csv"), None);
    }
}
