//! Reads a job from a row, and writes it into its table.

use std::sync::Arc;

use model::worker::POOL_DEFAULT;
use model::{
    Cause, Counts, Current, Fixed, Name, Progress, Record, Spec, State, TenantId, Timestamp,
    WorkerId,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Result, Row, params};

use super::fault::unreadable;
use crate::{Past, document, number};

/// The columns of an unfinished job, in the order of [`read`].
macro_rules! jobs_columns {
    () => {
        "j.id, j.tenant, j.kind, j.state, j.fence, j.priority, j.attempts, j.failures, j.losses, \
         j.evictions, j.refusals, j.revived, j.created, j.ready, j.last_worker, j.error, \
         j.exit_code, j.cost, s.document, s.payload, j.backoff_until, j.on_hold, j.cancelling, \
         j.n_blockers, j.n_dependents, j.worker, j.claimed, j.started, j.holds, j.fraction, \
         j.note, j.why, NULL, NULL, NULL, j.pool, j.stage \
         FROM jobs j JOIN specs s ON s.id = j.id "
    };
}

/// The columns of a finished job, in the same order.
macro_rules! finished_columns {
    () => {
        "j.id, j.tenant, j.kind, j.state, j.fence, j.priority, j.attempts, j.failures, j.losses, \
         j.evictions, j.refusals, j.revived, j.created, j.ready, j.last_worker, j.error, \
         j.exit_code, j.cost, s.document, s.payload, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, \
         NULL, NULL, NULL, j.finished, j.cause, j.result, NULL, NULL \
         FROM finished j JOIN specs s ON s.id = j.id "
    };
}

pub(super) use {finished_columns, jobs_columns};

const JOB: &str = concat!("SELECT ", jobs_columns!(), "WHERE j.id = ?1");
const FINISHED: &str = concat!("SELECT ", finished_columns!(), "WHERE j.id = ?1");

/// The unfinished job of this number.
pub(super) fn job(connection: &Connection, id: i64) -> Result<Option<Record>> {
    found(&mut finder(connection)?, id)
}

/// The statement for unfinished jobs. A caller that reads many prepares it once.
pub(super) fn finder(connection: &Connection) -> Result<CachedStatement<'_>> {
    connection.prepare_cached(JOB)
}

/// The job with this number, by [`finder`].
pub(super) fn found(finder: &mut CachedStatement<'_>, id: i64) -> Result<Option<Record>> {
    finder.query_row([id], read).optional()
}

/// The finished job of this number.
pub(super) fn finished(connection: &Connection, id: i64) -> Result<Option<Record>> {
    connection.prepare_cached(FINISHED)?.query_row([id], read).optional()
}

/// The job of this number, finished or not.
pub(super) fn either(connection: &Connection, id: i64) -> Result<Option<Record>> {
    match job(connection, id)? {
        Some(record) => Ok(Some(record)),
        None => finished(connection, id),
    }
}

/// Reads the columns of [`jobs_columns`] or [`finished_columns`].
pub(super) fn read(row: &Row<'_>) -> Result<Record> {
    let tenant = TenantId::new(text(row, 1)?);
    let mut spec = Spec::new(tenant, Name::new(text(row, 2)?));
    let document = text(row, 18)?;
    document::read(document, &mut spec).map_err(|error| unreadable(&error.to_string()))?;
    spec.payload = row.get(19)?;
    Ok(Record {
        id: number::id(row.get(0)?),
        spec: Arc::new(spec),
        state: State::named(text(row, 3)?).ok_or_else(|| unreadable("a state"))?,
        fence: row.get::<_, i64>(4)?.unsigned_abs(),
        priority: row.get(5)?,
        counts: Counts {
            attempts: row.get(6)?,
            failures: row.get(7)?,
            losses: row.get(8)?,
            evictions: row.get(9)?,
            refusals: row.get(10)?,
            revived: row.get(11)?,
        },
        created: Timestamp(row.get(12)?),
        ready: moment(row, 13)?,
        last_worker: worker(row, 14)?,
        error: row.get(15)?,
        exit_code: row.get(16)?,
        cost: row.get::<_, Option<i64>>(17)?.map(Fixed::thousandths),
        backoff_until: moment(row, 20)?,
        on_hold: row.get(21)?,
        cancelling: row.get(22)?,
        n_blockers: row.get(23)?,
        n_dependents: row.get(24)?,
        current: current(row)?,
        finished: moment(row, 32)?,
        cause: named(row, 33, Cause::named)?,
        result: row.get(34)?,
    })
}

/// A value that is stored by its permanent name.
pub(super) fn named<T>(
    row: &Row<'_>,
    column: usize,
    find: fn(&str) -> Option<T>,
) -> Result<Option<T>> {
    let Some(name) = row.get_ref(column)?.as_str_or_null()? else {
        return Ok(None);
    };
    find(name).map(Some).ok_or_else(|| unreadable(&format!("the name `{name}`")))
}

/// A moment that may be missing.
pub(super) fn moment(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp))
}

