//! A history of a fleet that tenants share. What each was served is counted from events alone.

mod bound;

use std::collections::{BTreeMap, BTreeSet};

use bound::Interval;
use decide::World;
use model::tenant::Trust;
use model::{
    Action, Ended, Event, Fixed, Job, JobId, Millis, Name, Placement, Preset, Quota, Tenant,
    TenantId, Timestamp, Worker, WorkerId,
};

/// What is wrong with a core that breaks the bound, as changes of a world that was written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// None: the world is only written down and read again.
    Unchanged,
    /// What tenants are served is not booked.
    Unsettled,
    /// A tenant that comes back keeps all that it was owed.
    NoFloor,
    /// Lengths are believed whatever they were worth, and the slack has no limit.
    TrustsForEver,
}

/// What is said of a length before the job runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said {
    Nothing,
    Millisecond,
    TenDays,
    Truth,
    Other(Millis),
}

/// One thing that happens. Numbers choose what it happens to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Submit {
        tenant: usize,
        count: usize,
        length: Millis,
        said: Said,
        is_special: bool,
        /// The pool that the jobs name, if they name one.
        pool: Option<usize>,
    },
    Interactive {
        tenant: usize,
        length: Millis,
    },
    /// All jobs of the tenant that wait are cancelled, or every second one.
    Cancel {
        tenant: usize,
        all: bool,
    },
    Weigh {
        tenant: usize,
        weight: i64,
    },
    /// The tenant has this quota in the pool, or none if it says nothing.
    Quota {
        tenant: usize,
        pool: usize,
        min: u32,
        /// So many slots above the minimum.
        max: Option<u32>,
    },
    SetActive {
        tenant: usize,
        active: bool,
    },
    /// An attempt fails, and its job waits again.
    Fail(usize),
    Join {
        worker: usize,
        slots: u32,
        is_special: bool,
        pool: usize,
    },
    Leave(usize),
    Wait(Millis),
}

/// A job that has not ended.
#[derive(Clone, Copy, Debug)]
struct Work {
    tenant: usize,
    length: Millis,
    said: Said,
    is_special: bool,
    pool: Option<usize>,
    on_demand: bool,
    ready: Timestamp,
}

/// A worker.
#[derive(Clone, Copy, Debug)]
struct Station {
    slots: u32,
    /// Whether it can run special jobs.
    is_special: bool,
    pool: usize,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    work: Work,
    worker: usize,
    started: Timestamp,
}

#[derive(Clone, Debug)]
struct Sharer {
    weight: i64,
    active: bool,
    /// Least and most slots by pool.
    quotas: BTreeMap<usize, (u32, Option<u32>)>,
    /// Slot-milliseconds of attempts that ended.
    served: i64,
    waiting: BTreeMap<JobId, Work>,
    /// What a mutant remembers.
    owed: Fixed,
    competed: bool,
}

pub(crate) struct History {
    world: World,
    now: Timestamp,
    slack: Millis,
    mutant: Option<Mutant>,
    n_jobs: u64,
    n_decisions: i128,
    sharers: Vec<Sharer>,
    running: BTreeMap<JobId, Run>,
    workers: BTreeMap<usize, Station>,
    intervals: BTreeMap<(usize, usize), Interval>,
    /// The longest that any attempt ran.
    longest: i64,
    /// The most slots that there were.
    slots_max: i128,
}

impl History {
    /// Tenants 0, 1, … of these weights, without jobs or workers.
    pub(crate) fn new(weights: &[i64], slack: Millis, mutant: Option<Mutant>) -> Self {
        let mut policy = Preset::Balanced.policy();
        policy.fairness.slack = slack;
        if mutant == Some(Mutant::TrustsForEver) {
            policy.fairness.slack = Millis::from_secs(864_000);
        }
        let mut history = Self {
            world: World::new(policy, 0),
            now: Timestamp(1_000_000),
            slack,
            mutant,
            n_jobs: 0,
            n_decisions: 0,
            sharers: Vec::new(),
            running: BTreeMap::new(),
            workers: BTreeMap::new(),
            intervals: BTreeMap::new(),
            longest: 0,
            slots_max: 0,
        };
        for (at, weight) in weights.iter().enumerate() {
            history.sharers.push(Sharer {
                weight: *weight,
                active: true,
                quotas: BTreeMap::new(),
                served: 0,
                waiting: BTreeMap::new(),
                owed: Fixed::ZERO,
                competed: false,
            });
            history.tell_tenant(at);
        }
        history
    }

