//! Workers of other schedulers, so far as it takes to say why a job waits: whoever is asked answers
//! for all.

use std::collections::BTreeMap;

use model::{Name, Record, Worker, WorkerId};
use serde::{Deserialize, Serialize};

use crate::estimate::slots_that_fit;
use crate::scheduler::Scheduler;

/// Kinds of workers that a scheduler tells of.
const KINDS_MAX: usize = 1_000;

/// Workers that take work and are alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Kind {
    pool: String,
    /// None in particular means any.
    types: Vec<String>,
    has: BTreeMap<String, Vec<String>>,
    amounts: BTreeMap<String, u64>,
    /// Of each of them.
    slots: u32,
}

impl Kind {
    fn of(worker: &Worker) -> Self {
        let texts = |names: &[Name]| names.iter().map(ToString::to_string).collect();
        Self {
            pool: worker.pool.to_string(),
            types: texts(&worker.types),
            has: worker.has.iter().map(|(key, own)| (key.to_string(), texts(own))).collect(),
            amounts: worker.amounts.iter().map(|(name, n)| (name.to_string(), *n)).collect(),
            slots: worker.slots,
        }
    }

    fn worker(&self) -> Worker {
        let names = |texts: &[String]| texts.iter().map(|text| Name::new(text)).collect();
        Worker {
            pool: Name::new(&self.pool),
            types: names(&self.types),
            has: self.has.iter().map(|(key, own)| (Name::new(key), names(own))).collect(),
            amounts: self.amounts.iter().map(|(name, n)| (Name::new(name), *n)).collect(),
            slots: self.slots,
            ..Worker::new(WorkerId::new("elsewhere"))
        }
    }
}

impl Scheduler {
    /// Workers that are connected here and take work, by kind.
    pub(super) fn kinds_of_workers(&self) -> Vec<(Kind, u32)> {
        self.kinds_of(Worker::is_serving)
    }

    /// Workers that are known here and take no work, by kind.
    pub(super) fn kinds_away(&self) -> Vec<(Kind, u32)> {
        self.kinds_of(|worker| !worker.is_serving())
    }

    /// Those of them that neither drain nor are in a closed pool. They are unhealthy.
    pub(super) fn kinds_unwell(&self) -> Vec<(Kind, u32)> {
        self.kinds_of(|worker| !worker.is_serving() && !worker.draining)
    }

    fn kinds_of(&self, test: impl Fn(&Worker) -> bool) -> Vec<(Kind, u32)> {
        let mut kinds: BTreeMap<Kind, u32> = BTreeMap::new();
        for seat in self.fleet.seats.values().filter(|seat| seat.runs_jobs) {
            let worker = seat.worker(&self.closed);
            if test(&worker) {
                *kinds.entry(Kind::of(&worker)).or_default() += 1;
            }
        }
        kinds.into_iter().take(KINDS_MAX).collect()
    }

    /// Workers of other schedulers that take no work.
    pub(crate) fn away_elsewhere(&self) -> impl Iterator<Item = Worker> {
        workers_of(self.sharing.iter().flat_map(|sharing| &sharing.elsewhere.away))
    }

    /// Those of them that are only unhealthy.
    pub(crate) fn unwell_elsewhere(&self) -> impl Iterator<Item = Worker> {
        workers_of(self.sharing.iter().flat_map(|sharing| &sharing.elsewhere.unwell))
    }

    /// Slots of workers of other schedulers that could run such a job.
    pub(crate) fn slots_elsewhere(&self, record: &Record) -> u64 {
        let pool = self.pool_for(&record.spec);
        let kinds = self.sharing.iter().flat_map(|sharing| &sharing.elsewhere.workers);
        let slots = kinds.map(|(kind, n)| {
            let worker = kind.worker();
            slots_that_fit([&worker].into_iter(), &record.spec, pool.as_ref()) * u64::from(*n)
        });
        slots.sum()
    }
}

fn workers_of<'a>(kinds: impl Iterator<Item = &'a (Kind, u32)>) -> impl Iterator<Item = Worker> {
    kinds.flat_map(|(kind, n)| (0..*n).map(|_| kind.worker()))
}
