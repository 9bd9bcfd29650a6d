//! The data after a run, for the checker: the store's records, and notes.

use std::collections::{BTreeMap, BTreeSet};

use checker::{Attempt, History, Job, Key, Limits, Offer};
use model::{Patience, Record, Timestamp};
use store::{Filter, Store as _};

use crate::line::at_once;
use crate::site::{CLOCKS_MS, JOBS_MAX, MANY, QUOTA, Site};

/// The input of the checker, without the notes of workers and clients.
pub(crate) struct Left {
    pub(crate) history: History,
    /// The store's records, by id.
    pub(crate) records: Vec<Record>,
}

/// The data after a run. `keys` are the last answers to each submission.
pub(crate) fn left(site: &Site, keys: Vec<(String, Vec<u64>)>) -> Left {
    let memory = &site.wire.memory;
    let filter = Filter { max: MANY, ..Filter::default() };
    let mut records = at_once(memory.jobs(filter));
    records.sort_by_key(number);
    let mut history = History {
        jobs: records.iter().map(job).collect(),
        said: site.notes.said.clone(),
        marks: site.notes.marks.clone(),
        limits: limits(site),
        workers: offers(site, &records),
        clocks_ms: CLOCKS_MS.cast_signed(),
        ..History::default()
    };
    let ids = records.iter().map(|record| record.id.clone()).collect();
    for (record, past) in records.iter().zip(at_once(memory.attempts(ids))) {
        history.attempts.extend(past.into_iter().map(|past| Attempt {
            job: number(record),
            number: past.number,
            worker: past.worker.to_string(),
            claimed_ms: past.claimed.0,
            ended_ms: Some(past.ended.0),
            heard_ms: Some(past.ended.0),
            ending: past.ending.name().to_owned(),
            error: past.error.unwrap_or_default(),
        }));
        history.attempts.extend(current(record));
    }
    let usage = at_once(memory.usage(Timestamp(0)));
    history.n_completed = usage.iter().map(|usage| usage.completed).sum();
    history.keys = kept(&records, keys, &history);
    Left { history, records }
}

/// Keys with an answer, and keys without one that are labels of jobs.
fn kept(records: &[Record], answered: Vec<(String, Vec<u64>)>, history: &History) -> Vec<Key> {
    let mut tenants: BTreeMap<&str, &str> = BTreeMap::new();
    for said in &history.said {
        if let Some(asked) = said.asked.first() {
            tenants.insert(&said.key, &asked.tenant);
        }
    }
    let mut keys: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for record in records {
        keys.entry(label(record).to_owned()).or_default().push(number(record));
    }
    keys.extend(answered);
    let tenant = |key: &str| tenants.get(key).copied().unwrap_or_default().to_owned();
    keys.into_iter().map(|(key, ids)| Key { tenant: tenant(&key), key, ids }).collect()
}

/// The key under which a job was submitted.
pub(crate) fn label(record: &Record) -> &str {
    record.spec.labels.get("key").map_or("", String::as_str)
}

pub(crate) fn number(record: &Record) -> u64 {
    record.id.as_number().unwrap_or_default()
}

fn limits(site: &Site) -> Limits {
    let slots = site.workers.iter().map(|worker| (worker.name.clone(), worker.slots));
    let of = |tenant: &str, max: u32| [(tenant.to_owned(), max)].into();
    Limits {
        tenant_slots: of("a", QUOTA),
        tenant_jobs: of("b", JOBS_MAX),
        // A scheduler may claim a job for a worker that has moved to a peer. The worker has no room
        // for it, and refuses it.
        worker_slots: slots.filter(|_| !site.wire.is_shared).collect(),
        losses_max: Patience::DEFAULT.losses_max,
        ..Limits::default()
    }
}

/// Every worker runs all types, as far as it has room.
fn offers(site: &Site, records: &[Record]) -> BTreeMap<String, Offer> {
    let types: BTreeSet<String> =
        records.iter().map(|record| record.spec.kind.to_string()).collect();
    let offer = |slots| Offer { slots, types: types.clone(), ..Offer::default() };
    site.workers.iter().map(|worker| (worker.name.clone(), offer(worker.slots))).collect()
}

fn job(record: &Record) -> Job {
    Job {
        id: number(record),
        tenant: record.spec.tenant.to_string(),
        kind: record.spec.kind.to_string(),
        state: record.state.name().to_owned(),
        cause: record.cause.map(|cause| cause.name().to_owned()),
        dedupe: record.spec.dedupe_key.clone(),
        slots: record.spec.slots,
        attempts_max: record.spec.retry.attempts_max,
        backoff_ms: record.spec.retry.backoff.0,
        n_attempts: record.counts.attempts,
        n_failures: record.counts.failures,
        n_losses: record.counts.losses,
        n_refusals: record.counts.refusals,
        created_ms: record.created.0,
        finished_ms: record.finished.map(|at| at.0),
        ..Job::default()
    }
}

fn current(record: &Record) -> Option<Attempt> {
    let current = record.current.as_ref()?;
    Some(Attempt {
        job: number(record),
        number: record.counts.attempts,
        worker: current.worker.to_string(),
        claimed_ms: current.claimed.0,
        ended_ms: None,
        heard_ms: None,
        ending: String::new(),
        error: String::new(),
    })
}