    /// What happens, and all that follows until then. The error says what broke the bound.
    pub(crate) fn step(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Submit { tenant, count, length, said, is_special, pool } => {
                let (on_demand, ready) = (false, self.now);
                let tenant = tenant % self.sharers.len();
                for _ in 0..count {
                    self.submit(Work { tenant, length, said, is_special, pool, on_demand, ready });
                }
            }
            Step::Interactive { tenant, length } => {
                let (tenant, ready) = (tenant % self.sharers.len(), self.now);
                let (said, is_special, on_demand) = (Said::Nothing, false, true);
                let pool = None;
                self.submit(Work { tenant, length, said, is_special, pool, on_demand, ready });
            }
            Step::Cancel { tenant, all } => self.cancel(tenant % self.sharers.len(), all),
            Step::Weigh { tenant, weight } => {
                let tenant = tenant % self.sharers.len();
                self.sharers[tenant].weight = weight;
                self.forget_intervals(tenant);
                self.tell_tenant(tenant);
            }
            Step::Quota { tenant, pool, min, max } => {
                self.set_quota(
                    tenant % self.sharers.len(),
                    pool,
                    (min, max.map(|above| min + above)),
                );
            }
            Step::SetActive { tenant, active } => {
                let tenant = tenant % self.sharers.len();
                self.sharers[tenant].active = active;
                self.tell_tenant(tenant);
            }
            Step::Fail(at) => {
                let job = self.running.keys().nth(at % self.running.len().max(1)).cloned();
                if let Some(job) = job {
                    self.end(&job, false);
                }
            }
            Step::Join { worker, slots, is_special, pool } => {
                self.join(worker, Station { slots, is_special, pool });
            }
            Step::Leave(at) => self.leave(at),
            Step::Wait(length) => return self.wait(length),
        }
        self.decide()
    }

    /// Slot-milliseconds that the tenant was served.
    pub(crate) fn served(&self, tenant: usize) -> i64 {
        let running = self.running.values().filter(|run| run.work.tenant == tenant);
        let running: i64 = running.map(|run| self.now.since(run.started).0).sum();
        self.sharers[tenant].served + running
    }

    /// How many of its jobs wait and run.
    pub(crate) fn count(&self, tenant: usize) -> (usize, usize) {
        let running = self.running.values().filter(|run| run.work.tenant == tenant);
        (self.sharers[tenant].waiting.len(), running.count())
    }

    fn tell_tenant(&mut self, at: usize) {
        let Sharer { weight, active, quotas, .. } = &self.sharers[at];
        let quotas = quotas.iter().map(|(pool, (min, max))| Quota {
            pool: pool_name(*pool),
            min: *min,
            max: *max,
        });
        self.world.apply(Event::Tenant(Tenant {
            weight: Fixed::whole(*weight),
            active: *active,
            quotas: quotas.collect(),
            ..Tenant::new(TenantId::number(id(at)))
        }));
    }

    fn set_quota(&mut self, at: usize, pool: usize, quota: (u32, Option<u32>)) {
        if quota == (0, None) {
            self.sharers[at].quotas.remove(&pool);
        } else {
            self.sharers[at].quotas.insert(pool, quota);
        }
        self.forget_intervals(at);
        self.tell_tenant(at);
    }

    fn submit(&mut self, work: Work) {
        self.n_jobs += 1;
        self.queue(JobId::number(self.n_jobs), work);
    }

    fn queue(&mut self, job: JobId, work: Work) {
        let tenant = TenantId::number(id(work.tenant));
        let mut told =
            Job { on_demand: work.on_demand, ..Job::new(job.clone(), tenant, work.ready) };
        told.estimate = match work.said {
            Said::Nothing => None,
            Said::Millisecond => Some(Millis(1)),
            Said::TenDays => Some(Millis::from_secs(864_000)),
            Said::Truth => Some(work.length),
            Said::Other(length) => Some(length),
        };
        told.pool = work.pool.map(pool_name);
        if work.is_special {
            told.needs.insert(Name::new("gpu"), vec![Name::new("yes")]);
        }
        self.sharers[work.tenant].waiting.insert(job, work);
        self.world.apply(Event::Queued(Box::new(told)));
    }

    fn cancel(&mut self, tenant: usize, all: bool) {
        let waiting = &mut self.sharers[tenant].waiting;
        let jobs: Vec<JobId> = waiting.keys().step_by(if all { 1 } else { 2 }).cloned().collect();
        for job in jobs {
            waiting.remove(&job);
            self.world.apply(Event::Withdrawn(job));
        }
    }

    fn join(&mut self, at: usize, station: Station) {
        if self.workers.contains_key(&at) {
            return;
        }
        self.workers.insert(at, station);
        let Station { slots, is_special, pool } = station;
        let mut worker =
            Worker { slots, pool: pool_name(pool), ..Worker::new(WorkerId::number(id(at))) };
        if is_special {
            worker.has.insert(Name::new("gpu"), vec![Name::new("yes")]);
        }
        self.slots_max = self.slots_max.max(self.slots());
        self.world.apply(Event::Joined(Box::new(worker)));
    }

    fn leave(&mut self, at: usize) {
        let Some(worker) = self.workers.keys().nth(at % self.workers.len().max(1)).copied() else {
            return;
        };
        self.workers.remove(&worker);
        self.world.apply(Event::Left(WorkerId::number(id(worker))));
        let lost = self.running.iter().filter(|(_, run)| run.worker == worker);
        let lost: Vec<JobId> = lost.map(|(job, _)| job.clone()).collect();
        for job in lost {
            self.end(&job, false);
        }
    }

    fn slots(&self) -> i128 {
        self.workers.values().map(|own| i128::from(own.slots)).sum()
    }

    fn end(&mut self, job: &JobId, completed: bool) {
        let Some(run) = self.running.remove(job) else { return };
        let ran = self.now.since(run.started).0;
        self.longest = self.longest.max(ran);
        self.sharers[run.work.tenant].served += ran;
        let (cost, at) = (Fixed::ONE, self.now);
        self.world.apply(Event::Ended(Ended { job: job.clone(), cost, completed, at }));
        if !completed {
            self.queue(job.clone(), run.work);
        }
    }

    /// Time passes, and attempts end.
    fn wait(&mut self, length: Millis) -> Result<(), String> {
        let until = self.now + length;
        loop {
            let ends = self.running.iter().map(|(job, run)| (run.started + run.work.length, job));
            let Some((at, job)) = ends.min().map(|(at, job)| (at, job.clone())) else { break };
            if at > until {
                break;
            }
            self.now = at;
            self.end(&job, true);
            self.decide()?;
        }
        self.now = until;
        self.decide()
    }

    /// The workers that could run jobs of the tenant; none if it is not backlogged.
    fn reach(&self, tenant: usize) -> BTreeSet<usize> {
        let own = &self.sharers[tenant];
        let is_able = |worker: &Station, work: &Work| {
            (worker.is_special || !work.is_special)
                && work.pool.is_none_or(|pool| pool == worker.pool)
        };
        let workers = self.workers.iter().filter(|(_, worker)| {
            own.active && own.waiting.values().any(|work| is_able(worker, work))
        });
        workers.map(|(worker, _)| *worker).collect()
    }

    /// Each placement is checked, and so is each interval.
    fn decide(&mut self) -> Result<(), String> {
        self.n_decisions += 1;
        let reaches: Vec<BTreeSet<usize>> =
            (0..self.sharers.len()).map(|at| self.reach(at)).collect();
        let actions = self.world.decide(self.now);
        self.begin_intervals(&reaches)?;
        for action in actions {
            if let Action::Place(placement) = action {
                self.place(&placement)?;
            }
        }
        self.end_intervals_at_max();
        for pair in self.intervals.keys() {
            self.check_interval(*pair)?;
        }
        self.mutate(&reaches);
        Ok(())
    }

    fn place(&mut self, placement: &Placement) -> Result<(), String> {
        let job = placement.job.clone();
        let find = |own: &Sharer| own.waiting.get(&job).copied();
        let work =
            self.sharers.iter().find_map(find).ok_or("a job is placed that does not wait")?;
        let is_it = |at: &&usize| WorkerId::number(id(**at)) == placement.worker;
        let worker = *self.workers.keys().find(is_it).ok_or("there is no such worker")?;
        self.check_placement(work.tenant, worker)?;
        self.sharers[work.tenant].waiting.remove(&job);
        self.running.insert(job, Run { work, worker, started: self.now });
        Ok(())
    }

    /// Leaves accounts as the mutant would have.
    fn mutate(&mut self, reaches: &[BTreeSet<usize>]) {
        let Some(mutant) = self.mutant else { return };
        let mut written = self.world.snapshot();
        for (at, own) in self.sharers.iter_mut().enumerate() {
            let tenant = TenantId::number(id(at));
            let tenant = written.tenants.iter_mut().find(|own| own.id == tenant);
            let account = &mut tenant.expect("every tenant is told").account;
            let competes = !reaches[at].is_empty();
            match mutant {
                Mutant::Unchanged => {}
                Mutant::Unsettled => account.ahead = Fixed::ZERO,
                Mutant::NoFloor => {
                    if competes && !own.competed {
                        account.ahead = account.ahead.min(own.owed);
                    }
                    own.owed = account.ahead;
                }
                Mutant::TrustsForEver => account.trust = certain(),
            }
            own.competed = competes;
        }
        self.world = World::from_snapshot(&written);
    }
}

fn pool_name(at: usize) -> Name {
    Name::new(["default", "east"][at])
}

/// Numbers from one, because zero is no id.
fn id(at: usize) -> u64 {
    u64::try_from(at).unwrap_or(u64::MAX) + 1
}

/// A thousand runs of lengths that differ, each predicted to the point.
fn certain() -> Trust {
    Trust { runs: Fixed::whole(1_000), sum: 10_000_000, squares: 110_000_000_000, errors: 0 }
}
