//! Events in: each keeps the world and its indexes up to date.

mod attempts;

use std::sync::Arc;

use model::job::Amounts;
use model::policy::RARE_SPAN;
use model::{
    Ask, Event, Fixed, Inputs, Job, JobId, JobType, Recent, Tenant, TenantId, Worker, WorkerId,
};

use crate::catalogue::{FitKey, PlainKey};
use crate::order::Standing;
use crate::register::Place;
use crate::table::{ClassIx, EntryIx, JobIx, NameIx, WorkerIx};
use crate::waiting::{AskIx, Extra, Waiting};
use crate::world::World;

impl World {
    /// Takes in one event. An event about something unknown changes nothing.
    pub fn apply(&mut self, event: Event) {
        self.n_events += 1;
        match event {
            Event::Policy(policy) => self.set_policy(*policy),
            Event::PoolPolicy { pool, policy } => {
                self.set_pool_policy(&pool, policy.map(|policy| *policy));
            }
            Event::Budget(budget) => self.budget = budget,
            Event::Tenant(tenant) => self.set_tenant(tenant),
            Event::Resource(resource) => self.declare_resource(resource),
            Event::Type(kind) => self.set_type(kind),
            Event::Cluster(cluster) => self.cluster = *cluster,
            Event::Usage { tenant, used, completed } => self.set_usage(&tenant, used, completed),
            Event::Evicted(eviction) => self.remember_eviction(eviction),
            Event::Joined(worker) => self.join(&worker),
            Event::Heartbeat(heartbeat) => {
                if let Some(ix) = self.fleet.find(&heartbeat.worker) {
                    self.fleet.heartbeat(ix, heartbeat, &mut self.names);
                }
            }
            Event::Left(worker) => self.leave(&worker),
            Event::Inputs { worker, job, inputs } => self.set_inputs(&worker, &job, inputs),
            Event::Unscored(job) => self.count_unscored(&job),
            Event::Queued(job) => {
                self.enqueue(&job);
            }
            Event::Withdrawn(job) => self.withdraw(&job),
            Event::Started(attempt) => self.start_reported(&attempt),
            Event::Ended(ended) => self.end(&ended),
            Event::Stopping { victim, preemptor } => self.stop(&victim, &preemptor),
            Event::Spared { victim, preemptor } => self.spare(&victim, &preemptor),
        }
    }

    fn set_usage(&mut self, tenant: &TenantId, used: Fixed, completed: u64) {
        let ix = self.tenants.find_or_default(tenant, &mut self.names);
        let tenant = Tenant { used, completed, ..self.tenants[ix].tenant.clone() };
        self.set_tenant(tenant);
    }

    fn set_tenant(&mut self, tenant: Tenant) {
        let known = self.tenants.find(&tenant.id);
        let is_changed = known.is_some_and(|ix| self.tenants[ix].tenant.quotas != tenant.quotas);
        let ix = self.tenants.set(tenant, &mut self.names);
        if is_changed {
            // A quota that is gone holds no job back any more.
            self.queue.crowd.review(ix);
        }
    }

    fn set_type(&mut self, settings: JobType) {
        let name = self.names.intern(&settings.name);
        let kind = self.kind(name);
        let moves = kind.settings.pool != settings.pool;
        let seen = kind.settings.seen.max(settings.seen);
        let told = settings.recent.filter(|_| kind.settings.recent.is_none());
        let (recent, fit) = (kind.settings.recent.or(told), kind.fit);
        let is_limited = settings.jobs_max.is_some() || settings.worker_max.is_some();
        kind.settings = JobType { seen, recent, ..settings };
        if let Some(told) = told {
            self.fleet.count_recent(fit, &told);
        }
        let apart = &mut self.fleet.catalogue.kinds_apart;
        let changed = if is_limited { apart.insert(name) } else { apart.remove(&name) };
        if changed {
            self.rebuild_berths(|fit| fit.kind == Some(name));
        }
        if moves {
            let jobs = self.queue.jobs.iter();
            let jobs = jobs.filter(|(_, waiting)| {
                !waiting.has_own_pool
                    && self.fleet.catalogue.fit_of(waiting.class).key.kind == Some(name)
            });
            let moved: Vec<Job> = jobs.map(|(ix, _)| self.job_with_inputs(ix)).collect();
            for job in moved {
                self.enqueue(&job);
            }
        }
    }

