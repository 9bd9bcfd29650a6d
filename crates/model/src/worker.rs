//! Workers.

use std::collections::BTreeMap;

use crate::job::Amounts;
use crate::{Fixed, Name, WorkerId};

/// The pool of workers and types that name none.
pub const POOL_DEFAULT: &str = "default";

/// A connected process that runs jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its id.
    pub id: WorkerId,
    /// The pool it belongs to.
    pub pool: Name,
    /// The types it runs, sorted. Empty means any, and counts as the least specialised.
    pub types: Vec<Name>,
    /// The limit of attempts of each type, as the worker declared it.
    pub type_max: BTreeMap<Name, u32>,
    /// Its attributes: for each key, every value it has, sorted.
    pub has: BTreeMap<Name, Vec<Name>>,
    /// The number of its slots.
    pub slots: u32,
    /// Slots that it reports as free. `None` means all that its attempts leave.
    pub slots_free: Option<u32>,
    /// The total of each amount.
    pub amounts: Amounts,
    /// The operator's order: lower is preferred.
    pub rank: i32,
    /// Whether it can take jobs.
    pub healthy: bool,
    /// Whether it takes no more jobs and leaves once it is empty.
    pub draining: bool,
    /// Locality labels that it has, sorted.
    pub hints: Vec<Name>,
    /// Its measurements.
    pub metrics: Metrics,
}

impl Worker {
    /// A healthy worker with one slot that runs any type.
    pub fn new(id: WorkerId) -> Self {
        Self {
            id,
            pool: Name::new(POOL_DEFAULT),
            types: Vec::new(),
            type_max: BTreeMap::new(),
            has: BTreeMap::new(),
            slots: 1,
            slots_free: None,
            amounts: Amounts::new(),
            rank: 0,
            healthy: true,
            draining: false,
            hints: Vec::new(),
            metrics: Metrics::default(),
        }
    }

    /// Whether it takes new jobs.
    pub const fn is_serving(&self) -> bool {
        self.healthy && !self.draining
    }

    /// Whether it has `value` for `key`.
    pub fn has(&self, key: &str, value: &str) -> bool {
        self.has.get(&Name::new(key)).is_some_and(|values| values.contains(&Name::new(value)))
    }
}

/// The measurements of a worker. `None` means not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// CPU in use, in percent.
    pub cpu_pct: Option<Fixed>,
    /// Free memory.
    pub ram_free_mb: Option<u64>,
    /// Total memory.
    pub ram_total_mb: Option<u64>,
    /// Speed of one core, by a fixed loop.
    pub cpu_score: Option<Fixed>,
    /// Network speed, measured in transfers of inputs.
    pub net_mbps: Option<Fixed>,
    /// Disk speed, measured in runs of jobs.
    pub disk_mbps: Option<Fixed>,
}
