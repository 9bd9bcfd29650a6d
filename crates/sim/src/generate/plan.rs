//! What a seed draws for a workload of a family, and the jobs that follow from it.

use model::job::Needs;
use model::{Fixed, JobId, Millis, Name, TenantId, Timestamp, Worker, WorkerId};

use super::arrivals::{Arrivals, Burst, Clock};
use super::family::{Family, Instance};
use super::law::Law;
use super::picked;
use crate::chance::{Chance, split_mix};
use crate::fleet::Fleet;
use crate::number::{count, whole};
use crate::workload::{Bad, Row, Workload};

/// Jobs of a workload: enough for a few hundred rounds of the fleet, few enough for thousands of
/// replays.
const JOBS: usize = 4_000;
const DAY_S: f64 = 86_400.0;
/// What a worker of a kind has, and what a job needs.
const KIND: &str = "kind";
/// What people say when they are asked for a limit, in seconds.
const LIMITS_S: [f64; 8] =
    [60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 172_800.0, 1_209_600.0];

/// What was drawn.
pub(super) struct Plan {
    seed: u64,
    arrivals: Arrivals,
    /// Arrivals a second.
    rate: f64,
    load: f64,
    law: Law,
    mean_s: f64,
    tenants: Vec<Tenant>,
    /// Workers of each kind. Kind 0 is common: its jobs run on each worker.
    kinds: Vec<u32>,
    /// Slots of each worker.
    slots: u32,
    types: Vec<Type>,
    /// Parts of the variance of lengths that the type, the tenant and the key tell.
    known: [f64; 3],
    /// Keys of each tenant and type.
    n_keys: u64,
    /// The part of the jobs that have a key of their own.
    new_keys: f64,
    /// Whether jobs have a limit.
    has_limits: bool,
}

struct Tenant {
    weight: u32,
    /// Its part of the arrivals.
    share: f64,
    burst: Option<Burst>,
    /// What its jobs share of their lengths.
    normal: f64,
}

struct Type {
    kind: usize,
    width: u32,
    /// Its part of the jobs.
    share: f64,
    is_interactive: bool,
    normal: f64,
}

/// Draws of a plan.
struct Draws(Chance);

impl Draws {
    /// From `least` to `most`, both included.
    fn of(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.draw() % (most - least + 1)
    }

    fn number(&mut self, least: u32, most: u32) -> u32 {
        u32::try_from(self.of(least.into(), most.into())).unwrap_or(most)
    }

    fn within(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.0.part()
    }

    /// Each factor is as likely as any other.
    fn log(&mut self, least: f64, most: f64) -> f64 {
        least * libm::pow(most / least, self.0.part())
    }

    fn is(&mut self, part: f64) -> bool {
        self.0.part() <= part
    }
}

impl Plan {
    pub(super) fn new(family: Family, seed: u64) -> Self {
        let stream = Family::ALL.iter().position(|own| *own == family).unwrap_or(0);
        let stream = u64::try_from(stream).unwrap_or(0);
        let seed = split_mix(seed ^ split_mix(stream.wrapping_add(0xfa)));
        let mut draws = Draws(Chance::new(seed, 0));
        let (kinds, slots) = fleet(family, &mut draws);
        let load =
            if family == Family::Overload { draws.within(1.2, 2.5) } else { load(&mut draws) };
        let law = law(family, &mut draws);
        let types = types(family, &kinds, slots, &mut draws);
        let width = types.iter().map(|own| own.share * f64::from(own.width)).sum::<f64>();
        let n_slots = f64::from(slots * kinds.iter().sum::<u32>());
        // How long all arrivals take for each second of the mean length.
        let span = count(JOBS) * width / (n_slots * load);
        let is_daily = family == Family::Daily || family == Family::Mixed && draws.is(0.2);
        let mean_s =
            if is_daily { draws.within(2.0, 4.0) * DAY_S / span } else { draws.log(1.0, 600.0) };
        let span_s = span * mean_s;
        let arrivals = arrivals(family, is_daily, span_s, &mut draws);
        Self {
            seed,
            rate: count(JOBS) / span_s,
            arrivals,
            load,
            law,
            mean_s,
            tenants: tenants(family, arrivals, span_s, &mut draws),
            kinds,
            slots,
            types,
            known: known(&mut draws),
            n_keys: draws.of(2, 30),
            new_keys: draws.within(0.0, 0.3),
            has_limits: draws.is(0.33),
        }
    }

    pub(super) fn instance(&self) -> Instance {
        let fleet = self.fleet();
        let weights: Vec<u32> = self.tenants.iter().map(|own| own.weight).collect();
        let workload = Workload::new(&self.rows(), &weights, Bad::default());
        let mut workload = workload.expect("weights are at least 1");
        let load = Fixed::from_f64(self.load).expect("it is a small number");
        workload.compress_to(load, fleet.slots());
        Instance { workload, fleet, summary: self.summary() }
    }

