//! Lists of records as one array a column, for statements that write many rows.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use model::{Cause, Fixed, Name, Record, Spec, State, Timestamp, WorkerId};

use super::fault::Fault;
use crate::{Past, document, number};

/// A second of waiting is worth as much as this much of a priority's step (64 s).
pub(super) const STEP_MS: i64 = 64_000;
/// Priorities beyond this count as this much.
pub(super) const PRIORITY_CLAMP: i32 = 16;

/// Text as a database takes it: it has no place for a zero.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

fn clean_some(text: Option<&String>) -> Option<String> {
    text.map(|text| clean(text))
}

/// Where a job stands that waits for a worker: its place in its queue, or the moment from which on
/// it has one.
pub(super) fn stand(record: &Record, now: Timestamp) -> (Option<i64>, Option<i64>) {
    if record.state != State::Queued || record.on_hold {
        return (None, None);
    }
    let due = record.backoff_until.max(record.spec.not_before).filter(|due| *due > now);
    if let Some(due) = due {
        return (None, Some(due.0));
    }
    let Timestamp(ready_ms) = record.ready.unwrap_or(record.created);
    let priority = record.priority.clamp(-PRIORITY_CLAMP, PRIORITY_CLAMP);
    (Some(ready_ms.saturating_sub(STEP_MS * i64::from(priority))), None)
}

/// Which queue a job stands in: one for jobs of a tenant that only their order tells apart. The
/// same in every process; two that are taken for one share a window, and no harm is done.
pub(super) fn queue(spec: &Spec) -> i64 {
    let mut hasher = DefaultHasher::new();
    let Spec { tenant, kind, pool, needs, slots, amounts, on_demand, resource, .. } = spec;
    let needs: BTreeMap<String, Vec<String>> = needs
        .iter()
        .map(|(key, any)| (key.to_string(), any.iter().map(Name::to_string).collect()))
        .collect();
    let amounts: Vec<(String, u64)> =
        amounts.iter().map(|(name, n)| (name.to_string(), *n)).collect();
    let (tenant, kind) = (tenant.to_string(), kind.to_string());
    let pool = pool.as_ref().map(Name::to_string);
    let resource = resource.as_ref().map(|ask| format!("{ask:?}"));
    (tenant, kind, pool, needs, slots, amounts, on_demand, resource).hash(&mut hasher);
    hasher.finish().cast_signed()
}

/// New jobs that are unfinished.
#[derive(Default)]
pub(super) struct NewJobs {
    pub(super) id: Vec<i64>,
    pub(super) tenant: Vec<String>,
    pub(super) kind: Vec<String>,
    pub(super) dedupe_key: Vec<Option<String>>,
    pub(super) group_name: Vec<Option<String>>,
    pub(super) state: Vec<&'static str>,
    pub(super) fence: Vec<i64>,
    pub(super) priority: Vec<i32>,
    pub(super) ready: Vec<Option<i64>>,
    pub(super) on_hold: Vec<bool>,
    pub(super) n_blockers: Vec<i64>,
    pub(super) n_dependents: Vec<i64>,
    pub(super) queue: Vec<i64>,
    pub(super) place: Vec<Option<i64>>,
    pub(super) due: Vec<Option<i64>>,
    pub(super) document: Vec<String>,
    pub(super) payload: Vec<Vec<u8>>,
}

impl NewJobs {
    pub(super) fn push(&mut self, id: i64, record: &Record, now: Timestamp) -> Result<(), Fault> {
        let Record { spec, .. } = record;
        let (place, due) = stand(record, now);
        self.id.push(id);
        self.tenant.push(spec.tenant.to_string());
        self.kind.push(spec.kind.to_string());
        self.dedupe_key.push(spec.dedupe_key.clone());
        self.group_name.push(spec.group.clone());
        self.state.push(record.state.name());
        self.fence.push(number::signed(record.fence));
        self.priority.push(record.priority);
        self.ready.push(record.ready.map(|moment| moment.0));
        self.on_hold.push(record.on_hold);
        self.n_blockers.push(i64::from(record.n_blockers));
        self.n_dependents.push(i64::from(record.n_dependents));
        self.queue.push(queue(spec));
        self.place.push(place);
        self.due.push(due);
        self.document.push(document::write(spec)?);
        self.payload.push(spec.payload.clone());
        Ok(())
    }
}

impl NewJobs {
    /// The queues and places of those that wait for a worker.
    pub(super) fn standing(&self) -> impl Iterator<Item = (i64, i64)> {
        self.queue.iter().zip(&self.place).filter_map(|(queue, place)| Some((*queue, (*place)?)))
    }
}

impl Changes {
    /// The queues and places of those that wait for a worker.
    pub(super) fn standing(&self) -> impl Iterator<Item = (i64, i64)> {
        self.queue.iter().zip(&self.place).filter_map(|(queue, place)| Some((*queue, (*place)?)))
    }
}

