//! The parts of a world, drawn one by one, with numbers in place of the names of other parts.

use std::collections::BTreeMap;

use model::job::{Amounts, Needs};
use model::tenant::{Account, Peak, Trust};
use model::{
    Attempt, Budget, Fixed, History, Inputs, Job, JobId, JobType, Metrics, Millis, Name, Quota,
    Recent, Tenant, TenantId, Timestamp, Trait, Traits, Worker, WorkerId,
};
use proptest::bool::weighted as chance;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::{NOW, Spelling};

pub(super) const POOLS: [&str; 3] = ["default", "east", "2"];
const KINDS: [&str; 3] = ["doc", "ocr", "zip"];
const AMOUNTS: [&str; 2] = ["gpu", "ram_mb"];
/// What workers may have, sorted.
const VALUES: [(&str, &[&str]); 3] =
    [("arch", &["arm", "x86"]), ("feature", &["fetch", "kvm"]), ("os", &["bsd", "linux"])];
/// Priorities at and beyond what a score counts, most of them plain.
const PRIORITIES: [i32; 12] = [0, 0, 0, 0, 1, 1, 5, 16, 17, -1, -1000, 1000];

/// A job without an id.
#[derive(Clone, Debug)]
pub(super) struct JobPart {
    pub(super) job: Job,
    pub(super) tenant: usize,
    pub(super) inputs: BTreeMap<usize, Inputs>,
    pub(super) last_worker: Option<usize>,
    pub(super) promised: Option<usize>,
    pub(super) resource: Wish,
}

/// An attempt without an id.
#[derive(Clone, Debug)]
pub(super) struct AttemptPart {
    pub(super) attempt: Attempt,
    pub(super) tenant: usize,
    pub(super) worker: usize,
    pub(super) has_needs: bool,
    pub(super) holds: Wish,
    pub(super) stopping_for: Option<usize>,
}

/// What a job asks to hold, or an attempt holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wish {
    Nothing,
    Any,
    /// The resource of this number, if there is one.
    Number(usize),
}

impl AttemptPart {
    /// Something that `worker` has, or nothing.
    pub(super) fn needs_of(&self, worker: &Worker) -> Needs {
        let first = worker.has.iter().find(|(_, values)| !values.is_empty());
        let need = first.filter(|_| self.has_needs);
        need.map(|(key, values)| (key.clone(), vec![values[0].clone()])).into_iter().collect()
    }
}

/// Pool number `index`.
pub(crate) fn pool(index: usize) -> Name {
    Name::new(POOLS[index])
}

/// How ids are written.
pub(super) fn spelling() -> impl Strategy<Value = Spelling> {
    select(vec![Spelling::Numbers, Spelling::Words, Spelling::Mixed])
}

/// One of these lengths of time.
pub(super) fn age_of(choices: &[i64]) -> impl Strategy<Value = Millis> + use<> {
    select(choices.to_vec()).prop_map(Millis)
}

/// A moment so far from now.
fn around_now(offsets: &[i64]) -> impl Strategy<Value = Timestamp> + use<> {
    select(offsets.to_vec()).prop_map(|offset| NOW + Millis(offset))
}

/// When an eviction was, around the documented cooldown.
pub(super) fn eviction_age() -> impl Strategy<Value = Timestamp> {
    around_now(&[0, -1, -599_999, -600_000, -700_000])
}

/// A cost of a few, now and then with a fraction.
fn cost(most: i64) -> impl Strategy<Value = Fixed> {
    prop_oneof![
        4 => (0..=most).prop_map(Fixed::whole),
        1 => (0..=most * 1_000).prop_map(Fixed::thousandths),
    ]
}

/// A budget of all tenants together that some jobs exceed.
pub(super) fn budget() -> impl Strategy<Value = Budget> {
    (cost(20), cost(4)).prop_map(|(limit, used)| Budget { limit, used })
}