    fn summary(&self) -> String {
        let widest = self.types.iter().map(|own| own.width).max().unwrap_or(1);
        let weights = self.tenants.iter().map(|own| own.weight.to_string());
        let kinds = self.kinds.iter().map(ToString::to_string);
        let [kind, tenant, key] = self.known.map(|part| 100.0 * part);
        format!(
            "{} tenants with weights {}; workers of each kind: {}; slots of a worker: {}, of the \
             widest job: {widest}; load {:.2}; {}; lengths {} with a mean of {:.1} s; type, tenant \
             and key tell {kind:.0} %, {tenant:.0} % and {key:.0} % of them.",
            self.tenants.len(),
            weights.collect::<Vec<_>>().join(", "),
            kinds.collect::<Vec<_>>().join(", "),
            self.slots,
            self.load,
            match self.arrivals {
                Arrivals::Poisson => "Poisson arrivals",
                Arrivals::OnOff { .. } => "arrivals in bursts",
                Arrivals::Daily { .. } => "arrivals by day and night",
            },
            self.law.name(),
            self.mean_s,
        )
    }

    fn fleet(&self) -> Fleet {
        let mut workers = Vec::new();
        for (kind, n_workers) in self.kinds.iter().enumerate() {
            for _ in 0..*n_workers {
                let number = u64::try_from(workers.len()).unwrap_or(u64::MAX);
                let mut worker = Worker::new(WorkerId::number(number));
                worker.slots = self.slots;
                if kind > 0 {
                    worker.has.insert(Name::new(KIND), vec![kind_name(kind)]);
                }
                workers.push(worker);
            }
        }
        Fleet::of_workers(workers).expect("there is a worker, and each has its own id")
    }

    fn rows(&self) -> Vec<Row> {
        let tenants: Vec<(f64, Option<Burst>)> =
            self.tenants.iter().map(|own| (own.share, own.burst)).collect();
        let mut clock = Clock::new(self.arrivals, (self.rate, self.seed), &tenants);
        let mut draws = Draws(Chance::new(self.seed, 1));
        (0..).take(JOBS).map(|number| self.row(number, clock.next(), &mut draws)).collect()
    }

    fn row(&self, number: u64, (at_s, tenant): (f64, usize), draws: &mut Draws) -> Row {
        let at = picked(&mut draws.0, self.types.iter().map(|own| own.share));
        let own = &self.types[at];
        // Some keys are more usual than others.
        let part = draws.within(0.0, 1.0);
        let usual = u64::try_from(whole(part * part * 1_000.0)).unwrap_or(0) * self.n_keys / 1_001;
        let key = if draws.is(self.new_keys) { self.n_keys + number } else { usual };
        let place = |place: usize| u64::try_from(place).unwrap_or(0);
        let stream = split_mix(place(tenant) ^ split_mix(place(at) ^ split_mix(key)));
        let parts =
            [own.normal, self.tenants[tenant].normal, Chance::new(self.seed, stream).normal()];
        let known = self.known.iter().zip(parts).map(|(part, normal)| libm::sqrt(*part) * normal);
        let left = (1.0 - self.known.iter().sum::<f64>()).max(0.0);
        let normal = known.sum::<f64>() + libm::sqrt(left) * draws.0.normal();
        let seconds = self.law.quantile(self.mean_s, normal);
        let mut needs = Needs::new();
        if own.kind > 0 {
            needs.insert(Name::new(KIND), vec![kind_name(own.kind)]);
        }
        let least_s = seconds * draws.log(1.0, 8.0);
        let limit = LIMITS_S.into_iter().find(|limit| *limit >= least_s);
        let duration = Millis(whole(seconds * 1_000.0).max(1));
        let limit = limit.map(|seconds| Millis(whole(seconds * 1_000.0)));
        Row {
            id: JobId::number(number),
            arrival: Timestamp(whole(at_s * 1_000.0)),
            duration,
            requested: limit.filter(|_| self.has_limits),
            tenant: tenant_id(tenant),
            kind: Some(Name::new(&format!("type-{at}"))),
            needs,
            slots: own.width,
            priority: 0,
            on_demand: own.is_interactive,
            history_key: Some(Name::new(&format!("key-{key}"))),
            label: None,
        }
    }
}

/// `a`, `b`, and so on.
pub(super) fn tenant_id(tenant: usize) -> TenantId {
    let letter = u8::try_from(tenant).map_or('z', |own| char::from(b'a'.saturating_add(own)));
    TenantId::new(&letter.to_string())
}

fn kind_name(kind: usize) -> Name {
    Name::new(&format!("kind-{kind}"))
}

/// Half of the workloads ask for less than there is.
fn load(draws: &mut Draws) -> f64 {
    if draws.is(0.5) { draws.within(0.6, 1.0) } else { draws.within(1.0, 2.5) }
}

