//! Reads a job from a row.

use std::sync::Arc;

use foldhash::HashSet;
use model::worker::POOL_DEFAULT;
use model::{
    Cause, Counts, Current, Fixed, Name, Progress, Record, Spec, State, TenantId, Timestamp,
    WorkerId,
};
use tokio_postgres::Row;

use super::fault::{Fault, unreadable};
use crate::{document, number, transition};

/// The columns of an unfinished job, in the order of [`read`].
macro_rules! jobs_columns {
    () => {
        "j.id, j.tenant, j.kind, j.state, j.fence, j.priority, j.attempts, j.failures, j.losses, \
         j.evictions, j.refusals, j.revived, j.created, j.ready, j.last_worker, j.error, \
         j.exit_code, j.cost, j.document, j.payload, j.backoff_until, j.on_hold, j.cancelling, \
         j.n_blockers, j.n_dependents, j.worker, j.claimed, j.started, j.holds, j.fraction, \
         j.note, j.why, NULL::bigint, NULL::text, NULL::bytea, j.pool, j.stage"
    };
}

/// The columns of a finished job, in the same order.
macro_rules! finished_columns {
    () => {
        "j.id, j.tenant, j.kind, j.state, j.fence, j.priority, j.attempts, j.failures, j.losses, \
         j.evictions, j.refusals, j.revived, j.created, j.ready, j.last_worker, j.error, \
         j.exit_code, j.cost, j.document, j.payload, NULL::bigint, false, false, 0::bigint, \
         0::bigint, NULL::text, NULL::bigint, NULL::bigint, NULL::text, NULL::bigint, NULL::text, \
         NULL::text, j.finished, j.cause, j.result, NULL::text, NULL::text"
    };
}

/// The columns of a queued job, in the order of [`read_queued`]. Columns with one value for all
/// queued jobs are left out, and so is the history of a job without one. Scheduling needs no large
/// payload: the claim reads it, because a window of large ones would take too much memory.
macro_rules! queued_columns {
    () => {
        "j.id, j.tenant, j.kind, j.fence, j.priority, j.created, j.ready, j.document, \
         CASE WHEN octet_length(j.payload) <= 1024 THEN j.payload END, \
         j.n_dependents, j.queue, j.place, CASE WHEN j.fence > 1 THEN json_build_array( \
         json_build_array(j.attempts, j.failures, j.losses, j.evictions, j.refusals, j.revived), \
         j.last_worker, j.error, j.exit_code, j.cost, j.backoff_until)::text END"
    };
}

/// The finished jobs of a list of ids, as `j`. The query form forces the index of ids. A planner
/// that last saw an empty table could choose the index of tenants, and read all of it.
macro_rules! finished_these {
    () => {
        "(SELECT DISTINCT id FROM unnest($1::bigint[]) AS u(id)) u \
         CROSS JOIN LATERAL (SELECT * FROM finished f WHERE f.id BETWEEN u.id AND u.id \
         ORDER BY f.id LIMIT 1) j"
    };
}

/// The ids of `$1` that a part of the statement has, or null if it has all. Most statements then
/// return no list. Read by [`read_some`].
macro_rules! all_or_some {
    ($part:literal) => {
        concat!(
            "CASE WHEN count(*) < cardinality($1) THEN coalesce(array_agg(id), '{}') END FROM ",
            $part
        )
    };
}

pub(super) use {all_or_some, finished_columns, finished_these, jobs_columns, queued_columns};

/// Some of the ids of a statement. `None` means all of them.
pub(super) fn read_some(rows: &[Row]) -> Result<Option<HashSet<i64>>, Fault> {
    let row = rows.first().ok_or_else(|| unreadable("an answer"))?;
    let some: Option<Vec<i64>> = row.try_get(0)?;
    Ok(some.map(HashSet::from_iter))
}

/// A queued job with its queue and its place.
pub(super) struct Queued {
    pub(super) queue: i64,
    pub(super) place: i64,
    /// Without its payload, if that is large.
    pub(super) record: Arc<Record>,
    pub(super) is_whole: bool,
}

/// The number of [`jobs_columns`]. Further columns of a query come after them.
pub(super) const N_COLUMNS: usize = 37;

/// Reads the columns of [`jobs_columns`] or [`finished_columns`].
pub(super) fn read(row: &Row) -> Result<Record, Fault> {
    Ok(Record {
        id: number::id(row.try_get(0)?),
        spec: Arc::new(spec(row, 18)?),
        state: named(row, 3, State::named)?.ok_or_else(|| unreadable("a state"))?,
        fence: number::size(row.try_get(4)?),
        priority: row.try_get(5)?,
        counts: counts(row, 6)?,
        created: Timestamp(row.try_get(12)?),
        ready: moment(row, 13)?,
        last_worker: worker(row, 14)?,
        error: row.try_get(15)?,
        exit_code: row.try_get(16)?,
        cost: row.try_get::<_, Option<i64>>(17)?.map(Fixed::thousandths),
        backoff_until: moment(row, 20)?,
        on_hold: row.try_get(21)?,
        cancelling: row.try_get(22)?,
        n_blockers: small(row, 23)?,
        n_dependents: small(row, 24)?,
        current: current(row)?,
        finished: moment(row, 32)?,
        cause: named(row, 33, Cause::named)?,
        result: row.try_get(34)?,
    })
}

