//! What really happened, out of a store.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use model::job::Needs;
use model::{
    Ending, Fixed, JobId, Millis, Name, Record, State, Tenant, Timestamp, Worker, WorkerId,
};
use serde_json::{Value, json};
use sim::workload::{Bad, Sharer};
use sim::{Fleet, Row, Workload};
use store::{Filter, Options, Past, Postgres, SettingKind, Sqlite, Store};

use super::wrong;
use crate::client;
use crate::place::{DATABASE, Place};
use crate::print::Failure;

/// Jobs that were submitted in a time and have ended, and who ran them.
pub(super) struct History {
    pub(super) rows: Vec<Row>,
    pub(super) bad: Bad,
    pub(super) fleet: Option<Fleet>,
    /// What is set for tenants.
    pub(super) tenants: Vec<Tenant>,
    /// Whether there were more jobs than were to be read.
    pub(super) is_cut: bool,
}

/// When jobs were submitted, and how many of them are read, the newest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
    pub(super) jobs_max: usize,
}

/// Jobs are read so many at a time.
const PAGE: usize = 1_000;
/// So many jobs of a history are read.
pub(super) const JOBS_MAX: usize = 10_000_000;

/// The history in the store at `url`.
pub(super) fn read(url: &str, span: Span) -> Result<History, Failure> {
    let runtime = client::runtime()?;
    let (Loaded { records, attempts, is_cut }, tenants) = runtime.block_on(async {
        let store = open(url).await?;
        let loaded = load(&*store, span).await?;
        Ok::<_, Failure>((loaded, tenants(&*store).await?))
    })?;
    if records.is_empty() {
        let place = Place::named(url)?;
        let error = format!("`{place}` has no job that was submitted then and ran to an end");
        return Err(wrong(error, Some("`--since` and `--until` say when".to_owned())));
    }
    let first = records.iter().filter_map(ready).min().unwrap_or(span.since);
    let mut bad = Bad::default();
    let mut rows = Vec::new();
    for (record, past) in records.iter().zip(&attempts) {
        match row(record, past, first) {
            Ok(row) => rows.push(row),
            Err(problem) => bad.add(|| format!("job {}: {problem}", record.id)),
        }
    }
    Ok(History { rows, bad, fleet: fleet(&records, &attempts), tenants, is_cut })
}

impl History {
    /// Gives tenants the weights that are set for them; whoever has none has 1. In a replay they
    /// are whole: a part of one makes all of them a thousand times as large.
    pub(super) fn weigh(&self, workload: &mut Workload) {
        let weight = |sharer: &Sharer| {
            let own = self.tenants.iter().find(|tenant| tenant.id == sharer.id);
            own.map_or(Fixed::ONE, |tenant| tenant.weight).in_thousandths()
        };
        let weights: Vec<i64> = workload.tenants.iter().map(weight).collect();
        let is_whole = weights.iter().all(|weight| weight % 1_000 == 0);
        for (sharer, weight) in workload.tenants.iter_mut().zip(weights) {
            let weight = if is_whole { weight / 1_000 } else { weight };
            sharer.weight = u32::try_from(weight).unwrap_or(u32::MAX).max(1);
        }
    }
}

/// Every store is read by the same trait. A scheduler may be at work on it.
async fn open(url: &str) -> Result<Box<dyn Store>, Failure> {
    let hint = "`sqlite://maitre-data/maitre.db`, or `postgres://user@host/database`";
    let refuse = |error: String| wrong(error, Some(hint.to_owned()));
    let file = url.strip_prefix("sqlite://").map(Path::new).filter(|path| path.is_file());
    let opened: Result<Box<dyn Store>, store::Error> = match (file, Place::named(url)?) {
        (Some(file), _) => to_read(file),
        (None, Place::Directory(directory)) => to_read(&directory.join(DATABASE)),
        (None, Place::Postgres(url)) => match Postgres::connect(&url, Options::default()).await {
            Ok(store) => Ok(Box::new(store)),
            Err(error) => Err(error),
        },
    };
    opened.map_err(|error| refuse(format!("`--from`: {error}")))
}

fn to_read(path: &Path) -> Result<Box<dyn Store>, store::Error> {
    let store = Sqlite::open_to_read(path, Options::default())?;
    Ok(Box::new(store))
}

/// The finished jobs of a time, oldest first, each with its attempts.
struct Loaded {
    records: Vec<Record>,
    attempts: Vec<Vec<Past>>,
    is_cut: bool,
}

