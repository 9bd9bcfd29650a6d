//! Workers that could run a job and take no work, here and at other schedulers.

use std::collections::BTreeSet;

use model::{Check, Fixed, Name, Reason, Record, Worker};

use crate::estimate::fits;
use crate::scheduler::Scheduler;

/// Workers that could run a job, and that take no work.
#[derive(Default)]
pub(crate) struct Away {
    n_workers: u64,
    /// Those of them whose pool an operator paused.
    n_paused: u64,
    /// These pools.
    pools: BTreeSet<Name>,
    /// Those of other schedulers.
    n_elsewhere: u64,
    /// Those of other schedulers that neither drain nor are in a paused pool.
    n_unwell_elsewhere: u64,
}

impl Scheduler {
    /// Workers that could run a job and take no work now.
    pub(crate) fn away(&self, record: &Record, pool: Option<&Name>) -> Away {
        let could = |worker: &Worker| fits(worker, &record.spec, pool);
        let here = self.fleet.seats.values().filter(|seat| seat.runs_jobs);
        let here = here.map(|seat| seat.worker(&self.closed));
        let here = here.filter(|worker| !worker.is_serving());
        let mut away = Away {
            n_elsewhere: count(self.away_elsewhere().filter(could)),
            n_unwell_elsewhere: count(self.unwell_elsewhere().filter(could)),
            ..Away::default()
        };
        for worker in here.chain(self.away_elsewhere()).filter(could) {
            away.n_workers += 1;
            if self.closed.pools.contains(&worker.pool) {
                away.n_paused += 1;
                away.pools.insert(worker.pool);
            }
        }
        away
    }
}

impl Away {
    /// Says of all workers what a check says of those that are here. A paused pool is called so.
    pub(crate) fn told(&self, check: Check) -> Check {
        if self.n_workers == 0 {
            return check;
        }
        if self.n_paused == self.n_workers {
            return self.paused();
        }
        let check = if self.n_elsewhere > 0 { self.with_elsewhere(check) } else { check };
        if self.n_paused == 0 {
            return check;
        }
        let names = self.names();
        let detail =
            format!("{}; {} of them in paused pools ({names})", check.detail, self.n_paused);
        Check { detail, ..check }
    }

    fn paused(&self) -> Check {
        let numbers = [("workers", whole(self.n_workers)), ("paused", whole(self.n_paused))].into();
        let (pools, is) = if self.pools.len() == 1 { ("pool", "is") } else { ("pools", "are") };
        let first = self.pools.first().map(ToString::to_string).unwrap_or_default();
        let detail = format!(
            "{pools} {} {is} paused, with {} that could run it; resume it (`maitre set pool \
             {first} '{{\"paused\": false}}'`)",
            self.names(),
            n_workers(whole(self.n_workers))
        );
        Check { numbers, ..Check::new(Reason::PoolPaused, detail) }
    }

    /// The reason is the same whichever scheduler is asked.
    fn with_elsewhere(&self, check: Check) -> Check {
        let here = |name| {
            let known = check.numbers.get(name).copied();
            known.filter(|_| check.reason != Reason::NoWorkerEver).unwrap_or(Fixed::ZERO)
        };
        let elsewhere = whole(self.n_elsewhere);
        let workers = here("workers") + elsewhere;
        let draining = here("draining") + elsewhere - whole(self.n_unwell_elsewhere);
        let could =
            format!("{} could run it, {elsewhere} of them of other schedulers", n_workers(workers));
        let (reason, detail) = if draining > Fixed::ZERO {
            let detail = format!("{could}; {draining} draining; it starts when one comes back");
            (Reason::NoWorkerNow, detail)
        } else {
            (Reason::WorkerUnhealthy, format!("{could}; none is healthy; it starts when one is"))
        };
        let numbers = [("workers", workers), ("draining", draining)].into();
        Check { numbers, workers: check.workers, ..Check::new(reason, detail) }
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.pools.iter().map(ToString::to_string).collect();
        names.join(", ")
    }
}

fn count(workers: impl Iterator<Item = Worker>) -> u64 {
    u64::try_from(workers.count()).unwrap_or(u64::MAX)
}

fn whole(n: u64) -> Fixed {
    Fixed::whole(i64::try_from(n).unwrap_or(i64::MAX))
}

fn n_workers(n: Fixed) -> String {
    if n == Fixed::ONE { "1 worker".to_owned() } else { format!("{n} workers") }
}
