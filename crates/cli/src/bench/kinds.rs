//! Time per decision as the number of kinds of waiting jobs grows.
//!
//! An honest tenant submits ordinary jobs. A hostile tenant submits as many kinds of jobs as it
//! can: each family is one way to tell jobs apart. The queue has the same length at each number of
//! kinds, so only the kinds differ. What is timed is the same as in [`super::growth`].

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use clap::ValueEnum;
use decide::World;
use model::{
    Action, Attempt, Ended, Event, Fixed, Job, JobId, Millis, Name, Preset, Tenant, TenantId,
    Timestamp, Worker, WorkerId,
};
use serde_json::{Value, json};

use super::machine::{Progress, timed};
use crate::print;

/// Waiting jobs of the honest tenant.
const N_HONEST: usize = 20_000;
/// Waiting jobs of the hostile tenant, unless more kinds are asked for.
const N_HOSTILE: usize = 100_000;
const N_WORKERS: usize = 65;
const SLOTS: u32 = 4;
/// The one worker that could hold any width or amount is this large, and an attempt that lasts
/// takes most of it …
const LARGE: u32 = 4_000_000;
/// … but leaves as many slots as all other workers have, so every other decision is about it.
const LEFT: u32 = 256;
/// Memory of all other workers.
const MEMORY: u64 = 1_000;
/// One job arrives each so many milliseconds.
const ARRIVAL_MS: i64 = 7;
/// Decisions between two looks at the clock.
const BATCH: usize = 50;
/// Values of one key, where a kind is a choice of one value for each of three keys.
const N_VALUES: usize = 64;
/// Hosts among which jobs choose, where a kind is a set of hosts.
const N_HOSTS: usize = 20;

/// A way to tell jobs apart.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Family {
    /// Widths that one worker could hold, which is busy.
    Widths,
    /// Names of amounts that no worker has.
    Names,
    /// Amounts that one worker could hold, which is busy.
    Amounts,
    /// Needs that all workers meet.
    Met,
    /// Needs that no worker meets.
    Unmet,
    /// Sets of hosts: each is another set of workers.
    Hosts,
    /// Types, on workers that take any type.
    Types,
    /// One after the other of all of them.
    Mixed,
    /// Kinds that no worker holds and that come and go: each decision meets a new one.
    Fresh,
}

impl Family {
    const STEADY: [Self; 7] = [
        Self::Widths,
        Self::Names,
        Self::Amounts,
        Self::Met,
        Self::Unmet,
        Self::Hosts,
        Self::Types,
    ];

    fn name(self) -> String {
        let value = self.to_possible_value().expect("no family is hidden");
        value.get_name().to_owned()
    }

    /// Makes a job one of the `at`th kind.
    fn mark(self, job: &mut Job, at: usize) {
        let wide = |at: usize| u64::try_from(at).expect("a u64 holds a usize");
        match self {
            Self::Widths => job.slots = LEFT + 1 + u32::try_from(at).expect("there are few widths"),
            Self::Names => drop(job.amounts.insert(Name::new(&format!("amount-{at}")), 1)),
            Self::Amounts => {
                job.amounts.insert(Name::new("memory"), MEMORY + 1 + wide(at));
            }
            Self::Met => {
                for (key, digit) in [("a", 1), ("b", N_VALUES), ("c", N_VALUES * N_VALUES)] {
                    job.needs.insert(Name::new(key), vec![value(at / digit % N_VALUES)]);
                }
            }
            Self::Unmet => drop(job.needs.insert(Name::new("site"), vec![value(at)])),
            Self::Hosts => {
                let hosts = (0..N_HOSTS).filter(|bit| (at + 1) >> bit & 1 == 1);
                job.needs.insert(Name::new("host"), hosts.map(value).collect());
            }
            Self::Types => job.kind = Some(Name::new(&format!("type-{at}"))),
            Self::Mixed => {
                Self::STEADY[at % Self::STEADY.len()].mark(job, at / Self::STEADY.len());
            }
            Self::Fresh => {
                let own = [Self::Names, Self::Unmet];
                own[at % own.len()].mark(job, at);
            }
        }
    }
}

fn value(at: usize) -> Name {
    Name::new(&format!("v-{at}"))
}

