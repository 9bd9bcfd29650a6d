//! Records as one array for each column, for statements that write many rows.

use std::error::Error;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Deref;

use bytes::BytesMut;
use model::{Cause, Fixed, Record, Spec, State, Timestamp, WorkerId};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::fault::Fault;
use crate::{Past, Run, document, number};

type BoxedError = Box<dyn Error + Sync + Send>;

/// One step of priority counts like this waiting time (64 s).
pub(super) const STEP_MS: i64 = 64_000;
/// Priorities beyond this bound count like the bound.
pub(super) const PRIORITY_CLAMP: i32 = 16;

/// Text without zero bytes, which Postgres rejects.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

fn clean_some(text: Option<&String>) -> Option<String> {
    text.map(|text| clean(text))
}

/// The place of a waiting job in its queue, or the time at which it gets one.
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

/// The queue of a new job. Jobs of a tenant that differ only in their order have the same queue. A
/// hash collision puts two queues into one window. A different build, or the SQL function `submit`,
/// may hash differently and so make two queues of one. Neither does harm. The queue of an existing
/// job is in its row only.
pub(super) fn queue(spec: &Spec) -> i64 {
    let mut hasher = DefaultHasher::new();
    let Spec { tenant, kind, pool, needs, slots, amounts, on_demand, resource, .. } = spec;
    (tenant, kind, pool, needs, slots, amounts, on_demand, resource).hash(&mut hasher);
    hasher.finish().cast_signed()
}

/// One column of many rows.
#[derive(Debug)]
pub(super) struct Column<T>(Vec<T>);

/// The value of a row in a column.
pub(super) trait Cell: ToSql + Debug {
    fn is_nothing(&self) -> bool {
        false
    }
}

impl Cell for bool {}
impl Cell for i32 {}
impl Cell for i64 {}
impl Cell for &str {}
impl Cell for String {}
impl Cell for Vec<u8> {}

impl<T: Cell> Cell for Option<T> {
    fn is_nothing(&self) -> bool {
        self.is_none()
    }
}

impl<T> Column<T> {
    fn push(&mut self, cell: T) {
        self.0.push(cell);
    }
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FromIterator<T> for Column<T> {
    fn from_iter<I: IntoIterator<Item = T>>(cells: I) -> Self {
        Self(cells.into_iter().collect())
    }
}

impl<T> Deref for Column<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// An all-null column is sent as null, without an array: `unnest` then gives each row a null.
impl<T: Cell> ToSql for Column<T> {
    fn to_sql(&self, list: &Type, out: &mut BytesMut) -> Result<IsNull, BoxedError> {
        if self.0.iter().all(Cell::is_nothing) {
            return Ok(IsNull::Yes);
        }
        self.0.to_sql(list, out)
    }

    fn accepts(list: &Type) -> bool {
        Vec::<T>::accepts(list)
    }

    to_sql_checked!();
}

/// Rows as one array for each column, in the order of the statements.
pub(super) trait Columns {
    /// All columns.
    fn arrays(&self) -> Vec<&(dyn ToSql + Sync)>;

