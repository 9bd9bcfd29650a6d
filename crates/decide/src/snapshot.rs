//! A world from a snapshot, and a snapshot from a world.

use std::collections::BTreeMap;

use model::job::Amounts;
use model::{
    Ask, Attempt, Event, Eviction, Heartbeat, Job, Name, Policy, Resource, Snapshot, Tenant,
    Timestamp, Worker,
};

use crate::table::{AttemptIx, JobIx, NameIx};
use crate::waiting::AskIx;
use crate::world::World;

impl World {
    /// The world that `snapshot` describes.
    pub fn from_snapshot(snapshot: &Snapshot) -> Self {
        let mut world = Self::new(snapshot.policy.clone(), snapshot.seed);
        world.now = snapshot.now;
        world.budget = snapshot.budget;
        for (pool, policy) in &snapshot.pools {
            world.set_pool_policy(pool, Some(policy.clone()));
        }
        world.cluster = snapshot.cluster.clone();
        let settings = snapshot.types.iter().cloned().map(Event::Type);
        let tenants = snapshot.tenants.iter().cloned().map(Event::Tenant);
        let resources = snapshot.resources.iter().cloned().map(Event::Resource);
        let evictions = snapshot.evictions.iter().cloned().map(Event::Evicted);
        let workers = snapshot
            .workers
            .iter()
            .map(|worker| Event::Joined(Box::new(Worker { slots_free: None, ..worker.clone() })));
        let attempts =
            snapshot.attempts.iter().map(|attempt| Event::Started(Box::new(attempt.clone())));
        // Free slots are judged beside the attempts, so they are told after them.
        let reports = snapshot.workers.iter().map(|worker| heartbeat(worker, snapshot.now));
        let jobs = snapshot.jobs.iter().map(|job| Event::Queued(Box::new(job.clone())));
        settings
            .chain(tenants)
            .chain(resources)
            .chain(evictions)
            .chain(workers)
            .chain(attempts)
            .chain(reports)
            .chain(jobs)
            .for_each(|event| world.apply(event));
        world.recall(snapshot);
        world
    }

    /// What came lately is as the snapshot says, where it does; the jobs in it were counted then.
    fn recall(&mut self, snapshot: &Snapshot) {
        self.usual = snapshot.usual;
        self.tenants.start_accounts(self.now);
        for told in &snapshot.types {
            let name = self.names.intern(&told.name);
            let settings = &mut self.kind(name).settings;
            settings.recent = told.recent.or(settings.recent);
        }
        self.count_recent();
        if self.policies.share() {
            self.advance(self.now);
            self.find_reaches();
            self.set_dues();
        }
    }

    /// This world, written down; everything sorted by id.
    pub fn snapshot(&self) -> Snapshot {
        let mut resources: Vec<Resource> = self.resources.values().cloned().collect();
        resources.sort_by(|one, two| one.name.cmp(&two.name));
        let mut types: Vec<_> = self.kinds.values().map(|kind| kind.settings.clone()).collect();
        types.sort_by(|one, two| one.name.cmp(&two.name));
        let mut tenants = self.settled_tenants();
        tenants.sort_by(|one, two| one.id.cmp(&two.id));
        let mut workers: Vec<_> =
            self.fleet.workers.iter().map(|(_, seated)| seated.told()).collect();
        workers.sort_by(|one, two| one.id.cmp(&two.id));
        let mut attempts: Vec<_> = self.attempts.iter().map(|(ix, _)| self.attempt(ix)).collect();
        attempts.sort_by(|one, two| one.job.cmp(&two.job));
        Snapshot {
            now: self.now,
            usual: self.usual,
            seed: self.chance.seed(),
            policy: self.policies.given.clone(),
            pools: self.given_to_pools(),
            budget: self.budget,
            tenants,
            resources,
            types,
            workers,
            jobs: self.jobs_with_inputs(),
            attempts,
            evictions: self.evictions.iter().flat_map(repeated).collect(),
            freed: None,
            cluster: self.cluster.clone(),
        }
    }

    fn given_to_pools(&self) -> BTreeMap<Name, Policy> {
        let given = self.policies.given_to_pools();
        given.map(|(pool, policy)| (self.names.name(pool).clone(), policy.clone())).collect()
    }

    /// The tenants, with what they were served by now on their accounts.
    fn settled_tenants(&self) -> Vec<Tenant> {
        let mut tenants = self.tenants.clone();
        if self.policies.share() {
            tenants.settle_accounts(self.now);
        }
        tenants.iter().map(|(_, sharer)| sharer.tenant.clone()).collect()
    }

