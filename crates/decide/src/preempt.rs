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
use crate::queue::{Line, LineKey};
use crate::table::{AttemptIx, JobIx, LineIx, NameIx, TenantIx, WorkerIx};
use crate::turn::Scope;
use crate::waiting::Waiting;
use crate::world::{Running, World};

/// Attempts that were told to stop for one job.
type Victims = BTreeSet<AttemptIx>;

/// The highest priority, by line, that found no victims.
type Failed = BTreeMap<LineIx, i32>;

/// How dear a set of victims is; the smallest is taken: least important, fewest, latest started.
type Price<'a> = (i32, usize, Vec<(i32, Reverse<Timestamp>, &'a JobId)>);

impl World {
    /// Tells victims to stop for jobs of tenants below their minimum.
    pub(crate) fn preempt(&mut self, actions: &mut Vec<Action>) {
        let mut failed = BTreeMap::new();
        while let Some((line, job)) = self.next_preemptor(&failed) {
            let waiting = &self.queue.jobs[job];
            let (preemptor, priority) = (waiting.id.clone(), waiting.standing.priority);
            let Some(victims) = self.victims(job) else {
                failed.insert(line, priority);
                continue;
            };
            for victim in victims {
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

    /// The job whose turn it is to make room for itself, and its line.
    fn next_preemptor(&self, failed: &Failed) -> Option<(LineIx, JobIx)> {
        let fits = &self.fleet.catalogue.fits;
        let classes = self.fleet.catalogue.classes.iter().map(|(_, class)| class);
        let classes = classes.filter(|class| self.is_in_part(fits[class.key.fit].key.pool));
        let lines = classes.flat_map(|class| self.queue.lines_of(class));
        let candidates = lines.filter_map(|line| Some((line, self.preemptor_of(line, failed)?)));
        candidates.min_by_key(|(line, job)| {
            let waiting = &self.queue.jobs[*job];
            let lane = *self.queue.lines[*line].lane_key();
            (self.yardstick(&lane).key(waiting.major), waiting.standing.ready, waiting.id.clone())
        })
    }

    /// The first job of the line that may make room for itself. Where one found no victims, none
    /// of the same priority or less will.
    fn preemptor_of(&self, ix: LineIx, failed: &Failed) -> Option<JobIx> {
        let line = &self.queue.lines[ix];
        let class = &self.fleet.catalogue.classes[line.key.class];
        if self.pools_owed(line.key.tenant, class).is_empty()
            || !self.takes(Scope::default(), line.key.stage)
            || self.line_limit(&line.key).is_some()
            || self.promises_reach_limit(&line.key)
        {
            return None;
        }
        let latest = self.now - self.policy.preemption.delay;
        let left = self.cost_left_beside_promises(line.key.tenant);
        let above = failed.get(&ix);
        let may = |job: &JobIx| {
            let waiting = &self.queue.jobs[*job];
            waiting.standing.ready <= latest
                && above.is_none_or(|priority| waiting.standing.priority > *priority)
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
                let wanted = slots + u64::from(class.key.slots);
                slots < u64::from(sharer.quota(*pool).0)
                    && self.slots_max(tenant, *pool).is_none_or(|max| wanted <= u64::from(max))
            })
            .collect()
    }

    /// Waiting jobs for which victims were told to stop, with the victims.
    fn promised(&self) -> impl Iterator<Item = (&Waiting, &Victims)> {
        let stopping = self.stopping.iter();
        stopping.filter_map(|(job, victims)| {
            Some((&self.queue.jobs[self.register.waiting(job)?], victims))
        })
    }

    fn promised_slots(&self, tenant: TenantIx, pool: NameIx) -> u64 {
        let is_there = |victims: &Victims| victims.iter().any(|ix| self.attempts[*ix].pool == pool);
        let promised = self
            .promised()
            .filter(|(waiting, victims)| waiting.tenant == tenant && is_there(victims));
        promised
            .map(|(waiting, _)| u64::from(self.fleet.catalogue.classes[waiting.class].key.slots))
            .sum()
    }

    /// What a job of the tenant may cost beside those that room is being made for.
    fn cost_left_beside_promises(&self, tenant: TenantIx) -> Option<Fixed> {
        let all: Fixed = self.promised().map(|(waiting, _)| waiting.cost).sum();
        let own = self.promised().filter(|(waiting, _)| waiting.tenant == tenant);
        let own: Fixed = own.map(|(waiting, _)| waiting.cost).sum();
        let tenants = self.tenants[tenant].budget_left().map(|left| left - own);
        let global = self.budget_left().map(|left| left - all);
        tenants.into_iter().chain(global).min()
    }

    /// Whether jobs that room is being made for use up a limit of this line.
    fn promises_reach_limit(&self, key: &LineKey) -> bool {
        let count = |jobs: usize| u32::try_from(jobs).unwrap_or(u32::MAX);
        let sharer = &self.tenants[key.tenant];
        let own = self.promised().filter(|(waiting, _)| waiting.tenant == key.tenant).count();
        let jobs = sharer.n_running.saturating_add(count(own));
        let kind = self.fleet.catalogue.fit_of(key.class).key.kind;
        let alike = self
            .promised()
            .filter(|(waiting, _)| self.fleet.catalogue.fit_of(waiting.class).key.kind == kind);
        let settings = kind.and_then(|kind| self.kinds.get(kind));
        let kind_is_full = settings.is_some_and(|kind| {
            let n_jobs = kind.n_running.saturating_add(count(alike.count()));
            kind.settings.jobs_max.is_some_and(|max| n_jobs >= max)
        });
        let is_asked_for =
            key.ask.is_some() && self.promised().any(|(waiting, _)| waiting.extra().ask == key.ask);
        sharer.tenant.jobs_max.is_some_and(|max| jobs >= max) || kind_is_full || is_asked_for
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
        let kind = self.fleet.catalogue.fits[class.key.fit].key.kind;
        let workers = self.fleet.matching(class.key.fit).filter(|ix| {
            let seated = &self.fleet.workers[*ix];
            seated.is_serving()
                && seated.could_hold(&class.key)
                && pools.contains(&seated.pool)
                && self.kind_allows(*ix, kind)
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

    /// Victims on one worker, cheapest first, until there is room; without those that turn out
    /// not to be needed.
    fn victims_on(
        &self,
        worker: WorkerIx,
        waiting: &Waiting,
        class: &Class,
    ) -> Option<Vec<AttemptIx>> {
        let mut evictable: Vec<AttemptIx> = self.fleet.workers[worker].attempts.clone();
        evictable.retain(|ix| self.is_evictable(&self.attempts[*ix], waiting));
        evictable.sort_by_key(|ix| {
            let running = &self.attempts[*ix];
            (running.priority, Reverse(running.started), running.job.clone())
        });
        let mut lost: BTreeMap<TenantIx, u64> = BTreeMap::new();
        let mut victims = Vec::new();
        for ix in evictable {
            let running = &self.attempts[ix];
            let lost = lost.entry(running.tenant).or_default();
            if self.stays_at_min(running, *lost) {
                *lost += u64::from(running.slots);
                victims.push(ix);
            }
            if self.makes_room(worker, &victims, class) {
                break;
            }
        }
        if victims.is_empty() || !self.makes_room(worker, &victims, class) {
            return None;
        }
        // The dearest first: whoever is not needed is spared.
        for at in (0..victims.len()).rev() {
            let spared = victims.remove(at);
            if !self.makes_room(worker, &victims, class) {
                victims.insert(at, spared);
            }
        }
        Some(victims)
    }

    /// Whether the worker has room for the class once these have stopped. What is free beside
    /// attempts that stop for others is theirs.
    fn makes_room(&self, worker: WorkerIx, victims: &[AttemptIx], class: &Class) -> bool {
        let seated = &self.fleet.workers[worker];
        let is_shared = seated.attempts.iter().any(|ix| self.attempts[*ix].stopping_for.is_some());
        let room = if is_shared { seated.room().min(0) } else { seated.room() };
        let victims = || victims.iter().map(|ix| &self.attempts[*ix]);
        let slots = room + victims().map(|running| i64::from(running.slots)).sum::<i64>();
        slots >= i64::from(class.key.slots)
            && class.key.amounts.iter().all(|(name, need)| {
                let free = if is_shared { 0 } else { seated.amount_free(*name) };
                let own = |running: &Running| {
                    running.amounts.iter().find(|(own, _)| own == name).map_or(0, |(_, own)| *own)
                };
                victims().map(own).fold(free, u64::saturating_add) >= *need
            })
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
    fn stays_at_min(&self, running: &Running, lost: u64) -> bool {
        let sharer = &self.tenants[running.tenant];
        let stopping = self.stopping.values().flatten().map(|ix| &self.attempts[*ix]);
        let stopping =
            stopping.filter(|own| own.tenant == running.tenant && own.pool == running.pool);
        let stopping: u64 = stopping.map(|own| u64::from(own.slots)).sum();
        let left = sharer.slots(running.pool).saturating_sub(stopping).saturating_sub(lost);
        left >= u64::from(running.slots) + u64::from(sharer.quota(running.pool).0)
    }
}
