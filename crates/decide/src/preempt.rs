//! Taking slots back for tenants below their minimum.
//!
//! Only when no compatible slot is free, only for jobs that have waited, and only from tenants
//! above their own minimum, in the same pool, from jobs of strictly lower priority. A victim keeps
//! its age; how often it may be one is limited.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included, Unbounded};

use model::{Action, Fixed, JobId, Preempt, Timestamp};

use crate::catalogue::Class;
use crate::order::OrderKey;
use crate::queue::Line;
use crate::table::{AttemptIx, JobIx, NameIx, TenantIx, WorkerIx};
use crate::turn::Scope;
use crate::waiting::Waiting;
use crate::world::{Running, World};

/// Attempts that were told to stop for one job.
type Victims = BTreeSet<AttemptIx>;

/// How dear a set of victims is; the smallest is taken: least important, fewest, latest started.
type Price<'a> = (i32, usize, Vec<(i32, Reverse<Timestamp>, &'a JobId)>);

impl World {
    /// Tells victims to stop for jobs of tenants below their minimum.
    pub(crate) fn preempt(&mut self, actions: &mut Vec<Action>) {
        let mut tried = BTreeSet::new();
        while let Some(job) = self.next_preemptor(&tried) {
            tried.insert(job);
            let preemptor = self.queue.jobs[job].id.clone();
            for victim in self.victims(job).unwrap_or_default() {
                let running = &self.attempts[victim];
                let (victim, worker) = (running.job.clone(), running.worker);
                actions.push(Action::Preempt(Preempt {
                    victim: victim.clone(),
                    worker: self.fleet.id(worker).clone(),
                    preemptor: preemptor.clone(),
                }));
                self.stop(&victim, &preemptor);
            }
        }
    }

    /// The job whose turn it is to make room for itself.
    fn next_preemptor(&self, tried: &BTreeSet<JobIx>) -> Option<JobIx> {
        let classes = self.queue.active.iter().map(|class| &self.fleet.catalogue.classes[*class]);
        let lines = classes.flat_map(|class| &class.lines).map(|line| &self.queue.lines[*line]);
        let candidates = lines.filter_map(|line| self.preemptor_of(line, tried));
        candidates.min_by_key(|job| {
            let waiting = &self.queue.jobs[*job];
            let line = waiting.line.expect("a preemptor stands in a line");
            let key = self.job_key(&self.queue.lines[line].key, &waiting.standing);
            (key, waiting.standing.ready, waiting.id.clone())
        })
    }

    /// The first job of the line that may make room for itself.
    fn preemptor_of(&self, line: &Line, tried: &BTreeSet<JobIx>) -> Option<JobIx> {
        let pools = self.pools_owed(line.key.tenant, &self.fleet.catalogue.classes[line.key.class]);
        if pools.is_empty()
            || !self.takes(Scope::default(), line.key.stage)
            || self.line_limit(&line.key).is_some()
            || self.promises_reach_jobs_max(line.key.tenant)
        {
            return None;
        }
        let latest = self.now - self.policy.preemption.delay;
        let left =
            self.cost_max(line.key.tenant).map(|max| max - self.promised_cost(line.key.tenant));
        let may = |job: &JobIx| {
            let waiting = &self.queue.jobs[*job];
            waiting.standing.ready <= latest
                && !tried.contains(job)
                && !self.stopping.contains_key(&waiting.id)
                && left.is_none_or(|left| waiting.cost <= left)
        };
        self.by_level(line).find(may)
    }