    /// One row.
    fn row(&self, at: usize) -> Vec<&(dyn ToSql + Sync)>;
}

macro_rules! columns {
    ($(#[$doc:meta])* $rows:ident { $($column:ident: $type:ty),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(super) struct $rows {
            $(pub(super) $column: Column<$type>,)+
        }

        impl Columns for $rows {
            fn arrays(&self) -> Vec<&(dyn ToSql + Sync)> {
                vec![$(&self.$column),+]
            }

            fn row(&self, at: usize) -> Vec<&(dyn ToSql + Sync)> {
                vec![$(&self.$column[at]),+]
            }
        }
    };
}

columns! {
    /// New jobs that are unfinished.
    NewJobs {
        id: i64,
        tenant: String,
        kind: String,
        dedupe_key: Option<String>,
        group_name: Option<String>,
        state: &'static str,
        fence: i64,
        priority: i32,
        ready: Option<i64>,
        on_hold: bool,
        n_blockers: i64,
        n_dependents: i64,
        queue: i64,
        place: Option<i64>,
        due: Option<i64>,
        document: String,
        payload: Vec<u8>,
    }
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

columns! {
    /// Existing jobs that are unfinished after the change.
    Changes {
        id: i64,
        fence_before: i64,
        state: &'static str,
        fence: i64,
        priority: i32,
        failures: i64,
        losses: i64,
        evictions: i64,
        refusals: i64,
        revived: i64,
        ready: Option<i64>,
        backoff_until: Option<i64>,
        on_hold: bool,
        cancelling: bool,
        is_live: bool,
        n_blockers: i64,
        n_dependents: i64,
        last_worker: Option<String>,
        error: Option<String>,
        exit_code: Option<i32>,
        cost: Option<i64>,
        place: Option<i64>,
        due: Option<i64>,
        queue: i64,
    }
}

impl Changes {
    pub(super) fn push(&mut self, (id, fence): (i64, u64), record: &Record, now: Timestamp) {
        let (place, due) = stand(record, now);
        self.id.push(id);
        self.fence_before.push(number::signed(fence));
        self.state.push(record.state.name());
        self.fence.push(number::signed(record.fence));
        self.priority.push(record.priority);
        self.failures.push(i64::from(record.counts.failures));
        self.losses.push(i64::from(record.counts.losses));
        self.evictions.push(i64::from(record.counts.evictions));
        self.refusals.push(i64::from(record.counts.refusals));
        self.revived.push(i64::from(record.counts.revived));
        self.ready.push(record.ready.map(|moment| moment.0));
        self.backoff_until.push(record.backoff_until.map(|moment| moment.0));
        self.on_hold.push(record.on_hold);
        self.cancelling.push(record.cancelling);
        self.is_live.push(record.current.is_some());
        self.n_blockers.push(i64::from(record.n_blockers));
        self.n_dependents.push(i64::from(record.n_dependents));
        self.last_worker.push(record.last_worker.as_ref().map(WorkerId::to_string));
        self.error.push(clean_some(record.error.as_ref()));
        self.exit_code.push(record.exit_code);
        self.cost.push(record.cost.map(Fixed::in_thousandths));
        self.place.push(place);
        self.due.push(due);
        self.queue.push(queue(&record.spec));
    }
}

columns! {
    /// Jobs that become final.
    Ends {
        id: i64,
        fence_before: i64,
        state: &'static str,
        fence: i64,
        failures: i64,
        losses: i64,
        evictions: i64,
        refusals: i64,
        revived: i64,
        last_worker: Option<String>,
        cause: Option<&'static str>,
        error: Option<String>,
        exit_code: Option<i32>,
        cost: Option<i64>,
        result: Option<Vec<u8>>,
    }
}

impl Ends {
    pub(super) fn push(&mut self, (id, fence): (i64, u64), record: &Record) {
        self.id.push(id);
        self.fence_before.push(number::signed(fence));
        self.state.push(record.state.name());
        self.fence.push(number::signed(record.fence));
        self.failures.push(i64::from(record.counts.failures));
        self.losses.push(i64::from(record.counts.losses));
        self.evictions.push(i64::from(record.counts.evictions));
        self.refusals.push(i64::from(record.counts.refusals));
        self.revived.push(i64::from(record.counts.revived));
        self.last_worker.push(record.last_worker.as_ref().map(WorkerId::to_string));
        self.cause.push(record.cause.map(Cause::name));
        self.error.push(clean_some(record.error.as_ref()));
        self.exit_code.push(record.exit_code);
        self.cost.push(record.cost.map(Fixed::in_thousandths));
        self.result.push(record.result.clone());
    }
}

columns! {
    /// Jobs that succeeded without a result: all that changes in their rows. The charge and the run
    /// may be written separately.
    Successes {
        id: i64,
        fence_before: i64,
        started: Option<i64>,
        exit_code: Option<i32>,
        cost: Option<i64>,
        charged: Option<i64>,
        history_key: Option<String>,
        fetched_paths: Option<i64>,
        fetched_bytes: Option<i64>,
    }
}

impl Successes {
    /// Adds the job if it ended in this way. `fence` is the one before.
    pub(super) fn take(&mut self, (id, fence): (i64, u64), record: &Record, past: &Past) -> bool {
        let is_taken =
            past.is_plain(record) && record.fence == fence + 1 && record.result.is_none();
        if is_taken {
            self.push((id, fence), record, past, (None, None));
        }
        is_taken
    }

    /// Adds a job that ended in this way, with its charge and its run.
    pub(super) fn push(
        &mut self,
        (id, fence): (i64, u64),
        record: &Record,
        past: &Past,
        (charged, run): (Option<Fixed>, Option<&Run>),
    ) {
        let fetched = run.and_then(|run| run.fetched);
        self.id.push(id);
        self.fence_before.push(number::signed(fence));
        self.started.push(past.started.map(|moment| moment.0));
        self.exit_code.push(record.exit_code);
        self.cost.push(record.cost.map(Fixed::in_thousandths));
        self.charged.push(charged.map(Fixed::in_thousandths));
        self.history_key.push(run.map(|run| run.history_key.clone()));
        self.fetched_paths.push(fetched.map(|(paths, _)| i64::from(paths)));
        self.fetched_bytes.push(fetched.map(|(_, bytes)| number::signed(bytes)));
    }
}

columns! {
    /// Attempts that ended.
    Pasts {
        job: i64,
        number: i64,
        worker: String,
        claimed: i64,
        started: Option<i64>,
        ended: i64,
        ending: &'static str,
        error: Option<String>,
        exit_code: Option<i32>,
        ram_peak_mb: Option<i64>,
        cpu_ms: Option<i64>,
        disk_bytes: Option<i64>,
        out_of_memory: bool,
        why: String,
    }
}

impl Pasts {
    pub(super) fn push(&mut self, job: i64, past: &Past) {
        let measured = &past.measured;
        self.job.push(job);
        self.number.push(i64::from(past.number));
        self.worker.push(past.worker.to_string());
        self.claimed.push(past.claimed.0);
        self.started.push(past.started.map(|moment| moment.0));
        self.ended.push(past.ended.0);
        self.ending.push(past.ending.name());
        self.error.push(clean_some(past.error.as_ref()));
        self.exit_code.push(past.exit_code);
        self.ram_peak_mb.push(measured.ram_peak_mb.map(number::signed));
        self.cpu_ms.push(measured.cpu_ms.map(number::signed));
        self.disk_bytes.push(measured.disk_bytes.map(number::signed));
        self.out_of_memory.push(measured.out_of_memory);
        self.why.push(past.why.clone());
    }
}