/// One figure: a family with a number of kinds.
pub(crate) struct Row {
    family: Family,
    n_kinds: usize,
    n_decisions: usize,
    /// Time per decision in the median batch.
    nanos: f64,
    /// The same in the slowest batch.
    nanos_max: f64,
}

impl Row {
    fn json(&self, rows: &[Self]) -> Value {
        json!({
            "family": self.family.name(),
            "kinds": self.n_kinds,
            "decisions": self.n_decisions,
            "ns_per_decision": self.nanos.round(),
            "ns_per_decision_slowest_batch": self.nanos_max.round(),
            "ratio": self.ratio(rows),
        })
    }

    /// The time against that of the fewest kinds, in hundredths of one.
    fn ratio(&self, rows: &[Self]) -> f64 {
        let same = rows.iter().filter(|row| row.family == self.family);
        let least = same.min_by_key(|row| row.n_kinds).map_or(self.nanos, |row| row.nanos);
        (self.nanos / least * 100.0).round() / 100.0
    }
}

/// Measures `balanced` with these families, or all, at each number of kinds.
pub(crate) fn measure(
    kinds: &[usize],
    families: &[Family],
    seconds: f64,
    progress: &Progress,
) -> Vec<Row> {
    let families = if families.is_empty() { Family::value_variants() } else { families };
    let mut rows = Vec::new();
    for family in families {
        for n_kinds in kinds {
            progress.say(format!("{}: {n_kinds} kinds", family.name()));
            let n_hostile = kinds.iter().copied().fold(N_HOSTILE, usize::max);
            rows.push(Farm::new(*family, *n_kinds).measure(n_hostile, seconds));
        }
    }
    rows
}

/// The figures for machines.
pub(crate) fn json(rows: &[Row]) -> Value {
    json!({ "kinds": rows.iter().map(|row| row.json(rows)).collect::<Vec<_>>() })
}

/// The figures for people.
pub(crate) fn table(rows: &[Row]) -> String {
    let cells = rows.iter().map(|row| {
        vec![
            row.family.name(),
            row.n_kinds.to_string(),
            format!("{:.2}", row.nanos / 1_000.0),
            format!("{:.2}", row.nanos_max / 1_000.0),
            format!("{:.2}", row.ratio(rows)),
        ]
    });
    let header = ["kinds differ in", "kinds", "µs", "µs, slowest batch", "×"];
    let table = print::table(&header, cells.collect(), &[1, 2, 3, 4]);
    format!(
        "One decision of `balanced`: an attempt ends, a job arrives, the world decides. A hostile\n\
         tenant has that many kinds of jobs in the queue, beside {N_HONEST} honest ones.\n\
         Median of batches of {BATCH}. × is the time against the fewest kinds.\n\n\
         {table}\n"
    )
}

/// A world under attack.
struct Farm {
    family: Family,
    n_kinds: usize,
    world: World,
    /// Attempts, the oldest first.
    running: VecDeque<JobId>,
    /// The kind of each job of the hostile tenant.
    hostile: BTreeMap<JobId, usize>,
    /// Jobs of the hostile tenant that wait, where they come and go.
    waiting: VecDeque<JobId>,
    n_jobs: u64,
    n_fresh: usize,
}

impl Farm {
    fn new(family: Family, n_kinds: usize) -> Self {
        let mut world = World::new(Preset::Balanced.policy(), 0);
        for tenant in [honest(), hostile()] {
            world.apply(Event::Tenant(Tenant::new(tenant)));
        }
        for at in 0..N_WORKERS {
            world.apply(Event::Joined(Box::new(worker(at))));
        }
        let (running, hostile, waiting) = (VecDeque::new(), BTreeMap::new(), VecDeque::new());
        let n_fresh = n_kinds;
        let mut farm =
            Self { family, n_kinds, world, running, hostile, waiting, n_jobs: 0, n_fresh };
        farm.occupy_large();
        farm
    }

    /// An attempt that lasts takes most of the largest worker: what only that worker could hold
    /// finds no room, but some slots of it are for all.
    fn occupy_large(&mut self) {
        // Of a third tenant: whoever else has what, the hostile one has less.
        let (job, worker) = (self.job(honest()).id, WorkerId::number(0));
        let mut attempt = Attempt::new(job, TenantId::number(2), worker, Timestamp(0));
        attempt.slots = LARGE - LEFT;
        attempt.estimate = Some(Millis(i64::from(u32::MAX)));
        attempt.amounts.insert(Name::new("memory"), u64::from(LARGE) - MEMORY);
        self.world.apply(Event::Started(Box::new(attempt)));
    }

