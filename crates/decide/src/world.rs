//! Everything a decision may depend on, with the indexes that make it quick.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::job::Needs;
use model::policy::Policy;
use model::{
    Budget, Cluster, Eviction, Fixed, JobId, JobType, Millis, Name, Resource, Timestamp, Traits,
};

use crate::catalogue::{Class, FitKey};
use crate::chance::Chance;
use crate::dues::Dues;
use crate::fleet::Fleet;
use crate::index::Names;
use crate::policies::Policies;
use crate::queue::Queue;
use crate::register::Register;
use crate::reserve::Reservation;
use crate::table::{AttemptIx, ByName, EntryIx, FitIx, NameIx, Table, TenantIx, WorkerIx};
use crate::tenants::Tenants;
use crate::waiting::AskIx;

/// Jobs, workers, tenants, attempts, resources and history, kept up to date by events.
///
/// **Invariant:** the same events give the same world, in whatever order they could have happened,
/// and the same world gives the same actions on every machine.
#[derive(Clone, Debug)]
pub struct World {
    pub(crate) policies: Box<Policies>,
    /// The part that is decided on: a pool with a policy of its own, or all others.
    pub(crate) part: Option<NameIx>,
    /// What decides there.
    pub(crate) policy: Policy,
    pub(crate) chance: Chance,
    /// The latest moment this world was told.
    pub(crate) now: Timestamp,
    /// Counts decisions, to tell this round's placements from older attempts.
    pub(crate) round: u64,
    pub(crate) names: Names,
    /// Shared by all jobs that need nothing.
    pub(crate) no_needs: Arc<Needs>,
    pub(crate) tenants: Tenants,
    pub(crate) fleet: Fleet,
    pub(crate) queue: Queue,
    pub(crate) attempts: Table<AttemptIx, Running>,
    pub(crate) register: Register,
    pub(crate) budget: Option<Budget>,
    /// Cost of all attempts.
    pub(crate) in_flight: Fixed,
    /// How long jobs ran that ended lately, as a mean; `None` if none did.
    pub(crate) usual: Option<Millis>,
    /// What dues were last made from.
    pub(crate) dues: Dues,
    pub(crate) cluster: Cluster,
    pub(crate) kinds: ByName<Kind>,
    pub(crate) resources: BTreeMap<NameIx, Resource>,
    /// Free resources of each tenant, for jobs that ask for any.
    pub(crate) resources_free: BTreeMap<TenantIx, BTreeSet<Name>>,
    /// How often each happened: several can be at one moment.
    pub(crate) evictions: BTreeMap<Eviction, u32>,
    /// Attempts that were told to stop, by the job that needs their room.
    pub(crate) stopping: BTreeMap<JobId, BTreeSet<AttemptIx>>,
    /// Room that was made for a job and waits for it.
    pub(crate) promised: BTreeMap<JobId, WorkerIx>,
    /// Counts passes over the lines, to tell which are blocked in this one.
    pub(crate) pass: u64,
    /// Workers kept for wide jobs in this round.
    pub(crate) reservations: Vec<Reservation>,
    /// How many wide jobs were to have a worker kept for them in this round.
    pub(crate) n_tried: usize,
    /// A job that a worker was kept for went elsewhere: others may have that room now.
    pub(crate) is_unkept: bool,
    /// Whether slots were kept from some job in the last round.
    pub(crate) has_kept: bool,
    /// Counts events and placements.
    pub(crate) n_events: u64,
    /// Whether the last round left lines of a lane unread that could perhaps start.
    pub(crate) has_unread: bool,
}

/// A job type and how many of its jobs run.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) settings: JobType,
    /// The fit that stands for it.
    pub(crate) fit: FitIx,
    pub(crate) n_running: u32,
}

/// One try to run a job, now on a worker.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) job: JobId,
    pub(crate) entry: EntryIx,
    pub(crate) tenant: TenantIx,
    pub(crate) worker: WorkerIx,
    /// The pool that its worker is in, and that is charged.
    pub(crate) pool: NameIx,
    pub(crate) kind: Option<NameIx>,
    pub(crate) needs: Arc<Needs>,
    pub(crate) slots: u32,
    pub(crate) amounts: Vec<(NameIx, u64)>,
    pub(crate) priority: i32,
    pub(crate) ready: Timestamp,
    pub(crate) started: Timestamp,
    pub(crate) cost: Fixed,
    pub(crate) estimate: Option<Millis>,
    pub(crate) on_demand: bool,
    /// Whether another tenant competed for its slots when it was placed.
    pub(crate) is_contested: bool,
    pub(crate) limit: Option<Millis>,
    pub(crate) evictions: u32,
    pub(crate) traits: Traits,
    pub(crate) holds: Option<AskIx>,
    pub(crate) stopping_for: Option<JobId>,
    /// The round that placed it; zero if it was there before.
    pub(crate) placed_in: u64,
}

