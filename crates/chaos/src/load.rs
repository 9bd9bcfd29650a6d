//! The jobs of the clients: each kind exercises a rule of the checker.

use std::collections::BTreeMap;

use checker::Asked;
use faults::Chance;
use proto::v1;
use serde::{Deserialize, Serialize};

use crate::crew::{TIGHT, WIDE};

/// Types that all workers run, a type with a limit, a type without retention, and a type that few
/// workers run.
pub(crate) const TYPES: [&str; 4] = ["free", RARE.0, FLEETING, HEAVY];
/// The type that few workers run.
pub(crate) const HEAVY: &str = "heavy";
/// The type without retention: a job without a trace is deleted at its end.
pub(crate) const FLEETING: &str = "fleeting";
/// The type with a limit of live attempts.
pub(crate) const RARE: (&str, u32) = ("rare", 3);
/// The tenant with a quota of slots, in the pool of all its jobs.
pub(crate) const CAPPED: (&str, u32) = ("capped", 4);
/// The tenant that can fill a pool, and its limit of slots there.
pub(crate) const YIELDING: (&str, u32) = ("yielding", 6);
/// The tenant that preempts others there until it has its minimum, and its limit of slots.
pub(crate) const OWED: (&str, u32) = ("owed", 4);
pub(crate) const OWED_MIN: u32 = 2;
/// The tenant with a low limit of live attempts.
pub(crate) const NARROW: (&str, u32) = ("narrow", 2);
/// The tenant with a budget. Each of its jobs costs 1.
pub(crate) const BUDGET: (&str, i64) = ("thrifty", 60);
/// The label with the name of the submission, with or without a key.
pub(crate) const LABEL: &str = "submission";
/// Exclusive locks.
const RESOURCES: [&str; 3] = ["r1", "r2", "r3"];
/// The run time of most jobs.
const SHORT_MS: (u64, u64) = (0, 10);
/// The run time of jobs with a limit: long enough to see a violation.
const LIMITED_MS: (u64, u64) = (5, 60);
/// The run time of jobs that fill a pool, and their number.
const LONG_MS: (u64, u64) = (1_000, 1_500);
const YIELDING_JOBS: (u64, u64) = (6, 8);
/// The priority of jobs that preempt. No other job has as much.
const IMPORTANT: i32 = 9;
/// Jobs in a large submission.
const MANY: (u64, u64) = (20, 70);
const RETRY: v1::Retry = v1::Retry { attempts_max: 3, backoff_ms: 1_000, backoff_ms_max: 2_000 };

/// The behaviour of a job, from its payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manner {
    /// Its run time.
    pub(crate) ms: u64,
    pub(crate) end: End,
}

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    /// It succeeds.
    Done,
    /// It fails the first time.
    Flaky,
    /// It always fails with a transient error.
    Failing,
    /// It fails with a permanent error.
    Wrong,
}

/// A random submission. `known` are earlier jobs of tenant `a`.
pub(crate) fn request(chance: &mut Chance, key: String, known: &[u64]) -> v1::SubmitRequest {
    let one = |chance: &mut Chance, tenant: &str| vec![job(chance, tenant)];
    let (mut jobs, mut array) = match chance.between(0, 99) {
        0..=7 => (chain(chance, known), 0),
        8..=13 => (deduped(chance), 0),
        14..=18 => (one(chance, "b"), u32::try_from(chance.between(3, 12)).unwrap_or(3)),
        19..=25 => (few(chance, CAPPED.0), 0),
        26..=30 => (few(chance, NARROW.0), 0),
        31..=33 => (few(chance, BUDGET.0), 0),
        34..=38 => (rare(chance), 0),
        39..=42 => (holding(chance), 0),
        43..=59 => (fleeting(chance), 0),
        60..=66 => (picky(chance), 0),
        _ => {
            let tenant = if chance.is_one_in(2) { "a" } else { "b" };
            let n = chance.between(MANY.0, MANY.1);
            ((0..n).map(|_| any(chance, tenant)).collect(), 0)
        }
    };
    if jobs.len() > 1 {
        array = 0;
    }
    jobs = jobs.into_iter().map(|job| labelled(job, &key)).collect();
    // A job with a key is not deleted at its end.
    let has_key = jobs[0].r#type != FLEETING || chance.is_one_in(5);
    v1::SubmitRequest { jobs, idempotency_key: if has_key { key } else { String::new() }, array }
}

