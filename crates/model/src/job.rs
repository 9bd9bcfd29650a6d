//! What a job is while it waits.

use std::collections::BTreeMap;

use crate::{Fixed, JobId, Millis, Name, TenantId, Timestamp, WorkerId};

/// What a job needs of a worker: for each key, any one of these values.
pub type Needs = BTreeMap<Name, Vec<Name>>;

/// Consumable amounts by name (`ram_mb`, `gpu`, …).
pub type Amounts = BTreeMap<Name, u64>;

/// One submitted unit of work that waits to be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Its type; `None` runs on workers of any types.
    pub kind: Option<Name>,
    /// The pool it must run in; `None` means its type's pool, or any whose workers fit.
    pub pool: Option<Name>,
    /// What it needs of a worker.
    pub needs: Needs,
    /// Slots that it takes, all on one worker.
    pub slots: u32,
    /// Amounts that it takes, all on one worker.
    pub amounts: Amounts,
    /// What the submitter asked for: higher is sooner.
    pub priority: i32,
    /// Whether a person waits for the result.
    pub on_demand: bool,
    /// When it was submitted.
    pub created: Timestamp,
    /// When it first could have run. Its age counts from here and is never reset.
    pub ready: Timestamp,
    /// The submitter's own delay.
    pub not_before: Option<Timestamp>,
    /// The scheduler's delay after a failed try to place it; `None` means none was ever needed.
    pub backoff_until: Option<Timestamp>,
    /// How often it was preempted.
    pub evictions: u32,
    /// How long it is expected to run.
    pub estimate: Option<Millis>,
    /// It is stopped after so long.
    pub limit: Option<Millis>,
    /// Where its last attempt ran.
    pub last_worker: Option<WorkerId>,
    /// Facts that rules ask about.
    pub traits: Traits,
    /// The locality label that it wants.
    pub hint: Option<Name>,
    /// What it must hold alone while it runs.
    pub resource: Option<Ask>,
    /// What it is expected to cost.
    pub cost: Fixed,
    /// How many jobs wait for it.
    pub dependents: Option<u32>,
    /// What each worker lacks of its inputs. A worker that is not in here has not said.
    pub inputs: BTreeMap<WorkerId, Inputs>,
    /// Rounds in which its inputs were still unknown.
    pub rescore_count: u32,
    /// What earlier runs of its kind used.
    pub history: Option<History>,
    /// Where others stopped to make room for it: it starts there next, if limits allow.
    pub promised: Option<WorkerId>,
}

impl Job {
    /// A job with nothing but an id, a tenant and the moment it was submitted.
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

/// What a job asks to hold alone while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ask {
    /// The resource of this name.
    Named(Name),
    /// Any free one of its tenant's.
    Any,
}

/// What one worker lacks of a job's inputs. `None` means that it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Paths that the worker would have to fetch.
    pub missing_paths: Option<u32>,
    /// Bytes that the worker would have to fetch.
    pub missing_bytes: Option<u64>,
}

/// What earlier runs of the same key used. `None` means that it was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// How many runs this is drawn from; with none, every prediction is ignored.
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

/// A fact about a job that rules ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Trait {
    /// Has no inputs to wait for.
    Evaluation = 1,
    /// An evaluation that is served from a cache.
    Cached = 2,
    /// Substitute-only: runs on any architecture.
    Light = 4,
    /// Fixed output, bound by the network.
    Network = 8,
    /// Better run where its inputs are.
    PreferLocal = 16,
}

impl Trait {
    /// All of them.
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