impl World {
    /// A world with nothing in it.
    pub fn new(policy: Policy, seed: u64) -> Self {
        let mut fleet = Fleet::new(seed);
        let policies = Box::new(Policies::new(policy));
        fleet.catalogue.are_kinds_apart = policies.go_by_types();
        Self {
            policy: policies.site.clone(),
            policies,
            part: None,
            chance: Chance::new(seed),
            now: Timestamp::default(),
            round: 0,
            names: Names::new(seed),
            no_needs: Arc::default(),
            tenants: Tenants::new(seed),
            fleet,
            queue: Queue::default(),
            attempts: Table::default(),
            register: Register::new(seed),
            budget: None,
            in_flight: Fixed::ZERO,
            usual: None,
            dues: Dues::default(),
            cluster: Cluster::default(),
            kinds: ByName::default(),
            resources: BTreeMap::new(),
            resources_free: BTreeMap::new(),
            evictions: BTreeMap::new(),
            stopping: BTreeMap::new(),
            promised: BTreeMap::new(),
            pass: 0,
            reservations: Vec::new(),
            n_tried: 0,
            is_unkept: false,
            has_kept: false,
            n_events: 0,
            has_unread: false,
        }
    }

    /// Whether slots are taken from attempts for jobs that have a right to them.
    pub fn may_preempt(&self) -> bool {
        self.policies.any_preempts()
    }

    /// How many jobs wait.
    pub fn n_queued(&self) -> usize {
        self.queue.jobs.len()
    }

    /// How many attempts run.
    pub fn n_running(&self) -> usize {
        self.attempts.len()
    }

    /// How many pairs of a worker and a job have known inputs, and how many bytes that takes.
    pub fn inputs_size(&self) -> (usize, usize) {
        let sizes = self.fleet.workers.iter().map(|(_, seated)| seated.inputs.size());
        sizes.fold((0, 0), |(count, bytes), size| (count + size.0, bytes + size.1))
    }

    /// What is left of the budget of all tenants together; `None` means that there is no limit.
    pub(crate) fn budget_left(&self) -> Option<Fixed> {
        self.budget.map(|budget| budget.limit - budget.used - self.in_flight)
    }

    /// Takes in a moment: jobs whose time has come stand in line, and workers in order.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        self.queue.advance(&mut self.fleet.catalogue, &self.policies, self.now);
        self.settle_fleet();
        self.forget_evictions();
        if self.queue.wants_reuse() {
            let jobs = &self.queue.jobs;
            self.fleet.forget_inputs(|job| jobs.get(job).is_none());
            self.queue.reuse();
        }
    }

    /// Berths are told apart in another way: all jobs stand where they belong again.
    pub(crate) fn rebuild_berths(&mut self, is_moved: impl Fn(&FitKey) -> bool) {
        let catalogue = &self.fleet.catalogue;
        let classes = catalogue.classes.iter();
        let moved = classes.filter(|(_, class)| is_moved(&catalogue.fits[class.key.fit].key));
        let audience = |class: &Class| catalogue.audiences.berths[class.berth].key.audience;
        let moved: Vec<_> = moved.map(|(ix, class)| (ix, audience(class))).collect();
        self.queue.move_berths(&moved, &mut self.fleet.catalogue);
    }

    /// Takes in which workers came and went.
    pub(crate) fn settle_fleet(&mut self) {
        let Some(moved) = self.fleet.settle(&self.policies, &self.names) else { return };
        self.queue.move_berths(&moved, &mut self.fleet.catalogue);
        self.count_recent();
    }

    /// Counts what came lately for those that could run it.
    pub(crate) fn count_recent(&mut self) {
        self.fleet.forget_recent();
        for kind in self.kinds.values() {
            if let Some(recent) = &kind.settings.recent {
                self.fleet.count_recent(kind.fit, recent);
            }
        }
    }

    pub(crate) fn remember_eviction(&mut self, eviction: Eviction) {
        let tenant = self.tenants.find_or_default(&eviction.tenant, &mut self.names);
        let pool = self.names.intern(&eviction.pool);
        self.tenants.change(tenant, |sharer| {
            *sharer.evictions.entry((pool, eviction.at)).or_default() += 1;
        });
        *self.evictions.entry(eviction).or_default() += 1;
    }

    /// Evictions older than every cooldown lower no maximum any more.
    fn forget_evictions(&mut self) {
        while let Some((eviction, _)) = self.evictions.first_key_value() {
            if self.now.since(eviction.at) < self.policies.cooldown_max() {
                break;
            }
            let Some((eviction, _)) = self.evictions.pop_first() else { break };
            let tenant = self.tenants.find(&eviction.tenant);
            let (Some(tenant), Some(pool)) = (tenant, self.names.find(&eviction.pool)) else {
                continue;
            };
            self.tenants.change(tenant, |sharer| {
                sharer.evictions.remove(&(pool, eviction.at));
            });
        }
    }

    /// The settings of a type and how many of it run; made on first sight.
    pub(crate) fn kind(&mut self, name: NameIx) -> &mut Kind {
        let (names, fleet) = (&self.names, &mut self.fleet);
        self.kinds.get_or_insert_with(name, || {
            let fit = fleet.watch_kind(name);
            Kind { settings: JobType::new(names.name(name).clone()), fit, n_running: 0 }
        })
    }
}