    fn now(&self) -> Timestamp {
        Timestamp(i64::try_from(self.n_jobs).expect("a benchmark is short") * ARRIVAL_MS)
    }

    fn job(&mut self, tenant: TenantId) -> Job {
        let mut job = Job::new(JobId::number(self.n_jobs), tenant, self.now());
        let length = 500 + i64::try_from(self.n_jobs * 7_919 % 60_000).expect("a minute is short");
        job.estimate = Some(Millis(length));
        self.n_jobs += 1;
        job
    }

    fn queue_honest(&mut self) {
        let mut job = self.job(honest());
        job.kind = Some(Name::new("honest"));
        self.world.apply(Event::Queued(Box::new(job)));
    }

    fn queue_hostile(&mut self, kind: usize) {
        let mut job = self.job(hostile());
        self.family.mark(&mut job, kind);
        self.hostile.insert(job.id.clone(), kind);
        if self.family == Family::Fresh {
            self.waiting.push_back(job.id.clone());
        }
        self.world.apply(Event::Queued(Box::new(job)));
    }

    fn measure(mut self, n_hostile: usize, seconds: f64) -> Row {
        for at in 0..n_hostile {
            self.queue_hostile(at % self.n_kinds);
        }
        for _ in 0..N_HONEST {
            self.queue_honest();
        }
        self.decide();
        let mut batches = Vec::new();
        let mut took = Duration::ZERO;
        while took.as_secs_f64() < seconds {
            let (count, batch) = timed(|| self.churn());
            took += batch;
            batches.push((batch, count));
        }
        batches.sort_unstable();
        let nanos = |(batch, count): (Duration, usize)| {
            batch.as_secs_f64() * 1e9 / f64::from(u32::try_from(count).expect("a batch is small"))
        };
        Row {
            family: self.family,
            n_kinds: self.n_kinds,
            n_decisions: batches.iter().map(|(_, count)| count).sum(),
            nanos: nanos(batches[batches.len() / 2]),
            nanos_max: nanos(batches[batches.len() - 1]),
        }
    }

    /// Attempts end one by one. A job of the same tenant and kind arrives for each.
    ///
    /// Never inlined, so that a profiler can be told to look at this alone.
    #[inline(never)]
    fn churn(&mut self) -> usize {
        for _ in 0..BATCH {
            let job = self.running.pop_front().expect("every slot is busy");
            let kind = self.hostile.remove(&job);
            let (cost, at) = (Fixed::ONE, self.now());
            self.world.apply(Event::Ended(Ended { job, cost, completed: true, at }));
            match kind {
                Some(kind) => self.queue_hostile(kind),
                None => self.queue_honest(),
            }
            if let Some(oldest) = self.waiting.pop_front() {
                self.hostile.remove(&oldest);
                self.world.apply(Event::Withdrawn(oldest));
                self.queue_hostile(self.n_fresh);
                self.n_fresh += 1;
            }
            self.decide();
        }
        BATCH
    }

    fn decide(&mut self) {
        for action in self.world.decide(self.now()) {
            match action {
                Action::Place(placement) => self.running.push_back(placement.job),
                Action::Preempt(_) | Action::Defer(_) => {}
            }
        }
    }
}

fn honest() -> TenantId {
    TenantId::number(0)
}

fn hostile() -> TenantId {
    TenantId::number(1)
}

/// Half of the workers run jobs of the honest tenant only, unless those say no type.
fn worker(at: usize) -> Worker {
    let mut worker = Worker::new(WorkerId::number(u64::try_from(at).expect("a u64 holds a usize")));
    worker.slots = if at == 0 { LARGE } else { SLOTS };
    let memory = if at == 0 { u64::from(LARGE) } else { MEMORY };
    worker.amounts.insert(Name::new("memory"), memory);
    if at % 2 == 1 {
        worker.types = vec![Name::new("honest")];
    }
    for key in ["a", "b", "c"] {
        worker.has.insert(Name::new(key), (0..N_VALUES).map(value).collect());
    }
    worker.has.insert(Name::new("host"), vec![value(at % N_HOSTS)]);
    worker
}
