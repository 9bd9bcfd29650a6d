//! What a job waits for while workers are full: the thing by name, and who has it.

use model::{Check, JobId, Reason};

use crate::catalogue::ClassKey;
use crate::detail::{NAMED_MAX, listed, plural, whole};
use crate::explain::Audience;
use crate::seated::Seated;
use crate::table::{AttemptIx, NameIx, WorkerIx};
use crate::waiting::Waiting;
use crate::world::World;

/// So many workers are told of one by one.
const WORKERS_MAX: usize = 3;

/// What there is too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scarce {
    Slots,
    Amount(NameIx),
}

/// How much of it there is, over the workers that could run the job.
#[derive(Default)]
struct Sums {
    in_use: u64,
    total: u64,
}

impl World {
    /// Why none of the workers that the job may use has room.
    pub(crate) fn workers_full(&self, waiting: &Waiting, audience: &Audience) -> Check {
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        let workers = audience.wanted();
        let scarce = self.scarce(class, workers);
        let mut sums = Sums::default();
        for worker in workers {
            let (in_use, total) = self.use_of(scarce, &self.fleet.workers[*worker]);
            sums.in_use = sums.in_use.saturating_add(in_use);
            sums.total = sums.total.saturating_add(total);
        }
        let asked = asked_of(scarce, class);
        let detail = format!(
            "waiting for {}: {} of {} in use {}; it starts when {} free{}",
            self.thing(scarce, asked, &self.picked_by(waiting, audience)),
            sums.in_use,
            sums.total,
            self.users(scarce, workers),
            if asked == 1 { "one is".to_owned() } else { format!("{asked} are") },
            self.no_victim(waiting).unwrap_or_default()
        );
        let numbers = [
            ("in_use", whole(sums.in_use)),
            ("total", whole(sums.total)),
            ("asked", whole(asked)),
            ("workers", whole(workers.len())),
        ];
        let named = workers.iter().take(WORKERS_MAX);
        let jobs = named.clone().flat_map(|worker| self.jobs_on(scarce, *worker).0);
        Check {
            numbers: numbers.into(),
            jobs: jobs.collect(),
            workers: named.map(|worker| self.fleet.id(*worker).clone()).collect(),
            ..Check::new(Reason::WorkersFull, detail)
        }
    }

    /// The first amount that no worker has enough of; otherwise slots. Where workers lack different
    /// things, the one that most of them lack.
    fn scarce(&self, class: &ClassKey, workers: &[WorkerIx]) -> Scarce {
        let seated = || workers.iter().map(|ix| &self.fleet.workers[*ix]);
        let n_full = seated().filter(|seated| seated.slots_free() < class.slots).count();
        let mut amounts = class.amounts.clone();
        amounts.sort_by(|one, two| self.names.name(one.0).cmp(self.names.name(two.0)));
        let lacks = amounts.iter().map(|(name, asked)| {
            let n_lack = seated().filter(|seated| seated.amount_free(*name) < *asked).count();
            (n_lack, Scarce::Amount(*name))
        });
        // Of equals the first: what was asked for by name says more than a slot.
        let all = lacks.chain([(n_full, Scarce::Slots)]);
        let most =
            all.fold((0, Scarce::Slots), |most, one| if one.0 > most.0 { one } else { most });
        most.1
    }

    fn use_of(&self, scarce: Scarce, seated: &Seated) -> (u64, u64) {
        match scarce {
            Scarce::Slots => {
                let in_use = seated.slots_used + u64::from(seated.slots_foreign);
                (in_use, u64::from(seated.worker.slots))
            }
            Scarce::Amount(name) => {
                let own = seated.worker.amounts.get(self.names.name(name));
                let total = own.copied().unwrap_or(0);
                (total - seated.amount_free(name).min(total), total)
            }
        }
    }

    fn thing(&self, scarce: Scarce, asked: u64, required: &[String]) -> String {
        match scarce {
            Scarce::Amount(name) if asked == 1 => self.names.name(name).to_string(),
            Scarce::Amount(name) => format!("{asked} {} on one worker", self.names.name(name)),
            Scarce::Slots => {
                let slots = match asked {
                    1 => "a slot".to_owned(),
                    asked => format!("{asked} slots on one worker"),
                };
                if required.is_empty() {
                    slots
                } else {
                    format!("{slots} with {}", required.join(", "))
                }
            }
        }
    }