/// Workers of each kind, and the slots of each worker.
fn fleet(family: Family, draws: &mut Draws) -> (Vec<u32>, u32) {
    let drawn = [1, 1, 2, 4, 8][usize::try_from(draws.of(0, 4)).unwrap_or(0)];
    let slots = if family == Family::Wide { 8 } else { drawn };
    let wanted = draws.log(16.0, 128.0);
    let n_workers = u32::try_from(whole(wanted / f64::from(slots))).unwrap_or(1).max(4);
    let n_kinds = if family == Family::Rare { draws.of(3, 4) } else { draws.of(1, 4) };
    let (mut kinds, mut left) = (vec![0], n_workers);
    for _ in 1..n_kinds {
        let is_rare = family == Family::Rare || draws.is(0.4);
        let some = u32::try_from(whole(f64::from(n_workers) * draws.within(0.1, 0.3)));
        let own = if is_rare { draws.number(1, 2) } else { some.unwrap_or(1).max(1) };
        let own = own.min(left - 1);
        if own > 0 {
            kinds.push(own);
            left -= own;
        }
    }
    kinds[0] = left;
    (kinds, slots)
}

fn law(family: Family, draws: &mut Draws) -> Law {
    let number = match family {
        Family::Constant => 0,
        Family::Exponential => 1,
        Family::Lognormal => 2,
        Family::Pareto => 3,
        Family::Bimodal => 4,
        Family::Mixed
        | Family::Poisson
        | Family::Bursts
        | Family::Daily
        | Family::Tenants
        | Family::Rare
        | Family::Wide
        | Family::Overload
        | Family::Backlogged => draws.of(0, Law::N - 1),
    };
    Law::draw(number, &mut draws.0)
}

/// Types with their parts of the jobs. The jobs of a kind ask for 0.3 to 1 times as much of its
/// workers as all jobs ask for of all workers.
fn types(family: Family, kinds: &[u32], slots: u32, draws: &mut Draws) -> Vec<Type> {
    let is_wide = family == Family::Wide || draws.is(0.3);
    let n_workers = f64::from(kinds.iter().sum::<u32>());
    let mut left = 1.0;
    let mut areas: Vec<f64> = vec![0.0; kinds.len()];
    for kind in 1..kinds.len() {
        areas[kind] = f64::from(kinds[kind]) / n_workers * draws.within(0.3, 1.0);
        left -= areas[kind];
    }
    areas[0] = left;
    let mut types = Vec::new();
    for (kind, area) in areas.into_iter().enumerate() {
        let n_types = draws.of(1, 4);
        for _ in 0..n_types {
            let widths: Vec<u32> =
                [1, 1, 2, 4, 8].into_iter().filter(|own| *own <= slots).collect();
            let place = usize::try_from(draws.of(0, 4)).unwrap_or(0) % widths.len();
            let width = if is_wide { widths[place] } else { 1 };
            let part = area / count(usize::try_from(n_types).unwrap_or(1));
            types.push(Type {
                kind,
                width,
                share: part * draws.log(0.5, 2.0) / f64::from(width),
                is_interactive: draws.is(0.15),
                normal: draws.0.normal(),
            });
        }
    }
    let all: f64 = types.iter().map(|own| own.share).sum();
    for own in &mut types {
        own.share /= all;
    }
    types
}

fn arrivals(family: Family, is_daily: bool, span_s: f64, draws: &mut Draws) -> Arrivals {
    let is_bursty = family == Family::Bursts || family != Family::Poisson && draws.is(0.3);
    if is_daily {
        return Arrivals::Daily { amplitude: draws.within(0.5, 1.0) };
    }
    if is_bursty {
        return Arrivals::OnOff {
            on_s: span_s / draws.within(10.0, 60.0),
            off_s: span_s / draws.within(10.0, 60.0),
            off_part: draws.within(0.0, 0.3),
        };
    }
    Arrivals::Poisson
}

fn tenants(family: Family, arrivals: Arrivals, span_s: f64, draws: &mut Draws) -> Vec<Tenant> {
    let n_tenants = if family == Family::Tenants { draws.of(6, 8) } else { draws.of(1, 8) };
    let mut tenants: Vec<Tenant> = Vec::new();
    for _ in 0..n_tenants {
        let is_bursty = family == Family::Bursts || family != Family::Poisson && draws.is(0.15);
        let every_s = span_s / draws.within(3.0, 10.0);
        let burst = Burst {
            every_s,
            for_s: every_s * draws.within(0.05, 0.2),
            factor: draws.log(3.0, 15.0),
        };
        let has_burst = is_bursty && (arrivals == Arrivals::Poisson || draws.is(0.3));
        tenants.push(Tenant {
            weight: draws.number(1, 5),
            share: draws.log(0.1, 1.0),
            burst: has_burst.then_some(burst),
            normal: draws.0.normal(),
        });
    }
    tenants
}

/// From nothing, in one workload of five, to nearly all.
fn known(draws: &mut Draws) -> [f64; 3] {
    let all = if draws.is(0.2) { 0.0 } else { draws.within(0.0, 0.97) };
    let parts = [0; 3].map(|_| draws.0.exponential(1.0));
    let sum: f64 = parts.iter().sum();
    parts.map(|part| all * part / sum)
}
