//! The production code: events go into a world, and what it decides is done.

use std::collections::BTreeMap;

use decide::World;
use model::worker::POOL_DEFAULT;
use model::{
    Action, Attempt, Budget, Ended, Event, Eviction, Fixed, Heartbeat, JobId, Metrics, Millis,
    Name, Policy, Quota, Tenant, TenantId, Timestamp, Worker, WorkerId,
};

use crate::engine::{Loss, Scheduler, Seat};
use crate::estimate::{Estimates, Oracle};
use crate::fleet::Fleet;
use crate::usage::Usage;
use crate::workload::{Sharer, Workload};

/// After so many rounds nobody waits for word about a job's inputs any longer.
const ROUNDS_ENOUGH: u32 = 1_000;

/// What a world leaves open.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Where predictions come from.
    pub estimates: Estimates,
    /// What draws come from.
    pub seed: u64,
    /// What tenants used longer ago than this is forgiven.
    pub window: Millis,
    /// The most slot-seconds of all tenants together within the window.
    pub budget: Option<Fixed>,
}

/// One of several schedulers: which, and of how many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) index: usize,
    pub(crate) of: usize,
}

impl Part {
    const ALL: Self = Self { index: 0, of: 1 };

    /// Whether a worker is its own: they are dealt in turn.
    pub(crate) const fn has(self, worker: usize) -> bool {
        worker % self.of == self.index
    }

    /// Its part of something that is dealt to all in turn.
    fn of(self, number: u32) -> u32 {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (index, of) = (count(self.index), count(self.of));
        number / of + u32::from(index < number % of)
    }
}

/// How the room on a worker of another is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    AsTaken,
    AsItIs,
}

/// A world at work. Costs are slot-seconds: those believed while a job runs, the true ones after.
pub struct Preset<'a> {
    workload: &'a Workload,
    fleet: &'a Fleet,
    world: World,
    oracle: Oracle<'a>,
    /// The job of each rank: ranks are what jobs are called in there.
    by_rank: Vec<usize>,
    started: Vec<Timestamp>,
    usage: Usage,
    budget: Option<Fixed>,
    has_budgets: bool,
    /// How often jobs were preempted.
    evictions: BTreeMap<usize, u32>,
    stops: Vec<usize>,
}

impl<'a> Preset<'a> {
    /// A world with the fleet and the tenants in it.
    pub fn new(workload: &'a Workload, fleet: &'a Fleet, policy: Policy, options: Options) -> Self {
        Self::of_part(workload, fleet, policy, options, Part::ALL)
    }

    /// A world with its part of the fleet and of tenants' quotas.
    pub(crate) fn of_part(
        workload: &'a Workload,
        fleet: &'a Fleet,
        policy: Policy,
        options: Options,
        part: Part,
    ) -> Self {
        let mut world = World::new(policy, options.seed);
        for (ix, sharer) in workload.tenants.iter().enumerate() {
            world.apply(Event::Tenant(tenant(ix, sharer, part)));
        }
        world.apply(Event::Budget(options.budget.map(|limit| Budget { limit, used: Fixed::ZERO })));
        let n_ranks = workload.jobs.iter().map(|job| at(job.rank.into()) + 1).max().unwrap_or(0);
        let mut by_rank = vec![0; n_ranks];
        for (ix, job) in workload.jobs.iter().enumerate() {
            by_rank[at(job.rank.into())] = ix;
        }
        let has_own = workload.tenants.iter().any(|tenant| tenant.budget.is_some());
        let mut preset = Self {
            workload,
            fleet,
            world,
            oracle: Oracle::new(workload, options.estimates, options.seed),
            by_rank,
            started: vec![Timestamp(0); workload.jobs.len()],
            usage: Usage::new(workload.tenants.len(), options.window),
            budget: options.budget,
            has_budgets: has_own || options.budget.is_some(),
            evictions: BTreeMap::new(),
            stops: Vec::new(),
        };
        for worker in 0..fleet.workers.len() {
            if part.has(worker) {
                preset.join(worker, Timestamp(0));
            } else {
                preset.join_elsewhere(worker);
            }
        }
        preset
    }

