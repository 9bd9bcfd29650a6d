//! What is measured: by the owner of the world as it goes along, and by the doors. Read when
//! somebody asks, never on the way of a job.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{Millis, Name, TenantId};
use proto::v1;
use store::{Histogram, Run};

use crate::scheduler::Scheduler;

/// Milliseconds that attempts wait and run.
const LENGTHS: &[u64] = &[
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000,
    1_800_000, 7_200_000,
];

/// How long attempts of one tenant and type waited and ran.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    pub(crate) wait: Histogram,
    pub(crate) run: Histogram,
}

impl Default for Lengths {
    fn default() -> Self {
        Self { wait: Histogram::new(LENGTHS), run: Histogram::new(LENGTHS) }
    }
}

/// Lengths by tenant and type: so many pairs, and one for all others.
#[derive(Clone, Debug)]
pub(crate) struct Pairs {
    max: usize,
    pub(crate) known: HashMap<(TenantId, Name), Lengths>,
    pub(crate) others: Option<Lengths>,
}

impl Pairs {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, known: HashMap::new(), others: None }
    }

    /// An attempt ended.
    pub(crate) fn ended(&mut self, run: &Run) {
        let size = |length: Millis| length.0.max(0).unsigned_abs();
        let key = (run.tenant.clone(), run.kind.clone());
        let has_room = self.known.len() < self.max;
        let lengths = match self.known.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) if has_room => place.insert(Lengths::default()),
            Entry::Vacant(_) => self.others.get_or_insert_default(),
        };
        lengths.wait.add(size(run.wait));
        lengths.run.add(size(run.duration));
    }
}

/// What doors count. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tolls(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    submitted: AtomicU64,
    refused: AtomicU64,
    told: AtomicU64,
    untold: AtomicU64,
    given_up: AtomicU64,
}

impl Tolls {
    pub(crate) fn submitted(&self, n_jobs: usize) {
        let n_jobs = u64::try_from(n_jobs).unwrap_or(u64::MAX);
        self.0.submitted.fetch_add(n_jobs, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn told(&self) {
        self.0.told.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn untold(&self) {
        self.0.untold.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn given_up(&self) {
        self.0.given_up.fetch_add(1, Ordering::Relaxed);
    }

    /// Jobs that were taken in, and submissions that were refused.
    pub(crate) fn submissions(&self) -> (u64, u64) {
        (self.0.submitted.load(Ordering::Relaxed), self.0.refused.load(Ordering::Relaxed))
    }

    /// Ends that were told, times that nobody heard, and ends that were given up.
    pub(crate) fn webhooks(&self) -> [(&'static str, u64); 3] {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.0;
        [
            ("delivered", load(&counts.told)),
            ("failed", load(&counts.untold)),
            ("given_up", load(&counts.given_up)),
        ]
    }
}

/// What the owner of the world measured, at one moment.
#[derive(Debug)]
pub(crate) struct Measures {
    pub(crate) pairs: Pairs,
    pub(crate) counters: Vec<(&'static str, u64)>,
    /// Tenants with the jobs that wait and run.
    pub(crate) tenants: Vec<(TenantId, u32, u32)>,
    pub(crate) pools: Vec<v1::PoolLoad>,
    pub(crate) wanted: Vec<decide::Wanted>,
    /// How many jobs wait for which reason, by tenant and type.
    pub(crate) waiters: Vec<decide::Waiters>,
    pub(crate) n_workers: usize,
    /// How well lengths of each type are predicted.
    pub(crate) skills: Vec<(Name, decide::Skill)>,
    /// How old what is known of other schedulers is; 0 if nobody shares the store.
    pub(crate) others_age_ms: u64,
    /// The same of what tenants were charged.
    pub(crate) usage_age_ms: u64,
}

impl Scheduler {
    pub(crate) fn measures(&mut self) -> Measures {
        let tenants = self.world.tenants().into_iter();
        let tenants = tenants.map(|status| (status.tenant.id, status.n_queued, status.n_running));
        Measures {
            pairs: self.pairs.clone(),
            counters: self.counters.all().collect(),
            tenants: tenants.collect(),
            pools: self.pools(),
            wanted: self.world.wanted(),
            waiters: self.world.waiting_by_reason(self.store.now()),
            n_workers: self.fleet.n_connected(),
            skills: self.histories.skills().map(|(kind, skill)| (kind.clone(), skill)).collect(),
            others_age_ms: self.staleness_ms(),
            usage_age_ms: self.usage_age_ms(),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Ending, Measured, Timestamp};

    use super::*;

    #[test]
    fn pairs_beyond_the_limit_share_one_place() {
        let run = |tenant: &str| Run {
            tenant: TenantId::new(tenant),
            kind: Name::new("k"),
            history_key: String::new(),
            at: Timestamp(0),
            wait: Millis(3),
            duration: Millis(40),
            ending: Ending::Succeeded,
            measured: Measured::default(),
            fetched: None,
            n_dependents: 0,
        };
        let mut pairs = Pairs::new(2);
        for tenant in ["a", "b", "c", "d", "a"] {
            pairs.ended(&run(tenant));
        }
        let sum = |tenant: &str| pairs.known[&(TenantId::new(tenant), Name::new("k"))].run.sum();
        assert_eq!((pairs.known.len(), sum("a"), sum("b")), (2, 80, 40));
        assert_eq!(pairs.others.as_ref().map(|others| others.wait.sum()), Some(6));
    }
}