/// A tenant with limits that bite.
pub(super) fn tenant() -> impl Strategy<Value = Tenant> {
    let quota = (select(vec![0_u32, 0, 1, 2, 4]), option::weighted(0.6, 0..=3_u32));
    let weight = select(vec![0_i64, 1_000, 1_000, 2_000, 3_500]);
    let usage = (weight, cost(3), 0..=3_u64, account());
    let limits = (
        option::weighted(0.4, cost(12)),
        option::weighted(0.4, 0..=5_u32),
        option::weighted(0.5, 0..=2_u32),
        btree_map(0..3_usize, quota, 0..=3),
    );
    (chance(0.9), usage, limits).prop_map(|(active, usage, limits)| {
        let (weight, used, completed, account) = usage;
        let (budget, jobs_max, workspaces, quotas) = limits;
        let quotas = quotas.into_iter().map(|(index, (min, above))| Quota {
            pool: pool(index),
            min,
            max: above.map(|above| min + above),
        });
        Tenant {
            id: TenantId::number(0),
            weight: Fixed::thousandths(weight),
            active,
            used,
            completed,
            account,
            budget,
            jobs_max,
            workspaces,
            quotas: quotas.collect(),
        }
    })
}

/// What a tenant has had: some are ahead, behind, overdue, or predict their jobs well.
fn account() -> impl Strategy<Value = Account> {
    let ahead = select(vec![0_i64, 0, 0, -1_000, 1, 2_500, -90_000_000, 90_000_000]);
    let served = select(vec![0_i64, 0, 1, 60_000, 10_000_000]);
    let most = || select(vec![0_i64, 1, 60_000, 5_000_000]);
    let marks = vec((select(vec![-3_600_000_i64, -60_000, -1, 0]), 0..=16_i64), 0..=3);
    let runs = vec(age_of(&[1, 1_000, 60_000, 3_600_000]), 0..=9);
    let all = (ahead, chance(0.3), served, (most(), most(), 0..=16_i64), marks, runs, chance(0.5));
    all.prop_map(|(ahead, competes, served, (now, before, since), marks, runs, is_right)| {
        let part = |sixteenths: i64| served / 16 * sixteenths;
        let mut marks: Vec<(Timestamp, i64)> =
            marks.into_iter().map(|(ago, at)| (NOW + Millis(ago), part(at))).collect();
        // Both rise.
        let mut at: Vec<i64> = marks.iter().map(|(_, at)| *at).collect();
        marks.sort_unstable();
        at.sort_unstable();
        for (mark, at) in marks.iter_mut().zip(at) {
            mark.1 = at;
        }
        let queue = if marks.is_empty() {
            Peak::default()
        } else {
            Peak { now, before, since: part(since), marks }
        };
        Account {
            ahead: Fixed::thousandths(ahead),
            competes,
            served,
            queue,
            trust: trust(&runs, is_right),
        }
    })
}

/// Runs that were predicted to the point, or all of them at a millisecond.
fn trust(runs: &[Millis], is_right: bool) -> Trust {
    let mut trust = Trust::default();
    for run in runs {
        let log2 = i64::from(run.0.ilog2()) * 1_000;
        trust.runs += Fixed::ONE;
        trust.sum += log2;
        trust.squares += log2 * log2;
        trust.errors += if is_right { 0 } else { log2 * log2 };
    }
    trust
}

/// What came in the span of time that it is now, or in the one before it.
fn recent(amount_max: i64) -> impl Strategy<Value = Recent> {
    let amounts = (0..=amount_max, 0..=amount_max);
    (select(vec![0_i64, 1_200_000, 1_800_000]), amounts).prop_map(|(ago, (amount, before))| {
        let since = Timestamp((NOW.0 - ago) / 600_000 * 600_000);
        Recent { since, amount, before }
    })
}

/// The number of the tenant that owns a resource, if one does.
pub(super) fn resource() -> impl Strategy<Value = Option<usize>> {
    option::weighted(0.7, 0..4_usize)
}

/// Settings of some of the types.
pub(super) fn types() -> impl Strategy<Value = Vec<JobType>> {
    let settings = (
        option::weighted(0.2, 0..3_usize),
        option::weighted(0.4, 0..=3_u32),
        option::weighted(0.4, 0..=2_u32),
        (0..=5_u64, option::weighted(0.5, recent(20))),
    );
    btree_map(select(KINDS.to_vec()), settings, 0..=3).prop_map(|types| {
        let with_name = |(name, (of_pool, jobs_max, worker_max, (rotation, recent)))| JobType {
            name: Name::new(name),
            pool: Option::map(of_pool, pool),
            jobs_max,
            worker_max,
            rotation,
            seen: None,
            recent,
        };
        types.into_iter().map(with_name).collect()
    })
}

fn names(all: &[&str]) -> Vec<Name> {
    all.iter().map(|text| Name::new(text)).collect()
}

fn kind() -> impl Strategy<Value = Option<Name>> {
    option::weighted(0.75, select(names(&KINDS)))
}

