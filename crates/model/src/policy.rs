//! A scheduling policy as data.
//!
//! A policy answers four questions: which side starts ([`Entry`]), which tenant is next ([`Turn`]),
//! which of its jobs goes first ([`Order`]) and which worker it gets ([`Seat`]). The rest are
//! numbers.

use std::collections::BTreeMap;

use crate::{Fixed, Millis};

/// A named starting point for a [`Policy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Preset {
    /// Priority, then age. The first worker that matches.
    PriorityAge,
    /// The same for each pool alone, tenants below their minimum first.
    Cohort,
    /// A worker asks. The sum of seven rules.
    Simple,
    /// A worker asks. The sum of twelve rules.
    ResourceAware,
    /// A worker asks. The tenant that is furthest behind its share.
    FairShare,
    /// Priority, age, rarity and on-demand in one score. The most specialised worker.
    Aging,
    /// Groups by job type with their own limits. The worker with the most room.
    Detected,
    /// The default: quota, share by measured slot time, shortest first with a bound, best fit.
    Balanced,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 8] = [
        Self::PriorityAge,
        Self::Cohort,
        Self::Simple,
        Self::ResourceAware,
        Self::FairShare,
        Self::Aging,
        Self::Detected,
        Self::Balanced,
    ];

    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PriorityAge => "priority-age",
            Self::Cohort => "cohort",
            Self::Simple => "simple",
            Self::ResourceAware => "resource-aware",
            Self::FairShare => "fair-share",
            Self::Aging => "aging",
            Self::Detected => "detected",
            Self::Balanced => "balanced",
        }
    }

    /// The preset with the name `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }
}

/// A scheduling policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Policy {
    /// The preset it started from.
    pub preset: Preset,
    /// Which side starts.
    pub entry: Entry,
    /// Which tenant is next.
    pub turn: Turn,
    /// Which of its jobs goes first.
    pub order: Order,
    /// Which worker the job gets.
    pub seat: Seat,
    /// The percentage of choices that go by priority. The others go by age alone.
    pub priority_percentage: u32,
    /// The delay of a job that found no worker. Zero means none.
    pub failure_backoff: Millis,
    /// Whether a worker that finished jobs gets jobs for all its slots, or only as many as it
    /// finished.
    pub proactive_fetch_to_capacity: bool,
    /// Whether the backoff of a job that never had one counts as ended at its submission, so that a
    /// worker that finished a job skips it.
    pub proactive_fetch_literal: bool,
    /// Whether [`Turn::Deficit`] counts only the cost that was settled before the scheduling cycle.
    /// Attempts and the grants of the cycle count for nothing, as in the source of the preset.
    pub literal: bool,
    /// Preemption for tenants below their minimum.
    pub preemption: Preemption,
    /// The time for which an eviction lowers its tenant's maximum by one slot.
    pub eviction_cooldown: Millis,
    /// The numbers of [`Order::Aging`].
    pub aging: Aging,
    /// The numbers of [`Turn::FairQueue`] and [`Order::Shortest`].
    pub fairness: Fairness,
    /// The rules that count, each with its weight.
    pub rules: BTreeMap<Rule, Fixed>,
    /// Whether slots that can run rare work are reserved for it while it is expected.
    pub guard: bool,
    /// Whether slots are kept for a multi-slot job until all of them are free.
    pub reserve: bool,
    /// The longest wait for an attempt without a predicted run time. After that, no slot beside the
    /// attempt is kept.
    pub reserve_wait_max: Millis,
}

/// Which side starts a decision in a full scheduling cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Each job in turn selects its best worker.
    JobFirst,
    /// Workers by (rank, id) select their best job, one each, until no job is placed.
    WorkerFirst,
}

/// Which tenant is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Tenants do not count: the order of jobs decides.
    FirstCome,
    /// Each pool alone: tenants below their minimum, then the others.
    QuotaFirst,
    /// Tenants without usage in the window, then the one furthest behind its share.
    Deficit,
    /// Tenants below their minimum. Then, of the tenants that are at most the slack ahead of their
    /// share, the one with the shortest job.
    FairQueue,
    /// Job types in the order of their names.
    TypeGroups,
}

/// Which job of the tenant goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Highest priority, then longest ready.
    PriorityAge,
    /// Highest sum of priority, age, rarity, on-demand and predicted run time.
    Aging,
    /// Highest class of priority, then shortest expected run time. The oldest job goes first once
    /// it has reached its tenant's starvation bound.
    Shortest,
    /// Highest sum of rules for the asking worker.
    Rules,
    /// As submitted.
    Proposal,
}

/// Which worker a job gets, of those that fit and have room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// The smallest id, or the best of a sample.
    FirstMatch(Option<Sampling>),
    /// The one that runs the fewest types.
    FewestTypes,
    /// The one with the most free slots. Ties rotate.
    MostFree,
    /// The fewest types, then the best sum of locality, headroom and load.
    Fit,
    /// The asking worker.
    Asking,
}

