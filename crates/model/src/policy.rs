//! How to decide, as data.
//!
//! A policy answers four questions: who starts ([`Entry`]), whose turn it is ([`Turn`]), which job
//! of theirs goes first ([`Order`]) and where it goes ([`Seat`]). The rest are magnitudes.

use std::collections::BTreeMap;

use crate::{Fixed, Millis};

/// A named starting point for a [`Policy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Preset {
    /// Priority, then age; the first worker that matches.
    PriorityAge,
    /// The same for each pool apart, tenants below their minimum first.
    Cohort,
    /// A worker asks; the sum of seven rules.
    Simple,
    /// A worker asks; the sum of twelve rules.
    ResourceAware,
    /// A worker asks; the tenant that is furthest behind its share.
    FairShare,
    /// Priority, age, rarity and on-demand in one score; the most specialised worker.
    Aging,
    /// Groups by job type with their own limits; the worker with most room.
    Detected,
    /// The default: quota, share by measured slot time, shortest first with a bound, best fit.
    Balanced,
}

impl Preset {
    /// All of them.
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

    /// The preset called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }
}

/// How to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Policy {
    /// The preset it started from.
    pub preset: Preset,
    /// Who starts.
    pub entry: Entry,
    /// Whose turn it is.
    pub turn: Turn,
    /// Which of their jobs goes first.
    pub order: Order,
    /// Where it goes.
    pub seat: Seat,
    /// Of a hundred choices, how many go by priority; the others go by age alone.
    pub priority_percentage: u32,
    /// How long a job that found no worker is left alone; zero means not at all.
    pub failure_backoff: Millis,
    /// Whether a worker that finished a job is filled up, instead of given as many as it finished.
    pub proactive_fetch_to_capacity: bool,
    /// Whether a job that never needed a backoff counts as if its backoff ended when it was
    /// submitted, so that a worker that finished a job passes over it.
    pub proactive_fetch_literal: bool,
    /// Whether [`Turn::Deficit`] counts settled cost alone, as it was when the round began.
    /// Attempts and what the round itself grants count for nothing, as in the source of the preset.
    pub literal: bool,
    /// Taking slots back for tenants below their minimum.
    pub preemption: Preemption,
    /// For so long an eviction lowers its tenant's maximum by one slot.
    pub eviction_cooldown: Millis,
    /// The magnitudes of [`Order::Aging`].
    pub aging: Aging,
    /// The numbers of [`Turn::FairQueue`] and [`Order::Shortest`].
    pub fairness: Fairness,
    /// The opinions that count, each with its weight.
    pub rules: BTreeMap<Rule, Fixed>,
    /// Whether slots that can run rare work are kept for it while it is expected.
    pub guard: bool,
    /// Whether slots are kept for a wide job until all of them are free.
    pub reserve: bool,
    /// An attempt that has run for so long and nobody predicted it is not waited for any longer: no
    /// slot is kept beside it.
    pub reserve_wait_max: Millis,
}

/// Who starts a decision in a full round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Jobs in turn look for their best worker.
    JobFirst,
    /// Workers by (rank, id) look for their best job, one each, until nothing places.
    WorkerFirst,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Anybody's: the order of jobs decides.
    FirstCome,
    /// Each pool by itself: tenants below their minimum, then the others.
    QuotaFirst,
    /// Tenants with nothing done in the window, then the one furthest behind its share.
    Deficit,
    /// Tenants below their minimum. Then a tenant that is no further ahead of its share than the
    /// slack allows: of these, the one with the shortest job.
    FairQueue,
    /// Job types in the order of their names.
    TypeGroups,
}

/// Which job goes first, of those whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Highest priority, then longest ready.
    PriorityAge,
    /// Highest sum of priority, age, rarity, on-demand and predicted length.
    Aging,
    /// Highest class of priority, then shortest by expected length; but first the oldest job, once
    /// its tenant was served what the starvation bound says.
    Shortest,
    /// Highest sum of rules for the worker that asks.
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
    /// The one with the most free slots; ties rotate.
    MostFree,
    /// The fewest types, then the best sum of locality, headroom and load.
    Fit,
    /// The worker that asks.
    Asking,
}

/// Score a few workers drawn by chance instead of taking the first that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// How many are drawn.
    pub sample_size: u32,
    /// How often to draw before taking any that matches.
    pub max_attempts: u32,
    /// Points for each step of rank.
    pub rank: Fixed,
    /// Points for having the job's hint.
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

/// Taking slots back for tenants below their minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preemption {
    /// Whether it happens at all.
    pub enabled: bool,
    /// How long a job must have been ready first.
    pub delay: Millis,
    /// How long a victim must have run first.
    pub min_run: Millis,
    /// How often one job may be a victim.
    pub evictions_max: u32,
}

/// The magnitudes of an ageing score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aging {
    /// Points for each step of priority.
    pub priority: i64,
    /// Points for each second of age.
    pub age: i64,
    /// Points shared by the free slots that could run the job.
    pub rarity: i64,
    /// Points for a job that a person waits for.
    pub on_demand: i64,
    /// More points for each second that person waits …
    pub on_demand_age: i64,
    /// … up to this age, so that a flood of people cannot starve the rest.
    pub on_demand_age_max: Millis,
    /// A job ages as if it had become ready later by this much of its predicted length.
    pub length: Fixed,
}

/// How tenants share, and how long a job of a tenant waits for shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fairness {
    /// How far a tenant may fall behind its share before its jobs go first, in time of its share.
    /// Only a tenant whose next job is expected to take as long falls behind so far.
    pub slack: Millis,
    /// The part of a tenant's slots that its interactive jobs may take before its other jobs.
    pub interactive: Fixed,
    /// Whether a job goes first once its tenant was served what the starvation bound says.
    pub is_bounded: bool,
}

/// How often rare work comes is counted over this time.
pub const RARE_SPAN: Millis = Millis::from_secs(1_200);

/// An opinion about a job and a worker, in points. The names are permanent: they are stored.
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
    /// Jobs that wait for it.
    Dependents,
    /// Time since it was ready.
    Wait,
    /// Inputs not known yet.
    RescoreWait,
    /// Substitute-only jobs step back.
    Light,
    /// Workers that can fetch are kept from cached evaluations.
    ReserveFetch,
    /// Predicted memory and CPU.
    ResourceFit,
    /// The worker is busy or short of memory.
    Saturation,
    /// Better where its inputs are.
    PreferLocal,
    /// The tenant's part of the work in flight.
    OrgShare,
    /// Network-bound jobs on fast networks.
    Network,
    /// Disk-bound jobs on fast disks.
    Disk,
    /// The submitter's priority.
    Priority,
    /// Time since it was ready, without end.
    Age,
    /// Few free slots could run it.
    Rarity,
    /// A person waits.
    OnDemand,
    /// Predicted length.
    Length,
    /// The worker runs few types.
    Specialist,
    /// The part of the worker that is free.
    Headroom,
    /// The worker's live load.
    Load,
}

impl Rule {
    /// All of them.
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

    /// The rule called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }
}