fn current(row: &Row<'_>) -> Result<Option<Current>> {
    let Some(worker) = worker(row, 25)? else {
        return Ok(None);
    };
    let holds = row.get_ref(28)?.as_str_or_null()?.map(document::read_ask).transpose();
    let holds = holds.map_err(|error| unreadable(&error.to_string()))?;
    let progress = match (row.get::<_, Option<i64>>(29)?, row.get::<_, Option<String>>(30)?) {
        (Some(fraction), Some(note)) => {
            let stage = row.get::<_, Option<String>>(36)?.unwrap_or_default();
            Some(Progress { fraction: Fixed::thousandths(fraction), note, stage })
        }
        _ => None,
    };
    let claimed = Timestamp(row.get(26)?);
    let (started, why) = (moment(row, 27)?, row.get(31)?);
    let pool = Name::new(row.get_ref(35)?.as_str_or_null()?.unwrap_or(POOL_DEFAULT));
    Ok(Some(Current { worker, pool, claimed, started, holds, progress, why }))
}

fn worker(row: &Row<'_>, column: usize) -> Result<Option<WorkerId>> {
    Ok(row.get_ref(column)?.as_str_or_null()?.map(WorkerId::new))
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str> {
    Ok(row.get_ref(column)?.as_str()?)
}

pub(super) const INSERT_SPEC: &str =
    "INSERT INTO specs (id, document, payload) VALUES (?1, ?2, ?3)";

/// Inserts a specification with [`INSERT_SPEC`]. The row stays until the job is deleted.
pub(super) fn insert_spec(statement: &mut CachedStatement<'_>, id: i64, spec: &Spec) -> Result<()> {
    let document = document::write(spec).map_err(|error| unreadable(&error.to_string()))?;
    statement.execute(params![id, document, spec.payload])?;
    Ok(())
}

pub(super) const INSERT_JOB: &str = "INSERT INTO jobs (id, tenant, kind, dedupe_key, group_name, \
    state, fence, priority, attempts, failures, losses, evictions, refusals, revived, created, \
    ready, on_hold, n_blockers, n_dependents, last_worker, cost, cancelling) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, \
    ?19, ?20, ?21, 0)";

/// Inserts an unfinished job with [`INSERT_JOB`].
pub(super) fn insert_job(
    statement: &mut CachedStatement<'_>,
    id: i64,
    record: &Record,
) -> Result<()> {
    let Record { spec, counts, .. } = record;
    statement.execute(params![
        id,
        spec.tenant.to_string(),
        spec.kind.to_string(),
        spec.dedupe_key,
        spec.group,
        record.state.name(),
        record.fence.cast_signed(),
        record.priority,
        counts.attempts,
        counts.failures,
        counts.losses,
        counts.evictions,
        counts.refusals,
        counts.revived,
        record.created.0,
        record.ready.map(|moment| moment.0),
        record.on_hold,
        record.n_blockers,
        record.n_dependents,
        record.last_worker.as_ref().map(WorkerId::to_string),
        record.cost.map(Fixed::in_thousandths),
    ])?;
    Ok(())
}

pub(super) const INSERT_FINISHED: &str = "INSERT INTO finished (id, tenant, kind, group_name, \
    state, fence, priority, attempts, failures, losses, evictions, refusals, revived, created, \
    ready, last_worker, finished, cause, error, exit_code, cost, result, claimed, started, why) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, \
    ?19, ?20, ?21, ?22, ?23, ?24, ?25)";

/// Inserts a finished job with [`INSERT_FINISHED`], and its last attempt if that is plain.
pub(super) fn insert_finished(
    statement: &mut CachedStatement<'_>,
    (id, record): (i64, &Record),
    plain: Option<&Past>,
) -> Result<()> {
    let Record { spec, counts, .. } = record;
    statement.execute(params![
        id,
        spec.tenant.to_string(),
        spec.kind.to_string(),
        spec.group,
        record.state.name(),
        record.fence.cast_signed(),
        record.priority,
        counts.attempts,
        counts.failures,
        counts.losses,
        counts.evictions,
        counts.refusals,
        counts.revived,
        record.created.0,
        record.ready.map(|moment| moment.0),
        record.last_worker.as_ref().map(WorkerId::to_string),
        record.finished.map(|moment| moment.0),
        record.cause.map(Cause::name),
        record.error,
        record.exit_code,
        record.cost.map(Fixed::in_thousandths),
        record.result,
        plain.map(|past| past.claimed.0),
        plain.and_then(|past| past.started).map(|moment| moment.0),
        plain.map(|past| &past.why),
    ])?;
    Ok(())
}

const UPDATE_WAITING: &str = "UPDATE jobs SET state = ?3, fence = ?4, priority = ?5, ready = ?6, \
    on_hold = ?7, cancelling = ?8, n_blockers = ?9, n_dependents = ?10 \
    WHERE id = ?1 AND fence = ?2";

/// Writes the columns that can change between attempts. `fence` is the one before the change.
pub(super) fn update(connection: &Connection, fence: u64, record: &Record) -> Result<()> {
    let id = number::of(&record.id).ok_or_else(|| unreadable("the id of a job"))?;
    let n_rows = connection.prepare_cached(UPDATE_WAITING)?.execute(params![
        id,
        fence.cast_signed(),
        record.state.name(),
        record.fence.cast_signed(),
        record.priority,
        record.ready.map(|moment| moment.0),
        record.on_hold,
        record.cancelling,
        record.n_blockers,
        record.n_dependents,
    ])?;
    one(n_rows)
}

/// Fails unless exactly one row changed: the guard was checked before the write.
pub(super) fn one(n_rows: usize) -> Result<()> {
    if n_rows == 1 { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(n_rows)) }
}

/// A count that SQL can hold. Larger counts become the largest.
pub(super) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