    fn join(&mut self, worker: &Worker) {
        let ix = self.fleet.join(worker, &mut self.names);
        self.charge_attempts(ix);
        let attempts = self.fleet.workers[ix].attempts.iter().map(|ix| &self.attempts[*ix]);
        let used: Vec<(NameIx, u64)> =
            attempts.flat_map(|running| running.amounts.iter().copied()).collect();
        self.fleet.workers[ix].take(0, &used, None);
    }

    /// What runs on a worker counts in the pool that the worker is in now.
    fn charge_attempts(&mut self, ix: WorkerIx) {
        let seated = &self.fleet.workers[ix];
        for attempt in &seated.attempts {
            let running = &mut self.attempts[*attempt];
            let before = std::mem::replace(&mut running.pool, seated.pool);
            let (tenant, slots) = (running.tenant, running.slots);
            self.tenants.change(tenant, |sharer| sharer.move_slots(before, seated.pool, slots));
        }
    }

    fn leave(&mut self, worker: &WorkerId) {
        let Some(ix) = self.fleet.find(worker) else { return };
        self.fleet.change(ix, |seated| seated.is_gone = true);
        self.forget_if_empty(ix);
    }

    fn forget_if_empty(&mut self, ix: WorkerIx) {
        let seated = &self.fleet.workers[ix];
        if seated.is_gone && seated.attempts.is_empty() {
            self.promised.retain(|_, worker| *worker != ix);
            let seated = self.fleet.forget(ix);
            self.queue.forget_inputs(&seated.inputs);
        }
    }

    /// One more round without word about the job's inputs.
    fn count_unscored(&mut self, job: &JobId) {
        let Some(ix) = self.register.waiting(job) else { return };
        let mut job = self.job_with_inputs(ix);
        job.rescore_count = job.rescore_count.saturating_add(1);
        self.enqueue(&job);
    }

    fn set_inputs(&mut self, worker: &WorkerId, job: &JobId, inputs: Inputs) {
        let (Some(worker), Some(job)) = (self.fleet.find(worker), self.register.waiting(job))
        else {
            return;
        };
        let before = self.fleet.workers[worker].inputs.set(job, inputs);
        self.queue.jobs[job].count_inputs(before, Some(inputs));
    }

    /// Takes in a waiting job, in place of one of the same id. Room that was made for it stays its
    /// own.
    fn enqueue(&mut self, job: &Job) -> JobIx {
        if self.register.waiting(&job.id).is_none() {
            self.count_arrival(job);
        }
        self.admit(job)
    }

    /// The same, but no more jobs like it are expected.
    pub(crate) fn admit(&mut self, job: &Job) -> JobIx {
        let told = job.promised.as_ref().and_then(|worker| self.fleet.find(worker));
        let promised = told.or_else(|| self.promised.get(&job.id).copied());
        let tenant = self.tenants.find_or_default(&job.tenant, &mut self.names);
        let class = self.class_of(job);
        let standing = Standing {
            priority: job.priority,
            on_demand: job.on_demand,
            created: job.created,
            ready: job.ready,
            estimate: job.estimate,
        };
        let entry = self.enter(&job.id);
        let extra = Extra {
            not_before: job.not_before,
            backoff_until: job.backoff_until,
            limit: job.limit,
            last_worker: job.last_worker.clone(),
            hint: job.hint.as_ref().map(|hint| self.names.intern(hint)),
            ask: job.resource.as_ref().map(|ask| self.intern_ask(ask)),
            evictions: job.evictions,
            dependents: job.dependents,
            rescore_count: job.rescore_count,
            history: job.history.map(Box::new),
        };
        let waiting = Waiting {
            cost: job.cost,
            traits: job.traits,
            has_own_pool: job.pool.is_some(),
            ..Waiting::new((job.id.clone(), entry), tenant, class, standing).with_extra(extra)
        };
        let ix = self.queue.push(waiting, &mut self.fleet.catalogue, &self.policies, self.now);
        self.register.set(entry, Place::Waiting(ix));
        self.tenants.change(tenant, |sharer| {
            sharer.n_queued += 1;
        });
        self.promised.extend(promised.map(|worker| (job.id.clone(), worker)));
        for (worker, inputs) in &job.inputs {
            self.set_inputs(worker, &job.id, *inputs);
        }
        ix
    }

