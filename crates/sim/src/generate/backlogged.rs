//! Tenants that are all backlogged while shares are measured.

use model::job::Needs;
use model::{JobId, Millis, Name, Timestamp};

use super::plan::tenant_id;
use crate::chance::Chance;
use crate::fleet::Fleet;
use crate::number::{float, whole};
use crate::workload::{Bad, Row, Workload};

/// A replay in which shares are measured.
#[derive(Clone, Debug)]
pub struct Backlogged {
    /// Two to four tenants. The last of them submits at the latest one unit after the first.
    pub workload: Workload,
    /// 4 to 64 slots. Each worker runs each job.
    pub fleet: Fleet,
    /// The longest of the tenants' mean lengths.
    pub unit: Millis,
    /// Shares are measured from here …
    pub from: Timestamp,
    /// … until here. Until then each tenant has a job that waits, whatever the policy does.
    pub until: Timestamp,
    /// The mean length that the jobs of each tenant are drawn with, in seconds, by tenant.
    pub means_s: Vec<f64>,
    /// Whether one tenant ran short jobs alone before.
    pub is_warm: bool,
}

/// Means are drawn log-uniformly between these.
const MEAN_S: (f64, f64) = (0.5, 60.0);
/// The measurement begins so many units after the last tenant has submitted …
const UNITS_BEFORE: i64 = 4;
/// … and lasts so many.
const UNITS_MEASURED: i64 = 20;
const SLOTS: (f64, f64) = (4.0, 64.0);
const WEIGHT_MAX: u64 = 5;

/// How the lengths of a tenant's jobs differ.
#[derive(Clone, Copy, Debug)]
enum Law {
    Constant,
    /// From half of the mean to one and a half.
    Uniform,
    Exponential,
}

impl Law {
    fn draw(self, mean_s: f64, chance: &mut Chance) -> Millis {
        let seconds = match self {
            Self::Constant => mean_s,
            Self::Uniform => mean_s * (0.5 + chance.part()),
            Self::Exponential => chance.exponential(mean_s),
        };
        Millis(whole(seconds * 1_000.0).max(1))
    }
}

impl Backlogged {
    /// The replay of a seed. One of three begins with a warm-up.
    ///
    /// The unit is the longest of the tenants' mean lengths. Running jobs are not stopped, so a
    /// slot that runs a job of 60 s changes its tenant after 60 s at the earliest, however many
    /// jobs of 0.5 s wait. With the mean of all jobs that run as the unit, a measurement is shorter
    /// than single jobs: `sfq`, which follows shares exactly, keeps them in 30 of 60 replays then.
    pub fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed, 0);
        let n_tenants = 2 + one_of(&mut chance, 3);
        let slots = whole(between(&mut chance, SLOTS));
        let slots = u32::try_from(slots).unwrap_or(1);
        let fleet = match one_of(&mut chance, 3) {
            0 => Fleet::of_size(1, slots),
            1 => Fleet::of_size(slots.div_ceil(4), 4),
            _ => Fleet::of_size(slots, 1),
        };
        let weights = (0..n_tenants).map(|_| 1 + one_of(&mut chance, WEIGHT_MAX));
        let weights: Vec<u32> = weights.filter_map(|weight| weight.try_into().ok()).collect();
        let means: Vec<f64> = weights.iter().map(|_| between(&mut chance, MEAN_S)).collect();
        let unit = Millis(whole(means.iter().copied().fold(0.0, f64::max) * 1_000.0));
        let mut rows =
            Rows { fleet: &fleet, all: Vec::new(), has_types: one_of(&mut chance, 2) == 1 };
        let is_warm = one_of(&mut chance, 3) == 0;
        let begin = if is_warm { rows.warm_up(&mut chance, n_tenants) } else { Timestamp(0) };
        let first = usize::try_from(one_of(&mut chance, n_tenants)).unwrap_or(0);
        let delay = Millis(whole(between(&mut chance, (10.0, float(unit.0.into())))));
        let from = begin + delay + Millis(UNITS_BEFORE * unit.0);
        let until = from + Millis(UNITS_MEASURED * unit.0);
        for (tenant, mean_s) in means.iter().enumerate() {
            let law = [Law::Constant, Law::Uniform, Law::Exponential];
            let law = law[usize::try_from(one_of(&mut chance, 3)).unwrap_or(0)];
            let arrival = if tenant == first { begin } else { begin + delay };
            rows.backlog(tenant, arrival, until, || law.draw(*mean_s, &mut chance));
        }
        let workload = Workload::new(&rows.all, &weights, Bad::default());
        let workload = workload.expect("weights are at least 1");
        Self { workload, fleet, unit, from, until, means_s: means, is_warm }
    }
}