/// More jobs than a pool has room for, and more important jobs of a tenant below its minimum there.
/// `keys` are those of the two submissions.
pub(crate) fn squeeze(chance: &mut Chance, keys: [String; 2]) -> [v1::SubmitRequest; 2] {
    let submission = |key: String, jobs: Vec<v1::Spec>| v1::SubmitRequest {
        jobs: jobs.into_iter().map(|job| labelled(job, &key)).collect(),
        idempotency_key: key,
        array: 0,
    };
    let pool = || TIGHT.to_owned();
    let [long, short] = keys;
    let n = chance.between(YIELDING_JOBS.0, YIELDING_JOBS.1);
    let yielding = (0..n).map(|_| {
        let priority = i32::try_from(chance.between(0, 5)).unwrap_or(0);
        v1::Spec { pool: pool(), priority, ..timed(chance, YIELDING.0, LONG_MS) }
    });
    let long = submission(long, yielding.collect());
    let n = chance.between(1, u64::from(OWED.1));
    let owed = (0..n).map(|_| v1::Spec {
        pool: pool(),
        priority: IMPORTANT,
        ..timed(chance, OWED.0, LIMITED_MS)
    });
    [long, submission(short, owed.collect())]
}

fn labelled(mut job: v1::Spec, key: &str) -> v1::Spec {
    job.labels.insert(LABEL.to_owned(), key.to_owned());
    job
}

