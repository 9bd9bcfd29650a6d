//! The production code: events go into a world, and what it decides is done.

use std::collections::{BTreeSet, VecDeque};

use decide::World;
use model::{
    Action, Ended, Event, Fixed, JobId, Millis, Policy, Tenant, TenantId, Timestamp, Worker,
    WorkerId,
};

use crate::engine::{Scheduler, Seat};
use crate::error::Error;
use crate::estimate::{Estimates, Oracle};
use crate::fleet::Fleet;
use crate::workload::Workload;

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
}

/// A world at work. Costs are slot-seconds: those believed while a job runs, the true ones after.
pub struct Preset<'a> {
    workload: &'a Workload,
    takes_all: bool,
    world: World,
    oracle: Oracle,
    /// The job of each rank: ranks are what jobs are called in there.
    by_rank: Vec<usize>,
    usage: Usage,
}

impl<'a> Preset<'a> {
    /// A world with the fleet and the tenants in it.
    pub fn new(
        workload: &'a Workload,
        fleet: &Fleet,
        policy: Policy,
        options: Options,
    ) -> Result<Self, Error> {
        if policy.preemption.enabled {
            let problem = "a replay stops nothing that runs; try a policy without preemption";
            return Err(Error::Unfit(problem.to_owned()));
        }
        let mut world = World::new(policy, options.seed);
        for (ix, sharer) in (0..).zip(&workload.tenants) {
            let weight = Fixed::whole(i64::from(sharer.weight));
            let id = TenantId::number(ix);
            world.apply(Event::Tenant(Tenant { weight, ..Tenant::new(id) }));
        }
        // Called by their places, which are in the order of their ids, all are found at once.
        for (ix, worker) in (0..).zip(&fleet.workers) {
            let worker = Worker { id: WorkerId::number(ix), ..worker.clone() };
            world.apply(Event::Joined(Box::new(worker)));
        }
        let n_ranks = workload.jobs.iter().map(|job| at(job.rank.into()) + 1).max().unwrap_or(0);
        let mut by_rank = vec![0; n_ranks];
        for (ix, job) in workload.jobs.iter().enumerate() {
            by_rank[at(job.rank.into())] = ix;
        }
        Ok(Self {
            workload,
            takes_all: fleet.takes_all,
            world,
            oracle: Oracle::new(workload, options.estimates, options.seed),
            by_rank,
            usage: Usage::new(workload.tenants.len(), options.window),
        })
    }
}

impl Scheduler for Preset<'_> {
    fn arrive(&mut self, job: usize, now: Timestamp) {
        let own = &self.workload.jobs[job];
        let fit = &self.workload.fits[own.fit];
        let (id, tenant) = (JobId::number(own.rank.into()), tenant_id(own.tenant));
        let estimate = self.oracle.estimate(own);
        let slots = i64::from(own.slots);
        let cost = estimate.map_or(Fixed::whole(slots), |estimate| {
            Fixed::thousandths(estimate.0.saturating_mul(slots))
        });
        let mut waiting = model::Job::new(id, tenant, now);
        waiting.kind.clone_from(&fit.kind);
        if !self.takes_all {
            waiting.needs.clone_from(&fit.needs);
        }
        waiting.slots = own.slots;
        waiting.priority = own.priority;
        waiting.on_demand = own.on_demand;
        waiting.estimate = estimate;
        waiting.cost = cost;
        // It has no inputs, so there is no word about them to wait for.
        waiting.rescore_count = ROUNDS_ENOUGH;
        self.world.apply(Event::Queued(Box::new(waiting)));
    }

    fn end(&mut self, job: usize, now: Timestamp) {
        let own = &self.workload.jobs[job];
        let (job, cost) = (JobId::number(own.rank.into()), Fixed::thousandths(own.area()));
        self.world.apply(Event::Ended(Ended { job, cost, completed: true, at: now }));
        self.oracle.learn(own);
        self.usage.add(now, own.tenant, cost);
    }

    fn pass(&mut self, now: Timestamp) -> Vec<Seat> {
        for tenant in self.usage.forget(now) {
            let (used, completed) = self.usage.by_tenant[tenant];
            let tenant = tenant_id(tenant);
            self.world.apply(Event::Usage { tenant, used, completed });
        }
        let actions = self.world.decide(now).into_iter();
        let seats = actions.filter_map(|action| match action {
            Action::Place(placement) => Some(Seat {
                job: self.by_rank[at(placement.job.as_number()?)],
                worker: at(placement.worker.as_number()?),
            }),
            // Whom it puts off, it puts off itself; and it was told to stop nobody.
            Action::Defer(_) | Action::Preempt(_) => None,
        });
        seats.collect()
    }

    fn wake_at(&self) -> Option<Timestamp> {
        self.world.wake_at()
    }
}

fn tenant_id(tenant: usize) -> TenantId {
    TenantId::number(u64::try_from(tenant).expect("a u64 holds a usize"))
}

fn at(number: u64) -> usize {
    usize::try_from(number).expect("it came from a place")
}

/// What tenants used lately.
struct Usage {
    window: Millis,
    ended: VecDeque<(Timestamp, usize, Fixed)>,
    by_tenant: Vec<(Fixed, u64)>,
    counted: Timestamp,
}

/// So often usage that is old enough is forgiven, as by a scheduler.
const FORGET_EVERY: Millis = Millis::from_secs(30);

impl Usage {
    fn new(n_tenants: usize, window: Millis) -> Self {
        let by_tenant = vec![(Fixed::ZERO, 0); n_tenants];
        Self { window, ended: VecDeque::new(), by_tenant, counted: Timestamp(0) }
    }

    fn add(&mut self, now: Timestamp, tenant: usize, cost: Fixed) {
        self.ended.push_back((now, tenant, cost));
        let (used, completed) = &mut self.by_tenant[tenant];
        *used += cost;
        *completed += 1;
    }

    /// The tenants whose usage is less than it was, now and then.
    fn forget(&mut self, now: Timestamp) -> BTreeSet<usize> {
        let mut changed = BTreeSet::new();
        if now.since(self.counted) < FORGET_EVERY {
            return changed;
        }
        self.counted = now;
        while let Some((ended, tenant, cost)) = self.ended.front().copied()
            && ended <= now - self.window
        {
            self.ended.pop_front();
            let (used, completed) = &mut self.by_tenant[tenant];
            *used -= cost;
            *completed -= 1;
            changed.insert(tenant);
        }
        changed
    }
}