    /// The jobs of a line that could be old enough: the order within one key is by age, so where a
    /// key's oldest job is too young, so are the others, and the walk jumps to the next key.
    fn by_level<'a>(&self, line: &'a Line) -> impl Iterator<Item = JobIx> + use<'a> {
        let latest = self.now - self.policy.preemption.delay;
        let mut from = line.jobs.first_key_value().map(|(key, _)| key.clone());
        std::iter::from_fn(move || {
            let (key, job) = line.jobs.range(from.take()?..).next()?;
            let next_key = OrderKey {
                major: key.major.saturating_add(1),
                ready: Timestamp(i64::MIN),
                id: JobId::new(""),
            };
            let behind =
                if key.ready <= latest { Excluded(key.clone()) } else { Included(next_key) };
            from = line.jobs.range((behind, Unbounded)).next().map(|(key, _)| key.clone());
            Some(*job)
        })
    }

    /// Pools in which the tenant is below its minimum, promises included, and the class may run.
    fn pools_owed(&self, tenant: TenantIx, class: &Class) -> Vec<NameIx> {
        let own = self.fleet.catalogue.fits[class.key.fit].key.pool;
        let sharer = &self.tenants[tenant];
        let pools = sharer.pools_below_min().filter(|pool| own.is_none_or(|own| own == *pool));
        pools
            .filter(|pool| {
                let slots = sharer.slots(*pool) + self.promised_slots(tenant, *pool);
                slots < sharer.quota(*pool).0
                    && self
                        .slots_max(tenant, *pool)
                        .is_none_or(|max| slots + class.key.slots <= max)
            })
            .collect()
    }

    /// Waiting jobs of the tenant for which victims were told to stop, with the victims.
    fn promised_to(&self, tenant: TenantIx) -> impl Iterator<Item = (&Waiting, &Victims)> {
        self.stopping.iter().filter_map(move |(job, victims)| {
            let waiting = &self.queue.jobs[self.register.waiting(job)?];
            (waiting.tenant == tenant).then_some((waiting, victims))
        })
    }

    fn promised_slots(&self, tenant: TenantIx, pool: NameIx) -> u32 {
        let is_there = |victims: &Victims| victims.iter().any(|ix| self.attempts[*ix].pool == pool);
        let promised = self.promised_to(tenant).filter(|(_, victims)| is_there(victims));
        promised.map(|(waiting, _)| self.fleet.catalogue.classes[waiting.class].key.slots).sum()
    }

    fn promised_cost(&self, tenant: TenantIx) -> Fixed {
        self.promised_to(tenant).map(|(waiting, _)| waiting.cost).sum()
    }

    fn promises_reach_jobs_max(&self, tenant: TenantIx) -> bool {
        let sharer = &self.tenants[tenant];
        let promised = u32::try_from(self.promised_to(tenant).count()).unwrap_or(u32::MAX);
        sharer.tenant.jobs_max.is_some_and(|max| sharer.n_running.saturating_add(promised) >= max)
    }

    /// The cheapest victims that together make room for the job, all on one worker.
    fn victims(&self, job: JobIx) -> Option<Vec<AttemptIx>> {
        let waiting = &self.queue.jobs[job];
        let class = &self.fleet.catalogue.classes[waiting.class];
        let is_free =
            self.fleet.with_room(class).any(|ix| self.worker_allows(ix, class, waiting.tenant));
        if is_free {
            return None;
        }
        let pools = self.pools_owed(waiting.tenant, class);
        let workers = self.fleet.matching(class.key.fit).filter(|ix| {
            let seated = &self.fleet.workers[*ix];
            let kind = self.fleet.catalogue.fits[class.key.fit].key.kind;
            seated.is_serving() && pools.contains(&seated.pool) && self.kind_allows(*ix, kind)
        });
        let sets = workers.filter_map(|ix| self.victims_on(ix, waiting, class));
        sets.min_by(|one, two| self.price(one).cmp(&self.price(two)))
    }

    fn price(&self, victims: &[AttemptIx]) -> Price<'_> {
        let each = victims.iter().map(|ix| {
            let running = &self.attempts[*ix];
            (running.priority, Reverse(running.started), &running.job)
        });
        let each: Vec<_> = each.collect();
        let dearest = each.iter().map(|(priority, ..)| *priority).max().unwrap_or(i32::MIN);
        (dearest, victims.len(), each)
    }

    /// Victims on one worker, cheapest first, until there is room.
    fn victims_on(
        &self,
        worker: WorkerIx,
        waiting: &Waiting,
        class: &Class,
    ) -> Option<Vec<AttemptIx>> {
        let seated = &self.fleet.workers[worker];
        let mut evictable: Vec<AttemptIx> = seated.attempts.clone();
        evictable.retain(|ix| self.is_evictable(&self.attempts[*ix], waiting));
        evictable.sort_by_key(|ix| {
            let running = &self.attempts[*ix];
            (running.priority, Reverse(running.started), running.job.clone())
        });
        // What is free beside attempts that stop for others is theirs.
        let is_shared = seated.attempts.iter().any(|ix| self.attempts[*ix].stopping_for.is_some());
        let mut slots = if is_shared { 0 } else { seated.slots_free() };
        let amount = |name: NameIx| if is_shared { 0 } else { seated.amount_free(name) };
        let mut amounts: Vec<(NameIx, u64, u64)> =
            class.key.amounts.iter().map(|(name, need)| (*name, amount(*name), *need)).collect();
        let mut taken: BTreeMap<TenantIx, u32> = BTreeMap::new();
        let mut victims = Vec::new();
        for ix in evictable {
            let running = &self.attempts[ix];
            let lost = taken.entry(running.tenant).or_default();
            if !self.stays_at_min(running, *lost) {
                continue;
            }
            *lost += running.slots;
            slots += running.slots;
            for (name, free, _) in &mut amounts {
                let own = running.amounts.iter().find(|(own, _)| own == name);
                *free += own.map_or(0, |(_, amount)| *amount);
            }
            victims.push(ix);
            if slots >= class.key.slots && amounts.iter().all(|(_, free, need)| free >= need) {
                return Some(victims);
            }
        }
        None
    }

    fn is_evictable(&self, running: &Running, waiting: &Waiting) -> bool {
        let preemption = &self.policy.preemption;
        running.tenant != waiting.tenant
            && running.priority < waiting.standing.priority
            && running.placed_in != self.round
            && running.stopping_for.is_none()
            && running.evictions < preemption.evictions_max
            && self.now.since(running.started) >= preemption.min_run
    }

    /// Whether the victim's tenant keeps its minimum, having lost `lost` slots already.
    fn stays_at_min(&self, running: &Running, lost: u32) -> bool {
        let sharer = &self.tenants[running.tenant];
        let stopping = self.attempts_stopping(running.tenant, running.pool);
        let left = sharer.slots(running.pool).saturating_sub(stopping).saturating_sub(lost);
        left >= running.slots.saturating_add(sharer.quota(running.pool).0)
    }

    fn attempts_stopping(&self, tenant: TenantIx, pool: NameIx) -> u32 {
        let stopping = self.stopping.values().flatten().map(|ix| &self.attempts[*ix]);
        stopping.filter(|own| own.tenant == tenant && own.pool == pool).map(|own| own.slots).sum()
    }
}