/// The specification of a job for the checker.
pub(crate) fn asked(spec: &v1::Spec) -> Asked {
    let places = spec.after_indexes.iter().filter_map(|at| usize::try_from(*at).ok());
    Asked {
        tenant: spec.tenant.clone(),
        after: spec.after.clone(),
        after_indexes: places.collect(),
        run_if_failed: spec.run_if_failed,
        terms: Some(terms(
            (&spec.r#type, spec.slots, spec.priority),
            (non_empty(&spec.pool), non_empty(&spec.resource)),
            spec.needs.iter().map(|(key, any)| (key.clone(), any.values.clone())).collect(),
            &spec.amounts.iter().map(|(name, n)| (name.clone(), *n)).collect(),
        )),
        label: spec.labels.get(LABEL).cloned().unwrap_or_default(),
    }
}

fn non_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// The specification of a job, in a form that clients and the reader of the store share.
pub(crate) fn terms(
    (kind, slots, priority): (&str, u32, i32),
    (pool, resource): (Option<&str>, Option<&str>),
    mut needs: BTreeMap<String, Vec<String>>,
    amounts: &BTreeMap<String, u64>,
) -> String {
    for any in needs.values_mut() {
        any.sort_unstable();
    }
    let slots = slots.max(1);
    format!("{kind} {slots} {priority} {pool:?} {resource:?} {needs:?} {amounts:?}")
}

fn job(chance: &mut Chance, tenant: &str) -> v1::Spec {
    timed(chance, tenant, SHORT_MS)
}

/// A job with a run time in this range, unless it is one of the slow ones or fails.
fn timed(chance: &mut Chance, tenant: &str, (least_ms, most_ms): (u64, u64)) -> v1::Spec {
    let (ms, end) = match chance.between(0, 99) {
        0..=2 => (chance.between(300, 5_000), End::Done),
        3..=5 => (chance.between(0, 30), End::Flaky),
        6 => (0, End::Failing),
        7 => (0, End::Wrong),
        _ => (chance.between(least_ms, most_ms), End::Done),
    };
    let payload = serde_json::to_vec(&Manner { ms, end }).unwrap_or_default();
    let priority = i32::try_from(chance.between(0, 5)).unwrap_or(0);
    // Some of the slow ones exceed their run timeout.
    let run_timeout_ms = (ms > 4_700).then_some(1_000);
    v1::Spec {
        tenant: tenant.to_owned(),
        r#type: TYPES[0].to_owned(),
        payload,
        priority,
        retry: Some(RETRY),
        run_timeout_ms,
        ..v1::Spec::default()
    }
}

/// A job that may have requirements.
fn any(chance: &mut Chance, tenant: &str) -> v1::Spec {
    let job = job(chance, tenant);
    if chance.is_one_in(12) { demand(chance, job) } else { job }
}

/// A few jobs that not every worker can run.
fn picky(chance: &mut Chance) -> Vec<v1::Spec> {
    let n = chance.between(2, 9);
    let one = |chance: &mut Chance| {
        let job = timed(chance, "b", LIMITED_MS);
        demand(chance, job)
    };
    (0..n).map(|_| one(chance)).collect()
}

/// The same job with a requirement.
fn demand(chance: &mut Chance, job: v1::Spec) -> v1::Spec {
    let need = |key: &str, any: &[&str]| {
        let values = any.iter().map(|value| (*value).to_owned()).collect();
        (key.to_owned(), v1::Values { values })
    };
    let amount = |name: &str, n: u64| [(name.to_owned(), n)].into();
    let (few, n) = (u32::try_from(chance.between(2, 3)).unwrap_or(2), chance.between(1, 4));
    match chance.between(0, 9) {
        0 => v1::Spec { needs: [need("os", &["linux"])].into(), ..job },
        1 => v1::Spec { needs: [need("os", &["mac"])].into(), ..job },
        2 => v1::Spec { needs: [need("arch", &["arm", "riscv"])].into(), ..job },
        3 => v1::Spec { needs: [need("os", &["linux"]), need("arch", &["x86"])].into(), ..job },
        4 => v1::Spec { r#type: HEAVY.to_owned(), ..job },
        5 => v1::Spec { amounts: amount("ram", n), ..job },
        6 => v1::Spec { amounts: amount("gpu", 1), ..job },
        7 => v1::Spec { slots: few, ..job },
        8 => v1::Spec { pool: TIGHT.to_owned(), slots: few, ..job },
        _ => v1::Spec { pool: WIDE.to_owned(), amounts: amount("ram", n), slots: few, ..job },
    }
}

/// A few jobs of a tenant with a limit.
fn few(chance: &mut Chance, tenant: &str) -> Vec<v1::Spec> {
    let n = chance.between(1, 6);
    let slots = |chance: &mut Chance| if tenant == CAPPED.0 && chance.is_one_in(3) { 2 } else { 1 };
    let limited = |chance: &mut Chance| timed(chance, tenant, LIMITED_MS);
    let pool = if tenant == CAPPED.0 { WIDE } else { "" };
    let one = |chance: &mut Chance| v1::Spec {
        slots: slots(chance),
        pool: pool.to_owned(),
        ..limited(chance)
    };
    (0..n).map(|_| one(chance)).collect()
}

fn rare(chance: &mut Chance) -> Vec<v1::Spec> {
    let n = chance.between(1, 6);
    (0..n)
        .map(|_| v1::Spec { r#type: RARE.0.to_owned(), ..timed(chance, "b", LIMITED_MS) })
        .collect()
}

/// Many jobs without a trace, or some with dependencies, with a name, or of a tenant with a limit.
fn fleeting(chance: &mut Chance) -> Vec<v1::Spec> {
    let jobs = match chance.between(0, 19) {
        0..=3 => chain(chance, &[]),
        4 => deduped(chance),
        5 => few(chance, CAPPED.0),
        6 => few(chance, NARROW.0),
        7 => few(chance, BUDGET.0),
        _ => {
            let n = chance.between(MANY.0, MANY.1);
            (0..n).map(|_| job(chance, "b")).collect()
        }
    };
    jobs.into_iter().map(|job| v1::Spec { r#type: FLEETING.to_owned(), ..job }).collect()
}

fn holding(chance: &mut Chance) -> Vec<v1::Spec> {
    let n = chance.between(1, 4);
    let hold = |chance: &mut Chance| {
        let resource = chance.pick(&RESOURCES).copied().unwrap_or_default().to_owned();
        v1::Spec { resource, ..timed(chance, "a", LIMITED_MS) }
    };
    (0..n).map(|_| hold(chance)).collect()
}

fn deduped(chance: &mut Chance) -> Vec<v1::Spec> {
    let dedupe_key = format!("d{}", chance.between(0, 3));
    vec![v1::Spec { dedupe_key, ..job(chance, "a") }]
}

/// Three jobs: one depends on the first, and one on both, and perhaps on an earlier one.
fn chain(chance: &mut Chance, known: &[u64]) -> Vec<v1::Spec> {
    let first = job(chance, "a");
    let run_if_failed = chance.is_one_in(2);
    let second = v1::Spec { after_indexes: vec![0], run_if_failed, ..job(chance, "a") };
    let after = chance.pick(known).copied().into_iter().collect();
    let third = v1::Spec { after_indexes: vec![0, 1], after, ..job(chance, "a") };
    vec![first, second, third]
}