    /// A worker of another is there. No quota counts what runs on it: that is the other's to do.
    pub(crate) fn join_elsewhere(&mut self, worker: usize) {
        let (id, pool) = (worker_id(worker), Name::new(ELSEWHERE));
        let worker = Worker { id, pool, ..self.fleet.workers[worker].clone() };
        self.world.apply(Event::Joined(Box::new(worker)));
    }

    /// A worker of another is not to be had for now, or again as far as it has room.
    pub(crate) fn show_elsewhere(&mut self, worker: usize, shown: Shown) {
        self.world.apply(Event::Heartbeat(Heartbeat {
            worker: worker_id(worker),
            slots_free: match shown {
                Shown::AsTaken => Some(0),
                Shown::AsItIs => None,
            },
            healthy: true,
            draining: false,
            hints: Vec::new(),
            metrics: Metrics::default(),
            at: Timestamp(0),
        }));
    }

    fn id(&self, job: usize) -> JobId {
        JobId::number(self.workload.jobs[job].rank.into())
    }

    /// A job waits, with its age.
    pub(crate) fn queue(&mut self, job: usize) {
        let own = &self.workload.jobs[job];
        let fit = &self.workload.fits[own.fit];
        let estimate = self.oracle.estimate(own);
        let mut waiting = model::Job::new(self.id(job), tenant_id(own.tenant), own.arrival);
        waiting.kind.clone_from(&fit.kind);
        if !self.fleet.takes_all {
            waiting.needs.clone_from(&fit.needs);
        }
        waiting.slots = own.slots;
        waiting.priority = own.priority;
        waiting.on_demand = own.on_demand;
        waiting.estimate = estimate;
        waiting.limit = self.oracle.limit(own);
        waiting.cost = cost(own.slots, estimate);
        waiting.hint = own.label.map(|label| self.workload.labels[label].clone());
        waiting.evictions = self.evictions.get(&job).copied().unwrap_or(0);
        // There is no word to wait for: a label says all there is to know about its inputs.
        waiting.rescore_count = ROUNDS_ENOUGH;
        self.world.apply(Event::Queued(Box::new(waiting)));
    }

    /// A job's attempt is no more.
    pub(crate) fn stopped(&mut self, job: usize, loss: Loss, now: Timestamp) {
        self.stop_elsewhere(job, loss, now);
        if loss == Loss::Preempted {
            let tenant = tenant_id(self.workload.jobs[job].tenant);
            let pool = Name::new(POOL_DEFAULT);
            self.world.apply(Event::Evicted(Eviction { at: now, tenant, pool }));
        }
    }

    /// A job's attempt on the workers of another is no more.
    pub(crate) fn stop_elsewhere(&mut self, job: usize, loss: Loss, now: Timestamp) {
        self.take_back(job, now);
        if loss == Loss::Preempted {
            *self.evictions.entry(job).or_default() += 1;
        }
    }

    /// A job that this world placed is another's: it never ran here.
    pub(crate) fn take_back(&mut self, job: usize, now: Timestamp) {
        let (job, cost) = (self.id(job), Fixed::ZERO);
        let ended = Ended { job, cost, completed: false, at: now };
        self.world.apply(Event::Ended(ended));
    }

    /// A job runs on a worker of another: its tenant has that much less to ask for here.
    pub(crate) fn start_elsewhere(&mut self, job: usize, worker: usize, now: Timestamp) {
        let own = &self.workload.jobs[job];
        let estimate = self.oracle.estimate(own);
        let worker = worker_id(worker);
        let attempt = Attempt {
            slots: own.slots,
            cost: cost(own.slots, estimate),
            estimate,
            limit: self.oracle.limit(own),
            ..Attempt::new(self.id(job), tenant_id(own.tenant), worker, now)
        };
        self.world.apply(Event::Started(Box::new(attempt)));
    }

    /// A job that ran on the workers of another has ended.
    pub(crate) fn end_elsewhere(&mut self, job: usize, ran: Millis, now: Timestamp) {
        self.settle(job, ran, now);
    }

    fn settle(&mut self, job: usize, ran: Millis, now: Timestamp) {
        let own = &self.workload.jobs[job];
        let cost = cost(own.slots, Some(ran));
        let ended = Ended { job: self.id(job), cost, completed: true, at: now };
        self.world.apply(Event::Ended(ended));
        self.oracle.learn(own, ran);
        self.usage.add(now, own.tenant, cost);
    }