/// What was drawn, in one sentence.
pub(super) fn summary(case: &Backlogged) -> String {
    let tenants = case.workload.tenants.iter().zip(&case.means_s);
    let tenants = tenants.map(|(own, mean_s)| format!("weight {} and {mean_s:.1} s", own.weight));
    let warm = if case.is_warm { "after a warm-up" } else { "from the start" };
    format!(
        "{} slots; tenants that are all backlogged {warm}, with weights and mean lengths: {}.",
        case.fleet.slots(),
        tenants.collect::<Vec<_>>().join("; "),
    )
}

/// A number below `n`.
fn one_of(chance: &mut Chance, n: u64) -> u64 {
    chance.draw() % n
}

/// A number of a range, each factor as likely as any other.
fn between(chance: &mut Chance, (least, most): (f64, f64)) -> f64 {
    least * libm::pow((most / least).max(1.0), chance.part())
}

struct Rows<'a> {
    fleet: &'a Fleet,
    all: Vec<Row>,
    /// Whether each tenant has a type of its own. Otherwise all jobs are of one type.
    has_types: bool,
}

impl Rows<'_> {
    /// One tenant runs 100 to 500 short jobs, alone. Returns when the backlog begins: up to a
    /// minute after the last of them has ended.
    fn warm_up(&mut self, chance: &mut Chance, n_tenants: u64) -> Timestamp {
        let tenant = usize::try_from(one_of(chance, n_tenants)).unwrap_or(0);
        let length = Millis(whole(between(chance, (50.0, 500.0))));
        let n_jobs = 100 + one_of(chance, 401);
        for _ in 0..n_jobs {
            self.add(tenant, Timestamp(0), length);
        }
        let n_jobs = i64::try_from(n_jobs).unwrap_or(i64::MAX);
        let n_each = n_jobs / i64::try_from(self.fleet.slots()).unwrap_or(1) + 1;
        let pause = Millis(whole(between(chance, (10.0, 60_000.0))));
        Timestamp(0) + Millis(n_each * length.0) + pause
    }

    /// A tenant submits so much at once that it is backlogged until then, even if it has all slots.
    fn backlog(
        &mut self,
        tenant: usize,
        at: Timestamp,
        until: Timestamp,
        mut length: impl FnMut() -> Millis,
    ) {
        let slots = i64::try_from(self.fleet.slots()).unwrap_or(i64::MAX);
        let (mut left, mut longest) = (slots * until.since(at).0, 0);
        while left + slots * longest > 0 {
            let own = length();
            left -= own.0;
            longest = longest.max(own.0);
            self.add(tenant, at, own);
        }
        // One more for each slot: those wait when all that came before has been started.
        for _ in 0..=slots {
            let own = length();
            self.add(tenant, at, own);
        }
    }

    fn add(&mut self, tenant: usize, arrival: Timestamp, duration: Millis) {
        let number = u64::try_from(self.all.len()).unwrap_or(u64::MAX);
        let kind = if self.has_types { format!("type-{tenant}") } else { "job".to_owned() };
        self.all.push(Row {
            id: JobId::number(number),
            arrival,
            duration,
            requested: None,
            tenant: tenant_id(tenant),
            kind: Some(Name::new(&kind)),
            needs: Needs::new(),
            slots: 1,
            priority: 0,
            on_demand: false,
            history_key: None,
            label: None,
        });
    }
}
