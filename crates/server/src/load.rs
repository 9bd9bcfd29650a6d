//! How much waits and runs, now and lately, and of which types.

use std::collections::BTreeMap;

use model::{Millis, Name};
use proto::v1;
use store::Run;

use crate::scheduler::Scheduler;

impl Scheduler {
    /// The load, as far as the owner of the world knows it: without waits and the slowest.
    pub(crate) fn load(&self) -> v1::LoadResponse {
        let now = self.store.now();
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let n_queued = self.world.n_queued();
        let minutes = self.samples.last_hour(now).map(|(at, ended, queued)| {
            let reasons = self.samples.reasons_at(at).into_iter().flatten();
            let reasons = reasons.map(|(reason, n)| (reason.name().to_owned(), *n)).collect();
            v1::Minute { at_ms: at.0, ended, queued, reasons }
        });
        v1::LoadResponse {
            now_ms: now.0,
            queued: count(n_queued),
            running: count(self.jobs.len() - n_queued),
            minutes: minutes.collect(),
            waits: None,
            pools: self.pools(),
            slowest: Vec::new(),
        }
    }

    pub(crate) fn pools(&self) -> Vec<v1::PoolLoad> {
        let mut pools: BTreeMap<Name, v1::PoolLoad> = BTreeMap::new();
        for (id, seat) in &self.fleet.seats {
            let worker = seat.worker(&self.closed);
            let load = pools.entry(worker.pool.clone()).or_default();
            load.pool = worker.pool.to_string();
            load.slots_used = load.slots_used.saturating_add(self.jobs.slots_of(id));
            if worker.is_serving() {
                load.workers += 1;
                load.slots = load.slots.saturating_add(worker.slots);
            }
        }
        pools.into_values().collect()
    }

    /// Types that workers name or that ran lately, with what their runs were like and who takes
    /// them; and how many workers take any type.
    pub(crate) fn kinds(&self) -> (BTreeMap<String, v1::TypeStatus>, u32) {
        let mut kinds: BTreeMap<String, v1::TypeStatus> = BTreeMap::new();
        for (kind, history) in self.histories.by_kind() {
            let known = kinds.entry(kind.to_string()).or_default();
            known.samples = history.samples;
            known.duration_ms = history.duration.map(|Millis(ms)| ms.unsigned_abs());
            known.ram_peak_mb = history.ram_peak_mb;
        }
        let mut n_of_any = 0;
        for seat in self.fleet.seats.values().filter(|seat| seat.runs_jobs) {
            let worker = seat.worker(&self.closed);
            let n_takers = u32::from(worker.is_serving());
            if worker.types.is_empty() {
                n_of_any += n_takers;
            }
            for kind in &worker.types {
                kinds.entry(kind.to_string()).or_default().workers += n_takers;
            }
        }
        (kinds, n_of_any)
    }
}

/// How long jobs waited.
pub(crate) fn waits(runs: &[Run]) -> v1::Waits {
    let mut waits: Vec<u64> = runs.iter().map(|run| run.wait.0.max(0).unsigned_abs()).collect();
    waits.sort_unstable();
    let percentile = |percent: usize| {
        let rank = (waits.len() * percent).div_ceil(100);
        waits.get(rank.checked_sub(1)?).copied()
    };
    v1::Waits {
        n: u64::try_from(waits.len()).unwrap_or(u64::MAX),
        p50_ms: percentile(50),
        p90_ms: percentile(90),
        p99_ms: percentile(99),
    }
}