    /// A job became ready: more like it are expected.
    fn count_arrival(&mut self, job: &Job) {
        if let Some(kind) = &job.kind {
            let kind = self.names.intern(kind);
            let kind = self.kind(kind);
            let recent = kind.settings.recent.get_or_insert_default();
            recent.add(job.ready, 1, RARE_SPAN);
            let came = Recent::one(job.ready, RARE_SPAN);
            let fit = kind.fit;
            self.fleet.count_recent(fit, &came);
        }
    }

    /// A new entry for a job, in place of one of the same id.
    fn enter(&mut self, job: &JobId) -> EntryIx {
        if let Some(entry) = self.register.add(job) {
            return entry;
        }
        self.forget(job);
        self.register.add(job).expect("it was forgotten")
    }

    /// Takes a job out of this world, wherever it is.
    fn forget(&mut self, job: &JobId) {
        match self.register.get(job) {
            Some(Place::Waiting(ix)) => drop(self.unqueue(ix)),
            Some(Place::Running(ix)) => drop(self.release(ix)),
            Some(Place::Nowhere) | None => {}
        }
    }

    fn class_of(&mut self, job: &Job) -> ClassIx {
        let kind = job.kind.as_ref().map(|kind| self.names.intern(kind));
        let settings = kind.map(|kind| &mut self.kind(kind).settings);
        let of_kind = settings.and_then(|settings| {
            settings.seen = settings.seen.max(Some(job.ready));
            settings.pool.clone()
        });
        let pool = job.pool.clone().or(of_kind);
        let pool = pool.map(|pool| self.names.intern(&pool));
        if job.needs.is_empty() && job.amounts.is_empty() {
            let key = PlainKey { pool, kind, slots: job.slots };
            if let Some(class) = self.fleet.catalogue.plain_class(&key) {
                return class;
            }
        }
        let amounts = self.intern_amounts(&job.amounts);
        let needs = if job.needs.is_empty() {
            Arc::clone(&self.no_needs)
        } else {
            // Alternatives in another order are the same alternatives.
            let mut needs = job.needs.clone();
            for values in needs.values_mut() {
                values.sort_unstable();
            }
            Arc::new(needs)
        };
        self.fleet.class(FitKey { pool, kind, needs }, job.slots, amounts)
    }

    fn intern_amounts(&mut self, amounts: &Amounts) -> Vec<(NameIx, u64)> {
        let amounts = amounts.iter().filter(|(_, amount)| **amount > 0);
        amounts.map(|(name, amount)| (self.names.intern(name), *amount)).collect()
    }

    fn intern_ask(&mut self, ask: &Ask) -> AskIx {
        match ask {
            Ask::Named(name) => AskIx::Named(self.names.intern(name)),
            Ask::Any => AskIx::Any,
        }
    }

    fn withdraw(&mut self, job: &JobId) {
        if let Some(ix) = self.register.waiting(job) {
            self.unqueue(ix);
        }
    }

    fn unqueue(&mut self, ix: JobIx) -> Waiting {
        let waiting = self.dequeue(ix);
        self.register.remove(waiting.entry);
        waiting
    }

    /// Takes a job out of the queue; where it is then is for the caller to say.
    pub(crate) fn dequeue(&mut self, ix: JobIx) -> Waiting {
        let waiting = self.queue.take(ix, &mut self.fleet.catalogue);
        self.tenants.change(waiting.tenant, |sharer| sharer.n_queued -= 1);
        if !self.promised.is_empty() {
            self.promised.remove(&waiting.id);
        }
        waiting
    }
}
