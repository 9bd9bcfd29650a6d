//! Waiting jobs.

use std::collections::BTreeMap;

use crate::{Fixed, JobId, Millis, Name, TenantId, Timestamp, WorkerId};

/// Requirements of a job: for each key, the worker must have one of these values.
pub type Needs = BTreeMap<Name, Vec<Name>>;

/// Consumable amounts by name (`ram_mb`, `gpu`, …).
pub type Amounts = BTreeMap<Name, u64>;

/// One submitted unit of work that waits to be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Its tenant.
    pub tenant: TenantId,
    /// Its type. `None` runs on workers of any type.
    pub kind: Option<Name>,
    /// Its pool. `None` means the pool of its type, or every pool with a fitting worker.
    pub pool: Option<Name>,
    /// Its requirements.
    pub needs: Needs,
    /// Slots that it needs, all on one worker.
    pub slots: u32,
    /// Amounts that it needs, all on one worker.
    pub amounts: Amounts,
    /// The submitter's priority: higher starts sooner.
    pub priority: i32,
    /// Whether a person waits for the result.
    pub on_demand: bool,
    /// When it was submitted.
    pub created: Timestamp,
    /// When it could first have run. Its age counts from here and is never reset.
    pub ready: Timestamp,
    /// The submitter's own delay.
    pub not_before: Option<Timestamp>,
    /// The scheduler's delay after a failed placement. `None` means that there was none.
    pub backoff_until: Option<Timestamp>,
    /// The number of preemptions.
    pub evictions: u32,
    /// Its expected run time.
    pub estimate: Option<Millis>,
    /// The longest run time, after which it is stopped.
    pub limit: Option<Millis>,
    /// The worker of its last attempt.
    pub last_worker: Option<WorkerId>,
    /// Facts that rules read.
    pub traits: Traits,
    /// The locality label that it prefers.
    pub hint: Option<Name>,
    /// The exclusive lock that it needs.
    pub resource: Option<Ask>,
    /// Its expected cost.
    pub cost: Fixed,
    /// The number of its dependents.
    pub dependents: Option<u32>,
    /// The inputs that each worker lacks. A worker without an entry has not reported.
    pub inputs: BTreeMap<WorkerId, Inputs>,
    /// Scheduling cycles in which its inputs were unknown.
    pub rescore_count: u32,
    /// The usage of earlier runs with its history key.
    pub history: Option<History>,
    /// The worker on which victims stopped for it. It starts there next, if limits allow.
    pub promised: Option<WorkerId>,
}

impl Job {
    /// A job with an id, a tenant and a submission time, and defaults for the rest.
    pub fn new(id: JobId, tenant: TenantId, created: Timestamp) -> Self {
        Self {
            id,
            tenant,
            kind: None,
            pool: None,
            needs: Needs::new(),
            slots: 1,
            amounts: Amounts::new(),
            priority: 0,
            on_demand: false,
            created,
            ready: created,
            not_before: None,
            backoff_until: None,
            evictions: 0,
            estimate: None,
            limit: None,
            last_worker: None,
            traits: Traits::default(),
            hint: None,
            resource: None,
            cost: Fixed::ONE,
            dependents: None,
            inputs: BTreeMap::new(),
            rescore_count: 0,
            history: None,
            promised: None,
        }
    }
}

/// The exclusive lock that a job asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ask {
    /// The resource of this name.
    Named(Name),
    /// Any free one of its tenant.
    Any,
}

/// The inputs of a job that one worker lacks. `None` means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Paths that the worker would have to fetch.
    pub missing_paths: Option<u32>,
    /// Bytes that the worker would have to fetch.
    pub missing_bytes: Option<u64>,
}

/// The usage of earlier runs with the same key. `None` means not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The number of runs. With zero, every prediction is ignored.
    pub samples: u32,
    /// 95th percentile of peak memory.
    pub ram_peak_mb: Option<u64>,
    /// Mean CPU time.
    pub cpu_ms: Option<u64>,
    /// Mean bytes read and written.
    pub disk_bytes: Option<u64>,
    /// Mean duration.
    pub duration: Option<Millis>,
    /// Fraction of runs that ran out of memory, 0 to 1.
    pub oom_rate: Option<Fixed>,
}

/// A fact about a job that rules read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Trait {
    /// Has no inputs to wait for.
    Evaluation = 1,
    /// An evaluation that is served from a cache.
    Cached = 2,
    /// Substitute-only: runs on any architecture.
    Light = 4,
    /// Fixed output, limited by the network.
    Network = 8,
    /// Prefers a worker that has its inputs.
    PreferLocal = 16,
}

impl Trait {
    /// All traits.
    pub const ALL: [Self; 5] =
        [Self::Evaluation, Self::Cached, Self::Light, Self::Network, Self::PreferLocal];

    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Evaluation => "evaluation",
            Self::Cached => "cached",
            Self::Light => "light",
            Self::Network => "network",
            Self::PreferLocal => "prefer-local",
        }
    }
}

/// A set of [`Trait`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Traits(u8);

impl Traits {
    /// Whether `fact` is in the set.
    #[expect(clippy::as_conversions, reason = "the bit of a fieldless enum")]
    pub const fn has(self, fact: Trait) -> bool {
        self.0 & fact as u8 != 0
    }

    /// The set with `fact` in it.
    #[expect(clippy::as_conversions, reason = "the bit of a fieldless enum")]
    #[must_use]
    pub const fn with(self, fact: Trait) -> Self {
        Self(self.0 | fact as u8)
    }

    /// The facts in the set.
    pub fn iter(self) -> impl Iterator<Item = Trait> {
        Trait::ALL.into_iter().filter(move |fact| self.has(*fact))
    }
}

impl FromIterator<Trait> for Traits {
    fn from_iter<I: IntoIterator<Item = Trait>>(facts: I) -> Self {
        facts.into_iter().fold(Self::default(), Self::with)
    }
}