async fn load(store: &dyn Store, span: Span) -> Result<Loaded, Failure> {
    let (mut records, mut attempts) = (Vec::new(), Vec::new());
    let mut is_cut = false;
    let mut before: Option<JobId> = None;
    loop {
        let filter = Filter {
            states: vec![State::Succeeded, State::Failed],
            before: before.clone(),
            max: PAGE,
            ..Filter::default()
        };
        let page = store.jobs(filter).await.context("read the history")?;
        before = page.last().map(|record| record.id.clone());
        // Ids go up with the moment of submission.
        let is_past = page.last().is_none_or(|last| last.created < span.since);
        let is_then = |record: &Record| record.created >= span.since && record.created < span.until;
        let then: Vec<Record> = page.into_iter().filter(is_then).collect();
        let ids = then.iter().map(|record| record.id.clone()).collect();
        let pasts = store.attempts(ids).await.context("read the history")?;
        for (record, past) in then.into_iter().zip(pasts) {
            is_cut |= records.len() >= span.jobs_max;
            // What never ran, such as a job that was too late, says nothing.
            if !is_cut && !past.is_empty() {
                records.push(record);
                attempts.push(past);
            }
        }
        if is_past || is_cut {
            records.reverse();
            attempts.reverse();
            return Ok(Loaded { records, attempts, is_cut });
        }
    }
}

/// The tenants of which something is set. What cannot be read is as if it were not there.
async fn tenants(store: &dyn Store) -> Result<Vec<Tenant>, Failure> {
    let settings = store.settings().await.context("read what is set")?;
    let of_tenants = settings.iter().filter(|setting| setting.kind == SettingKind::Tenant);
    Ok(of_tenants
        .filter_map(|setting| tenant(&setting.name, setting.document.as_deref()?))
        .collect())
}

/// A tenant's setting is what a snapshot would say about it, without its id.
fn tenant(name: &str, document: &str) -> Option<Tenant> {
    let mut fields: serde_json::Map<String, Value> = serde_json::from_str(document).ok()?;
    fields.insert("id".to_owned(), json!(name));
    let read = snapshot::parse(&json!({ "tenants": [fields] }).to_string()).ok()?;
    read.tenants.into_iter().next()
}

/// When a job could first have run: waits for other jobs are not a scheduler's.
fn ready(record: &Record) -> Option<Timestamp> {
    let not_before = record.spec.not_before;
    record.ready.map(|ready| not_before.map_or(ready, |moment| moment.max(ready)))
}

fn row(record: &Record, past: &[Past], first: Timestamp) -> Result<Row, String> {
    let spec = &record.spec;
    let last = past.last().ok_or("it never ran")?;
    let ready = ready(record).ok_or("it was never ready")?;
    let key = (!spec.history_key.is_empty()).then(|| Name::new(&spec.history_key));
    Ok(Row {
        id: record.id.clone(),
        arrival: Timestamp(ready.since(first).0),
        duration: last.ended.since(last.started.unwrap_or(last.claimed)),
        requested: spec.estimate,
        tenant: spec.tenant.clone(),
        kind: Some(spec.kind.clone()),
        needs: spec.needs.clone(),
        slots: spec.slots,
        priority: record.priority,
        on_demand: spec.on_demand,
        history_key: key,
        label: spec.hint.clone(),
    })
}

/// The workers that ran the jobs, as far as what they ran says what they are: the types and needs
/// of their jobs, and as many slots as they ever had busy at once.
fn fleet(records: &[Record], attempts: &[Vec<Past>]) -> Option<Fleet> {
    let mut seen: BTreeMap<WorkerId, Seen> = BTreeMap::new();
    for (record, past) in records.iter().zip(attempts) {
        for attempt in past.iter().filter(|attempt| attempt.ending != Ending::Refused) {
            seen.entry(attempt.worker.clone()).or_default().add(record, attempt);
        }
    }
    let workers = seen.into_iter().map(|(id, seen)| seen.worker(id));
    Fleet::of_workers(workers.collect())
}

/// What a worker did.
#[derive(Default)]
struct Seen {
    kinds: Vec<Name>,
    has: Needs,
    /// Slots that were taken or given back, and when.
    changes: Vec<(Timestamp, i64)>,
}

impl Seen {
    fn add(&mut self, record: &Record, attempt: &Past) {
        let slots = i64::from(record.spec.slots);
        self.changes.push((attempt.claimed, slots));
        self.changes.push((attempt.ended.max(attempt.claimed + Millis(1)), -slots));
        self.kinds.push(record.spec.kind.clone());
        for (key, values) in &record.spec.needs {
            self.has.entry(key.clone()).or_default().extend(values.iter().cloned());
        }
    }

    fn worker(mut self, id: WorkerId) -> Worker {
        let sorted = |names: &mut Vec<Name>| {
            names.sort_unstable();
            names.dedup();
        };
        sorted(&mut self.kinds);
        self.has.values_mut().for_each(sorted);
        // What ends at a moment makes room for what starts at it.
        self.changes.sort_unstable();
        let (mut slots, mut most) = (0, 1);
        for (_, change) in self.changes {
            slots += change;
            most = most.max(slots);
        }
        let slots = u32::try_from(most).unwrap_or(u32::MAX);
        Worker { types: self.kinds, has: self.has, slots, ..Worker::new(id) }
    }
}