fn slots() -> impl Strategy<Value = u32> {
    select(vec![1_u32, 1, 1, 1, 2, 2, 3])
}

/// Amounts of at most so much each.
fn amounts(most: u64) -> impl Strategy<Value = Amounts> {
    btree_map(select(names(&AMOUNTS)), 0..=most, 0..=2)
}

/// Some values of each key; a key may be there with none.
fn has() -> impl Strategy<Value = BTreeMap<Name, Vec<Name>>> {
    let values = |index: usize| subsequence(names(VALUES[index].1), 0..=2);
    let all = (values(0), values(1), values(2), subsequence(vec![0_usize, 1, 2], 0..=3));
    all.prop_map(|(arch, feature, os, keys)| {
        let all = [arch, feature, os];
        keys.into_iter().map(|key| (Name::new(VALUES[key].0), all[key].clone())).collect()
    })
}

/// For no key, or one, some alternatives.
fn needs() -> impl Strategy<Value = Needs> {
    let need = (0..3_usize).prop_flat_map(|key| {
        let values = subsequence(names(VALUES[key].1), 1..=2);
        values.prop_map(move |values| (Name::new(VALUES[key].0), values))
    });
    option::weighted(0.4, need).prop_map(|need| need.into_iter().collect())
}

/// A worker whose id is yet to come.
pub(super) fn worker() -> impl Strategy<Value = Worker> {
    let place = (0..3_usize, -2..=3_i32, chance(0.85), chance(0.12));
    let work = (
        prop_oneof![1 => Just(Vec::new()), 2 => subsequence(names(&KINDS), 1..=3)],
        prop_oneof![
            3 => Just(BTreeMap::new()),
            1 => btree_map(select(names(&KINDS)), 0..=2_u32, 1..=2),
        ],
        has(),
        subsequence(names(&["3", "hot", "warm"]), 0..=2),
    );
    let room = (
        select(vec![1_u32, 1, 2, 3, 4, 4]),
        option::weighted(0.25, 0..=4_u32),
        amounts(4),
        metrics(),
    );
    (place, work, room).prop_map(|(place, work, room)| {
        let (of_pool, rank, healthy, draining) = place;
        let (types, type_max, has, hints) = work;
        let (slots, slots_free, amounts, metrics) = room;
        Worker {
            id: WorkerId::number(0),
            pool: pool(of_pool),
            types,
            type_max,
            has,
            slots,
            slots_free: slots_free.map(|free| free.min(slots)),
            amounts,
            rank,
            healthy,
            draining,
            hints,
            metrics,
        }
    })
}

fn metrics() -> impl Strategy<Value = Metrics> {
    let percent = select(vec![0_i64, 50, 80, 90, 95, 100]);
    let speed = || option::of(select(vec![0_i64, 1, 100, 1_000]).prop_map(Fixed::whole));
    let memory = option::of((0..=4_u64, 0..=4_u64));
    let all = (option::of(percent), memory, speed(), speed(), speed());
    all.prop_map(|(cpu_pct, memory, cpu_score, net_mbps, disk_mbps)| Metrics {
        cpu_pct: cpu_pct.map(Fixed::whole),
        ram_free_mb: memory.map(|(free, _)| free * 1_024),
        ram_total_mb: memory.map(|(free, used)| (free + used) * 1_024),
        cpu_score,
        net_mbps,
        disk_mbps,
    })
}

fn traits() -> impl Strategy<Value = Traits> {
    subsequence(Trait::ALL.to_vec(), 0..=2).prop_map(|facts| facts.into_iter().collect())
}

pub(super) fn estimate() -> impl Strategy<Value = Option<Millis>> {
    option::of(age_of(&[0, 1, 1_000, 60_000, 3_600_000]))
}

/// After how long a job is stopped.
fn limit() -> impl Strategy<Value = Option<Millis>> {
    option::weighted(0.3, age_of(&[1, 1_000, 60_000, 3_600_000]))
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        7 => Just(Wish::Nothing),
        1 => Just(Wish::Any),
        2 => (0..4_usize).prop_map(Wish::Number),
    ]
}

