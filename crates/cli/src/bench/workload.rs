//! The synthetic fleets and queues that are measured.

use model::policy::Rule;
use model::{
    Averages, Cluster, Event, Fixed, Inputs, Job, JobId, Millis, Name, Preset, Tenant, TenantId,
    Timestamp, Trait, Traits, Worker, WorkerId,
};

/// Types of jobs; half of them are common, and each worker runs one to four.
const N_TYPES: u64 = 8;
const N_TENANTS: u64 = 4;
/// One job arrives each so many milliseconds.
const ARRIVAL_MS: i64 = 7;

/// A stream of numbers from a seed, so that every run measures the same.
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Makes the events of a workload.
pub(crate) struct Workload {
    draws: Draws,
    next: u64,
    types: Vec<Name>,
    waits_for_inputs: bool,
}

impl Workload {
    pub(crate) fn new(preset: Preset) -> Self {
        Self {
            draws: Draws::new(42),
            next: 0,
            types: (0..N_TYPES).map(kind).collect(),
            waits_for_inputs: preset.rules().contains(&Rule::RescoreWait),
        }
    }

    /// The moment at which the next job arrives.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(i64::try_from(self.next).expect("a benchmark is short") * ARRIVAL_MS)
    }

    pub(crate) fn tenants() -> impl Iterator<Item = Event> {
        (0..N_TENANTS).map(|at| {
            let weight = Fixed::whole(i64::try_from(at).expect("there are few tenants") + 1);
            Event::Tenant(Tenant { weight, ..Tenant::new(tenant(at)) })
        })
    }

    pub(crate) fn worker(&mut self, at: usize) -> Worker {
        let at = u64::try_from(at).expect("a u64 holds a usize");
        let n_types = 1 + self.draws.below(4);
        let first = self.draws.below(N_TYPES);
        let mut types: Vec<Name> =
            (0..n_types).map(|step| kind((first + step) % N_TYPES)).collect();
        types.sort();
        Worker { types, ..Worker::new(WorkerId::number(at)) }
    }

    pub(crate) fn job(&mut self) -> Job {
        let created = self.now();
        let id = JobId::number(self.next);
        self.next += 1;
        let mut job = Job::new(id, tenant(self.draws.below(N_TENANTS)), created);
        let kind = usize::try_from(self.draws.below(N_TYPES)).expect("there are few types");
        job.kind = Some(self.types[kind].clone());
        job.priority = i32::try_from(self.draws.below(11)).expect("it is below 11");
        job.on_demand = self.draws.below(10) == 0;
        let length = 500 + self.draws.below(60_000);
        job.estimate = Some(Millis(i64::try_from(length).expect("it is below a minute")));
        if self.waits_for_inputs {
            // Inputs are measured apart: here nothing waits for reports.
            job.rescore_count = 4;
        }
        job
    }
}

fn tenant(at: u64) -> TenantId {
    TenantId::number(at)
}

fn kind(at: u64) -> Name {
    Name::new(&format!("type-{at}"))
}

/// A build farm: jobs arrive over an hour, lack what their neighbours lack, and most workers hold
/// the inputs of some family of jobs.
pub(crate) struct Farm {
    draws: Draws,
    n_workers: u64,
}

const HOUR_MS: i64 = 3_600_000;
/// Packages that belong together and share inputs.
const N_FAMILIES: u64 = 40;

impl Farm {
    pub(crate) const fn new(n_workers: u64) -> Self {
        Self { draws: Draws::new(7), n_workers }
    }

    pub(crate) const NAME: &'static str =
        "build farm: 50,000 jobs over an hour in 40 families, 200 workers that hold 1 family in 8";

    pub(crate) fn cluster() -> Cluster {
        let avg_1h = Averages {
            wait_s: Some(Fixed::whole(900)),
            missing_paths: Some(Fixed::whole(60)),
            missing_mib: Some(Fixed::whole(400)),
            dependencies: Some(Fixed::whole(6)),
            cpu_ms: Some(Fixed::whole(90_000)),
            ..Averages::default()
        };
        Cluster { avg_1h, ..Cluster::default() }
    }

    pub(crate) fn worker(&mut self, at: u64) -> Worker {
        let mut worker = Worker::new(WorkerId::number(at));
        worker.metrics.cpu_pct = Some(Fixed::whole(signed(self.draws.below(85))));
        worker.metrics.ram_free_mb = Some(4_096 + self.draws.below(60_000));
        worker.metrics.ram_total_mb = Some(65_536);
        worker.metrics.cpu_score = Some(Fixed::whole(signed(500 + self.draws.below(2_000))));
        worker.metrics.net_mbps = Some(Fixed::whole(signed(50 + self.draws.below(400))));
        worker.metrics.disk_mbps = Some(Fixed::whole(signed(80 + self.draws.below(900))));
        worker
    }

    /// A job that `at` of `count` jobs came before, with what every worker lacks of its inputs.
    pub(crate) fn job(&mut self, at: u64, count: u64) -> Job {
        let created = Timestamp(signed(at) * HOUR_MS / signed(count));
        let mut job = Job::new(JobId::number(at), tenant(self.draws.below(N_TENANTS)), created);
        let family = self.draws.below(N_FAMILIES);
        job.dependents = Some(u32::try_from(self.draws.below(25)).expect("it is below 25"));
        let facts = [(Trait::Light, 12), (Trait::PreferLocal, 9), (Trait::Network, 15)];
        let facts = facts.into_iter().filter(|(_, one_in)| self.draws.below(*one_in) == 0);
        job.traits = facts.map(|(fact, _)| fact).collect::<Traits>();
        job.history = (self.draws.below(4) > 0).then(|| model::History {
            samples: 20,
            ram_peak_mb: Some(256 + self.draws.below(8_000)),
            cpu_ms: Some(self.draws.below(240_000)),
            disk_bytes: Some(self.draws.below(400 << 20)),
            ..model::History::default()
        });
        for worker in 0..self.n_workers {
            let inputs = self.inputs(family, worker);
            job.inputs.insert(WorkerId::number(worker), inputs);
        }
        job
    }

    fn inputs(&mut self, family: u64, worker: u64) -> Inputs {
        let is_home = (family + worker).is_multiple_of(8);
        let paths = if is_home { self.draws.below(12) } else { 20 + self.draws.below(160) };
        let bytes = paths * (1 << 20) * (1 + self.draws.below(12));
        Inputs {
            missing_paths: Some(u32::try_from(paths).expect("it is below 180")),
            missing_bytes: Some(bytes),
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).expect("benchmark figures are small")
}

/// Whether the order of a preset is a key that does not change with time.
pub(crate) const fn has_constant_key(preset: Preset) -> bool {
    match preset {
        Preset::PriorityAge
        | Preset::Cohort
        | Preset::FairShare
        | Preset::Aging
        | Preset::Balanced => true,
        Preset::Simple | Preset::ResourceAware | Preset::Detected => false,
    }
}