    /// How long a job has run.
    pub(crate) fn ran(&self, job: usize, now: Timestamp) -> Millis {
        now.since(self.started[job])
    }

    fn forgive(&mut self, now: Timestamp) {
        let changed = self.usage.forget(now);
        if let (Some(limit), false) = (self.budget, changed.is_empty()) {
            let used = self.usage.all();
            self.world.apply(Event::Budget(Some(Budget { limit, used })));
        }
        for tenant in changed {
            let (used, completed) = self.usage.of(tenant);
            let tenant = tenant_id(tenant);
            self.world.apply(Event::Usage { tenant, used, completed });
        }
    }
}

impl Scheduler for Preset<'_> {
    fn arrive(&mut self, job: usize, _: Timestamp) {
        self.queue(job);
    }

    fn end(&mut self, job: usize, now: Timestamp) {
        self.settle(job, self.ran(job, now), now);
    }

    fn lose(&mut self, job: usize, loss: Loss, now: Timestamp) {
        self.stopped(job, loss, now);
        self.queue(job);
    }

    fn leave(&mut self, worker: usize, _: Timestamp) {
        self.world.apply(Event::Left(worker_id(worker)));
    }

    /// Called by their places, which are in the order of their ids, all are found at once.
    fn join(&mut self, worker: usize, _: Timestamp) {
        let worker = Worker { id: worker_id(worker), ..self.fleet.workers[worker].clone() };
        self.world.apply(Event::Joined(Box::new(worker)));
    }

    fn keeps(&mut self, worker: usize, labels: &[usize], now: Timestamp) {
        let mut hints: Vec<Name> =
            labels.iter().map(|label| self.workload.labels[*label].clone()).collect();
        hints.sort_unstable();
        self.world.apply(Event::Heartbeat(Heartbeat {
            worker: worker_id(worker),
            slots_free: None,
            healthy: true,
            draining: false,
            hints,
            metrics: Metrics::default(),
            at: now,
        }));
    }

    fn pass(&mut self, now: Timestamp) -> Vec<Seat> {
        self.forgive(now);
        let mut seats = Vec::new();
        for action in self.world.decide(now) {
            match action {
                Action::Place(placement) => {
                    let (job, worker) = (placement.job.as_number(), placement.worker.as_number());
                    let (Some(job), Some(worker)) = (job, worker) else { continue };
                    let job = self.by_rank[at(job)];
                    self.started[job] = now;
                    seats.push(Seat { job, worker: at(worker) });
                }
                Action::Preempt(preempt) => {
                    let victim = preempt.victim.as_number();
                    self.stops.extend(victim.map(|victim| self.by_rank[at(victim)]));
                }
                // Whom it puts off, it puts off itself.
                Action::Defer(_) => {}
            }
        }
        seats
    }

    fn stops(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.stops)
    }

    fn wake_at(&self) -> Option<Timestamp> {
        let forgiven = self.usage.next().filter(|_| self.has_budgets);
        [self.world.wake_at(), forgiven].into_iter().flatten().min()
    }
}

/// The pool of others' workers.
const ELSEWHERE: &str = "elsewhere";

/// Slot-seconds; one for each slot if nobody knows for how long.
fn cost(slots: u32, length: Option<Millis>) -> Fixed {
    let slots = i64::from(slots);
    length.map_or(Fixed::whole(slots), |own| Fixed::thousandths(own.0.saturating_mul(slots)))
}

fn tenant(ix: usize, sharer: &Sharer, part: Part) -> Tenant {
    let quota = Quota {
        pool: Name::new(POOL_DEFAULT),
        min: part.of(sharer.quota.min),
        max: sharer.quota.max.map(|max| part.of(max)),
    };
    let has_quota = quota.min > 0 || quota.max.is_some();
    Tenant {
        weight: Fixed::whole(i64::from(sharer.weight)),
        budget: sharer.budget,
        quotas: has_quota.then_some(quota).into_iter().collect(),
        ..Tenant::new(tenant_id(ix))
    }
}

fn tenant_id(tenant: usize) -> TenantId {
    TenantId::number(u64::try_from(tenant).expect("a u64 holds a usize"))
}

fn worker_id(worker: usize) -> WorkerId {
    WorkerId::number(u64::try_from(worker).expect("a u64 holds a usize"))
}

fn at(number: u64) -> usize {
    usize::try_from(number).expect("it came from a place")
}