/// A job without an id.
pub(super) fn job() -> impl Strategy<Value = JobPart> {
    let whose = (0..4_usize, kind(), option::weighted(0.2, 0..3_usize), needs());
    let size = (slots(), prop_oneof![2 => Just(Amounts::new()), 1 => amounts(3)], cost(3));
    let when = (
        around_now(&[-3_600_000, -60_000, -20_000, -19_999, -10_000, -9_999, -1, 0, 1]),
        age_of(&[0, 0, 1, 1_000]),
        option::weighted(0.15, around_now(&[-1, 0, 1, 60_000])),
        option::weighted(0.4, around_now(&[-5_000, -1, 0, 1, 5_000])),
    );
    let urgency = (select(PRIORITIES.to_vec()), chance(0.2), 0..=3_u32, estimate(), limit());
    let rest = (traits(), wish(), option::weighted(0.3, select(names(&["3", "hot", "warm"]))));
    let facts = (
        btree_map(0..8_usize, inputs(), 0..=3),
        (option::weighted(0.3, 0..8_usize), option::weighted(0.1, 0..8_usize)),
        option::weighted(0.3, 0..=20_u32),
        0..=12_u32,
        option::weighted(0.4, history()),
    );
    (whose, size, when, urgency, rest, facts).prop_map(
        |(whose, size, when, urgency, rest, facts)| {
            let (ready, submitted_before, not_before, backoff_until) = when;
            let created = ready.min(NOW) - submitted_before;
            let mut job = Job::new(JobId::number(0), TenantId::number(0), created);
            let (tenant, kind, of_pool, needs) = whose;
            (job.kind, job.pool, job.needs) = (kind, of_pool.map(pool), needs);
            (job.slots, job.amounts, job.cost) = size;
            (job.ready, job.not_before, job.backoff_until) = (ready, not_before, backoff_until);
            (job.priority, job.on_demand, job.evictions, job.estimate, job.limit) = urgency;
            let (traits, resource, hint) = rest;
            (job.traits, job.hint) = (traits, hint);
            let (inputs, workers, dependents, rescore_count, history) = facts;
            let (last_worker, promised) = workers;
            (job.dependents, job.rescore_count, job.history) = (dependents, rescore_count, history);
            JobPart { job, tenant, inputs, last_worker, promised, resource }
        },
    )
}

fn inputs() -> impl Strategy<Value = Inputs> {
    let paths = option::of(select(vec![0_u32, 1, 50, 5_000]));
    let bytes = option::of(select(vec![0_u64, 1, 1 << 20, 1 << 34]));
    (paths, bytes)
        .prop_map(|(missing_paths, missing_bytes)| Inputs { missing_paths, missing_bytes })
}

fn history() -> impl Strategy<Value = History> {
    let number = || option::of(select(vec![0_u64, 1, 1_000, 1 << 33]));
    let rate = option::of((0..=1_000_i64).prop_map(Fixed::thousandths));
    let all = (0..=3_u32, number(), number(), number(), estimate(), rate);
    all.prop_map(|(samples, ram_peak_mb, cpu_ms, disk_bytes, duration, oom_rate)| History {
        samples,
        ram_peak_mb,
        cpu_ms,
        disk_bytes,
        duration,
        oom_rate,
    })
}

/// An attempt without an id.
pub(super) fn attempt() -> impl Strategy<Value = AttemptPart> {
    let whose = (0..4_usize, 0..8_usize, kind(), any::<bool>());
    let size = (slots(), prop_oneof![2 => Just(Amounts::new()), 1 => amounts(2)], cost(2));
    let when = (
        around_now(&[-3_600_000, -60_000, -20_000, -1, 0]),
        age_of(&[0, 1, 59_999, 60_000, 3_600_000]),
        estimate(),
        limit(),
    );
    let rest = (
        select(vec![-1_000, -1, 0, 0, 0, 0, 1, 16]),
        (select(vec![0_u32, 0, 0, 1, 3]), chance(0.2)),
        traits(),
        wish(),
        option::weighted(0.15, 0..14_usize),
    );
    (whose, size, when, rest).prop_map(|(whose, size, when, rest)| {
        let (tenant, worker, kind, has_needs) = whose;
        let (slots, amounts, cost) = size;
        let (ready, waited, estimate, limit) = when;
        let (priority, (evictions, on_demand), traits, holds, stopping_for) = rest;
        let attempt = Attempt {
            job: JobId::number(0),
            tenant: TenantId::number(0),
            worker: WorkerId::number(0),
            kind,
            needs: Needs::new(),
            slots,
            amounts,
            priority,
            ready,
            started: NOW.min(ready + waited),
            cost,
            estimate,
            on_demand,
            is_contested: evictions % 2 == 1,
            limit,
            evictions,
            traits,
            holds: None,
            stopping_for: None,
        };
        AttemptPart { attempt, tenant, worker, has_needs, holds, stopping_for }
    })
}