    fn jobs_with_inputs(&self) -> Vec<Job> {
        let mut jobs: BTreeMap<JobIx, Job> =
            self.queue.jobs.iter().map(|(ix, _)| (ix, self.job(ix))).collect();
        for (_, seated) in self.fleet.workers.iter() {
            for (job, inputs) in seated.inputs.iter() {
                if let Some(job) = jobs.get_mut(&job) {
                    job.inputs.insert(seated.worker.id.clone(), inputs);
                }
            }
        }
        let mut jobs: Vec<Job> = jobs.into_values().collect();
        jobs.sort_by(|one, two| one.id.cmp(&two.id));
        jobs
    }

    /// A waiting job in words.
    pub(crate) fn job_with_inputs(&self, ix: JobIx) -> Job {
        let mut job = self.job(ix);
        for (_, seated) in self.fleet.workers.iter() {
            if let Some(inputs) = seated.inputs.get(ix) {
                job.inputs.insert(seated.worker.id.clone(), inputs);
            }
        }
        job
    }

    /// A waiting job in words, without its inputs.
    pub(crate) fn job(&self, ix: JobIx) -> Job {
        let waiting = &self.queue.jobs[ix];
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        let fit = &self.fleet.catalogue.fits[class.fit].key;
        let pool = fit.pool.filter(|_| waiting.has_own_pool);
        Job {
            id: waiting.id.clone(),
            tenant: self.tenants[waiting.tenant].tenant.id.clone(),
            kind: self.name_of(fit.kind),
            pool: self.name_of(pool),
            needs: (*fit.needs).clone(),
            slots: class.slots,
            amounts: self.amounts(&class.amounts),
            priority: waiting.standing.priority,
            on_demand: waiting.standing.on_demand,
            created: waiting.standing.created,
            ready: waiting.standing.ready,
            not_before: waiting.extra().not_before,
            backoff_until: waiting.extra().backoff_until,
            evictions: waiting.extra().evictions,
            estimate: waiting.standing.estimate,
            limit: waiting.extra().limit,
            last_worker: waiting.extra().last_worker.clone(),
            traits: waiting.traits,
            hint: self.name_of(waiting.extra().hint),
            resource: waiting.extra().ask.map(|ask| self.ask(ask)),
            cost: waiting.cost,
            dependents: waiting.extra().dependents,
            inputs: BTreeMap::new(),
            rescore_count: waiting.extra().rescore_count,
            promised: self.promised.get(&waiting.id).map(|ix| self.fleet.id(*ix).clone()),
            history: waiting.extra().history.as_deref().copied(),
        }
    }

    fn attempt(&self, ix: AttemptIx) -> Attempt {
        let running = &self.attempts[ix];
        Attempt {
            job: running.job.clone(),
            tenant: self.tenants[running.tenant].tenant.id.clone(),
            worker: self.fleet.id(running.worker).clone(),
            kind: self.name_of(running.kind),
            needs: (*running.needs).clone(),
            slots: running.slots,
            amounts: self.amounts(&running.amounts),
            priority: running.priority,
            ready: running.ready,
            started: running.started,
            cost: running.cost,
            estimate: running.estimate,
            on_demand: running.on_demand,
            is_contested: running.is_contested,
            limit: running.limit,
            evictions: running.evictions,
            traits: running.traits,
            holds: running.holds.map(|ask| self.ask(ask)),
            stopping_for: running.stopping_for.clone(),
        }
    }

    fn ask(&self, ask: AskIx) -> Ask {
        match ask {
            AskIx::Named(name) => Ask::Named(self.names.name(name).clone()),
            AskIx::Any => Ask::Any,
        }
    }

    fn name_of(&self, name: Option<NameIx>) -> Option<Name> {
        name.map(|name| self.names.name(name).clone())
    }

    fn amounts(&self, amounts: &[(NameIx, u64)]) -> Amounts {
        amounts.iter().map(|(name, amount)| (self.names.name(*name).clone(), *amount)).collect()
    }
}

fn repeated((eviction, count): (&Eviction, &u32)) -> impl Iterator<Item = Eviction> {
    (0..*count).map(|_| eviction.clone())
}

fn heartbeat(worker: &Worker, at: Timestamp) -> Event {
    Event::Heartbeat(Heartbeat {
        worker: worker.id.clone(),
        slots_free: worker.slots_free,
        healthy: worker.healthy,
        draining: worker.draining,
        hints: worker.hints.clone(),
        metrics: worker.metrics,
        at,
    })
}