/// Scores a few random workers instead of taking the first that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The number of workers in a sample.
    pub sample_size: u32,
    /// The number of samples before any matching worker is taken.
    pub max_attempts: u32,
    /// Points for each step of rank.
    pub rank: Fixed,
    /// Points for the job's locality label.
    pub hint: Fixed,
    /// Points for each free slot.
    pub free: Fixed,
}

impl Sampling {
    /// The documented weights, −10 / 5 / 1, and one attempt.
    pub const fn new(sample_size: u32) -> Self {
        Self {
            sample_size,
            max_attempts: 1,
            rank: Fixed::whole(-10),
            hint: Fixed::whole(5),
            free: Fixed::ONE,
        }
    }
}

/// Preemption for tenants below their minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preemption {
    /// Whether preemption is enabled.
    pub enabled: bool,
    /// The time for which a job must have been ready.
    pub delay: Millis,
    /// The time for which a victim must have run.
    pub min_run: Millis,
    /// The limit of preemptions of one job.
    pub evictions_max: u32,
}

/// The numbers of an ageing score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aging {
    /// Points for each step of priority.
    pub priority: i64,
    /// Points for each second of age.
    pub age: i64,
    /// Points, divided by the number of free slots that could run the job.
    pub rarity: i64,
    /// Points for an interactive job.
    pub on_demand: i64,
    /// Further points for each second of its age …
    pub on_demand_age: i64,
    /// … up to this age, so that many interactive jobs cannot starve the rest.
    pub on_demand_age_max: Millis,
    /// The part of its predicted run time that is subtracted from a job's age.
    pub length: Fixed,
}

/// How tenants share, and how long a job of a tenant waits for shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fairness {
    /// How far a tenant may be behind its share before its jobs go first, in time of its share.
    /// Only a tenant whose next job is expected to take as long falls behind so far.
    pub slack: Millis,
    /// The part of a tenant's slots that its interactive jobs may take before its other jobs.
    pub interactive: Fixed,
    /// Whether a job goes first once it has reached the starvation bound.
    pub is_bounded: bool,
}

/// The time over which arrivals of rare work are counted.
pub const RARE_SPAN: Millis = Millis::from_secs(1_200);

/// A scoring rule: points for a job on a worker. Names are stored, so they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// The operator's order of workers.
    Rank,
    /// Free slots.
    Free,
    /// Locality label.
    Hint,
    /// Input paths that the worker has.
    MissingPaths,
    /// Input bytes that the worker has.
    MissingBytes,
    /// Dependents of the job.
    Dependents,
    /// Time since it was ready.
    Wait,
    /// Inputs not known yet.
    RescoreWait,
    /// Lower points for substitute-only jobs.
    Light,
    /// Keeps workers that can fetch free from cached evaluations.
    ReserveFetch,
    /// Predicted memory and CPU.
    ResourceFit,
    /// The worker is busy or short of memory.
    Saturation,
    /// Higher points where its inputs are.
    PreferLocal,
    /// The tenant's part of the running work.
    OrgShare,
    /// Network-bound jobs on fast networks.
    Network,
    /// Disk-bound jobs on fast disks.
    Disk,
    /// The submitter's priority.
    Priority,
    /// Time since it was ready, without a limit.
    Age,
    /// Few free slots could run it.
    Rarity,
    /// An interactive job.
    OnDemand,
    /// Predicted run time.
    Length,
    /// The worker runs few types.
    Specialist,
    /// The part of the worker that is free.
    Headroom,
    /// The worker's live load.
    Load,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 24] = [
        Self::Rank,
        Self::Free,
        Self::Hint,
        Self::MissingPaths,
        Self::MissingBytes,
        Self::Dependents,
        Self::Wait,
        Self::RescoreWait,
        Self::Light,
        Self::ReserveFetch,
        Self::ResourceFit,
        Self::Saturation,
        Self::PreferLocal,
        Self::OrgShare,
        Self::Network,
        Self::Disk,
        Self::Priority,
        Self::Age,
        Self::Rarity,
        Self::OnDemand,
        Self::Length,
        Self::Specialist,
        Self::Headroom,
        Self::Load,
    ];

    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rank => "rank",
            Self::Free => "free",
            Self::Hint => "hint",
            Self::MissingPaths => "missing-paths",
            Self::MissingBytes => "missing-bytes",
            Self::Dependents => "dependents",
            Self::Wait => "wait",
            Self::RescoreWait => "rescore-wait",
            Self::Light => "light",
            Self::ReserveFetch => "reserve-fetch",
            Self::ResourceFit => "resource-fit",
            Self::Saturation => "saturation",
            Self::PreferLocal => "prefer-local",
            Self::OrgShare => "org-share",
            Self::Network => "network",
            Self::Disk => "disk",
            Self::Priority => "priority",
            Self::Age => "age",
            Self::Rarity => "rarity",
            Self::OnDemand => "on-demand",
            Self::Length => "length",
            Self::Specialist => "specialist",
            Self::Headroom => "headroom",
            Self::Load => "load",
        }
    }

    /// The rule with the name `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }
}