    /// What it is about the job that leaves fewer workers than there are; empty if nothing does.
    fn picked_by(&self, waiting: &Waiting, audience: &Audience) -> Vec<String> {
        let here = self.fleet.workers.iter().filter(|(_, seated)| !seated.is_gone);
        let is_picky = audience.ever.len() < here.count();
        if is_picky { self.required_by(waiting) } else { Vec::new() }
    }

    /// `on g1 by jobs 12 and 15`.
    fn users(&self, scarce: Scarce, workers: &[WorkerIx]) -> String {
        let some = workers.iter().take(WORKERS_MAX).map(|worker| {
            let (jobs, n_jobs) = self.jobs_on(scarce, *worker);
            let names: Vec<String> = jobs.iter().map(ToString::to_string).collect();
            let word = if n_jobs == 1 { "job" } else { "jobs" };
            let by_jobs = (n_jobs > 0).then(|| format!("by {word} {}", listed(&names, n_jobs)));
            let foreign = self.fleet.workers[*worker].slots_foreign;
            let is_foreign = foreign > 0 && scarce == Scarce::Slots;
            let foreign = || format!("by other work ({})", plural(foreign, "slot"));
            let users: Vec<String> = by_jobs.into_iter().chain(is_foreign.then(foreign)).collect();
            format!("on {} {}", self.fleet.id(*worker), users.join(" and ")).trim_end().to_owned()
        });
        let some: Vec<String> = some.collect();
        match workers.len().saturating_sub(some.len()) {
            0 => listed(&some, some.len()),
            n_more => format!("{} and on {}", some.join(", "), plural(n_more, "other worker")),
        }
    }

    /// Some jobs on the worker that use what is scarce, by number, and how many do.
    fn jobs_on(&self, scarce: Scarce, worker: WorkerIx) -> (Vec<JobId>, usize) {
        let attempts = self.fleet.workers[worker].attempts.iter();
        let uses = |ix: &&AttemptIx| match scarce {
            Scarce::Slots => true,
            Scarce::Amount(name) => {
                self.attempts[**ix].amounts.iter().any(|(own, n)| *own == name && *n > 0)
            }
        };
        let mut jobs: Vec<JobId> =
            attempts.filter(uses).map(|ix| self.attempts[*ix].job.clone()).collect();
        jobs.sort();
        let n_jobs = jobs.len();
        jobs.truncate(NAMED_MAX);
        (jobs, n_jobs)
    }

    /// Why nothing is stopped for a job whose tenant is below its minimum.
    fn no_victim(&self, waiting: &Waiting) -> Option<String> {
        let preemption = &self.policy.preemption;
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        let own = self.fleet.catalogue.fits[class.fit].key.pool;
        let sharer = &self.tenants[waiting.tenant];
        let pools = sharer.pools_below_min().filter(|pool| own.is_none_or(|own| own == *pool));
        let pool = pools.min_by_key(|pool| self.names.name(*pool))?;
        let has_waited = self.now.since(waiting.standing.ready) >= preemption.delay;
        if !preemption.enabled || !has_waited || self.stopping.contains_key(&waiting.id) {
            return None;
        }
        let is_less = |ix: &AttemptIx| {
            let running = &self.attempts[*ix];
            running.tenant != waiting.tenant
                && running.pool == pool
                && running.priority < waiting.standing.priority
        };
        let mut running = self.fleet.matching(class.fit);
        let has_less = running.any(|ix| self.fleet.workers[ix].attempts.iter().any(is_less));
        let (tenant, pool_name) = (&sharer.tenant.id, self.names.name(pool));
        let why = if has_less {
            "each less important job there is protected by its tenant's minimum, its age or its \
             evictions"
        } else {
            "no job of another tenant there is less important"
        };
        Some(format!(
            "; tenant {tenant} has {} of its minimum of {} slots in pool {pool_name}, but nothing \
             is stopped for it: {why}",
            sharer.slots(pool),
            sharer.quota(pool).0
        ))
    }
}

fn asked_of(scarce: Scarce, class: &ClassKey) -> u64 {
    match scarce {
        Scarce::Slots => u64::from(class.slots),
        Scarce::Amount(name) => {
            let own = class.amounts.iter().find(|(own, _)| *own == name);
            own.map_or(0, |(_, asked)| *asked)
        }
    }
}