/// Reads the columns of [`queued_columns`].
pub(super) fn read_queued(row: &Row) -> Result<Queued, Fault> {
    let (id, created) = (number::id(row.try_get(0)?), Timestamp(row.try_get(5)?));
    let payload: Option<Vec<u8>> = row.try_get(8)?;
    let is_whole = payload.is_some();
    let mut spec = terms(row, 7)?;
    spec.payload = payload.unwrap_or_default();
    let mut record = Record {
        fence: number::size(row.try_get(3)?),
        priority: row.try_get(4)?,
        ready: moment(row, 6)?,
        n_dependents: small(row, 9)?,
        ..transition::submit(id, spec, 0, created)
    };
    if let Some(text) = row.try_get::<_, Option<&str>>(12)? {
        serde_json::from_str::<Happened>(text)?.to(&mut record);
    }
    let (queue, place) = (row.try_get(10)?, row.try_get(11)?);
    Ok(Queued { queue, place, record: Arc::new(record), is_whole })
}

/// The history of a job before it was queued again.
#[derive(serde::Deserialize)]
struct Happened {
    counts: [i64; 6],
    last_worker: Option<String>,
    error: Option<String>,
    exit_code: Option<i32>,
    cost: Option<i64>,
    backoff_until: Option<i64>,
}

impl Happened {
    fn to(self, record: &mut Record) {
        let [attempts, failures, losses, evictions, refusals, revived] =
            self.counts.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        record.counts = Counts { attempts, failures, losses, evictions, refusals, revived };
        record.last_worker = self.last_worker.as_deref().map(WorkerId::new);
        record.error = self.error;
        record.exit_code = self.exit_code;
        record.cost = self.cost.map(Fixed::thousandths);
        record.backoff_until = self.backoff_until.map(Timestamp);
    }
}

/// Reads the tenant and the type, and from `column` on the document and the payload.
fn spec(row: &Row, column: usize) -> Result<Spec, Fault> {
    let mut spec = terms(row, column)?;
    spec.payload = row.try_get(column + 1)?;
    Ok(spec)
}

/// The same without the payload.
fn terms(row: &Row, column: usize) -> Result<Spec, Fault> {
    let tenant = TenantId::new(row.try_get(1)?);
    let mut spec = Spec::new(tenant, Name::new(row.try_get(2)?));
    document::read(row.try_get(column)?, &mut spec)?;
    Ok(spec)
}

/// The counts, in six columns from `column` on.
fn counts(row: &Row, column: usize) -> Result<Counts, Fault> {
    Ok(Counts {
        attempts: small(row, column)?,
        failures: small(row, column + 1)?,
        losses: small(row, column + 2)?,
        evictions: small(row, column + 3)?,
        refusals: small(row, column + 4)?,
        revived: small(row, column + 5)?,
    })
}

/// All rows.
pub(super) fn read_all(rows: &[Row]) -> Result<Vec<Record>, Fault> {
    rows.iter().map(read).collect()
}

/// A value that is stored by its permanent name.
pub(super) fn named<T>(
    row: &Row,
    column: usize,
    find: fn(&str) -> Option<T>,
) -> Result<Option<T>, Fault> {
    let Some(name) = row.try_get::<_, Option<&str>>(column)? else {
        return Ok(None);
    };
    find(name).map(Some).ok_or_else(|| unreadable(&format!("the name `{name}`")))
}

/// A moment that may be missing.
pub(super) fn moment(row: &Row, column: usize) -> Result<Option<Timestamp>, Fault> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(Timestamp))
}

/// A count.
pub(super) fn small(row: &Row, column: usize) -> Result<u32, Fault> {
    Ok(u32::try_from(row.try_get::<_, i64>(column)?).unwrap_or(u32::MAX))
}

fn current(row: &Row) -> Result<Option<Current>, Fault> {
    let Some(worker) = worker(row, 25)? else {
        return Ok(None);
    };
    let holds = row.try_get::<_, Option<&str>>(28)?.map(document::read_ask).transpose()?;
    let (fraction, note) = (row.try_get::<_, Option<i64>>(29)?, row.try_get(30)?);
    let progress = match (fraction, note) {
        (Some(fraction), Some(note)) => {
            let stage = row.try_get::<_, Option<String>>(36)?.unwrap_or_default();
            Some(Progress { fraction: Fixed::thousandths(fraction), note, stage })
        }
        _ => None,
    };
    let pool = row.try_get::<_, Option<&str>>(35)?.unwrap_or(POOL_DEFAULT);
    Ok(Some(Current {
        worker,
        pool: Name::new(pool),
        claimed: Timestamp(row.try_get(26)?),
        started: moment(row, 27)?,
        holds,
        progress,
        why: row.try_get(31)?,
    }))
}

fn worker(row: &Row, column: usize) -> Result<Option<WorkerId>, Fault> {
    Ok(row.try_get::<_, Option<&str>>(column)?.map(WorkerId::new))
}