/// Jobs that stay unfinished, and change.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) queue: Vec<i64>,
    pub(super) id: Vec<i64>,
    pub(super) fence_before: Vec<i64>,
    pub(super) state: Vec<&'static str>,
    pub(super) fence: Vec<i64>,
    pub(super) priority: Vec<i32>,
    pub(super) counts: [Vec<i64>; 5],
    pub(super) ready: Vec<Option<i64>>,
    pub(super) backoff_until: Vec<Option<i64>>,
    pub(super) flags: [Vec<bool>; 3],
    pub(super) n_blockers: Vec<i64>,
    pub(super) n_dependents: Vec<i64>,
    pub(super) last_worker: Vec<Option<String>>,
    pub(super) error: Vec<Option<String>>,
    pub(super) exit_code: Vec<Option<i32>>,
    pub(super) cost: Vec<Option<i64>>,
    pub(super) place: Vec<Option<i64>>,
    pub(super) due: Vec<Option<i64>>,
}

impl Changes {
    pub(super) fn push(&mut self, (id, fence): (i64, u64), record: &Record, now: Timestamp) {
        let (place, due) = stand(record, now);
        self.queue.push(queue(&record.spec));
        self.id.push(id);
        self.fence_before.push(number::signed(fence));
        self.state.push(record.state.name());
        self.fence.push(number::signed(record.fence));
        self.priority.push(record.priority);
        push_counts(&mut self.counts, record);
        self.ready.push(record.ready.map(|moment| moment.0));
        self.backoff_until.push(record.backoff_until.map(|moment| moment.0));
        self.flags[0].push(record.on_hold);
        self.flags[1].push(record.cancelling);
        self.flags[2].push(record.current.is_some());
        self.n_blockers.push(i64::from(record.n_blockers));
        self.n_dependents.push(i64::from(record.n_dependents));
        self.last_worker.push(record.last_worker.as_ref().map(WorkerId::to_string));
        self.error.push(clean_some(record.error.as_ref()));
        self.exit_code.push(record.exit_code);
        self.cost.push(record.cost.map(Fixed::in_thousandths));
        self.place.push(place);
        self.due.push(due);
    }
}

/// Jobs that come to their end.
#[derive(Default)]
pub(super) struct Ends {
    pub(super) id: Vec<i64>,
    pub(super) fence_before: Vec<i64>,
    pub(super) state: Vec<&'static str>,
    pub(super) fence: Vec<i64>,
    pub(super) counts: [Vec<i64>; 5],
    pub(super) last_worker: Vec<Option<String>>,
    pub(super) cause: Vec<Option<&'static str>>,
    pub(super) error: Vec<Option<String>>,
    pub(super) exit_code: Vec<Option<i32>>,
    pub(super) cost: Vec<Option<i64>>,
    pub(super) result: Vec<Option<Vec<u8>>>,
}

impl Ends {
    pub(super) fn push(&mut self, (id, fence): (i64, u64), record: &Record) {
        self.id.push(id);
        self.fence_before.push(number::signed(fence));
        self.state.push(record.state.name());
        self.fence.push(number::signed(record.fence));
        push_counts(&mut self.counts, record);
        self.last_worker.push(record.last_worker.as_ref().map(WorkerId::to_string));
        self.cause.push(record.cause.map(Cause::name));
        self.error.push(clean_some(record.error.as_ref()));
        self.exit_code.push(record.exit_code);
        self.cost.push(record.cost.map(Fixed::in_thousandths));
        self.result.push(record.result.clone());
    }
}

fn push_counts(columns: &mut [Vec<i64>; 5], record: &Record) {
    let counts = &record.counts;
    let values =
        [counts.failures, counts.losses, counts.evictions, counts.refusals, counts.revived];
    for (column, value) in columns.iter_mut().zip(values) {
        column.push(i64::from(value));
    }
}

/// Attempts that ended.
#[derive(Default)]
pub(super) struct Pasts {
    pub(super) job: Vec<i64>,
    pub(super) number: Vec<i64>,
    pub(super) worker: Vec<String>,
    pub(super) claimed: Vec<i64>,
    pub(super) started: Vec<Option<i64>>,
    pub(super) ended: Vec<i64>,
    pub(super) ending: Vec<&'static str>,
    pub(super) error: Vec<Option<String>>,
    pub(super) exit_code: Vec<Option<i32>>,
    pub(super) measured: [Vec<Option<i64>>; 3],
    pub(super) out_of_memory: Vec<bool>,
    pub(super) why: Vec<String>,
}

impl Pasts {
    pub(super) fn push(&mut self, job: i64, past: &Past) {
        self.job.push(job);
        self.number.push(i64::from(past.number));
        self.worker.push(past.worker.to_string());
        self.claimed.push(past.claimed.0);
        self.started.push(past.started.map(|moment| moment.0));
        self.ended.push(past.ended.0);
        self.ending.push(past.ending.name());
        self.error.push(clean_some(past.error.as_ref()));
        self.exit_code.push(past.exit_code);
        let measured = &past.measured;
        let values = [measured.ram_peak_mb, measured.cpu_ms, measured.disk_bytes];
        for (column, value) in self.measured.iter_mut().zip(values) {
            column.push(value.map(number::signed));
        }
        self.out_of_memory.push(measured.out_of_memory);
        self.why.push(past.why.clone());
    }
}
