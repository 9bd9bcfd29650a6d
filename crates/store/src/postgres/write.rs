//! Writes many rows with one statement each.
//!
//! **Invariant:** a row that was read is changed only under the fence with which it was read.
//!
//! A row is found by an id *between* the wanted one and itself. That is an equality that offers no
//! sort order, so the only plan is a lookup by the index for each id. With a plain equality, a
//! planner that last saw an empty table reads all of it instead.

use std::pin::pin;

use model::{Cause, Record, Timestamp};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::columns::{self, Changes, Columns, Ends, NewJobs, Pasts, Successes};
use super::desk::Sheet;
use super::fault::Fault;
use super::history::add_usage;
use super::row::{all_or_some, read_some};
use crate::{document, number};

/// Runs a statement that must change exactly `n_rows` rows, unless that is zero.
pub(super) async fn exactly(
    sheet: &Sheet<'_>,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
    n_rows: usize,
) -> Result<(), Fault> {
    if n_rows == 0 {
        return Ok(());
    }
    let statement = sheet.transaction.prepare_cached(sql).await?;
    let n_changed = sheet.transaction.execute(&statement, values).await?;
    if u64::try_from(n_rows).is_ok_and(|n_rows| n_rows == n_changed) {
        return Ok(());
    }
    Err(Fault::Conflict)
}

/// All columns, and the time of the stage.
fn with_now<'v>(rows: &'v impl Columns, sheet: &'v Sheet<'_>) -> Vec<&'v (dyn ToSql + Sync)> {
    let mut values = rows.arrays();
    values.push(&sheet.now.0);
    values
}

macro_rules! new_columns {
    () => {
        "id, tenant, kind, dedupe_key, group_name, state, fence, priority, ready, on_hold, \
         n_blockers, n_dependents, queue, place, due, document, payload, created"
    };
}

const INSERT: &str = concat!(
    "INSERT INTO jobs (",
    new_columns!(),
    ") SELECT u.*, $18 FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], \
     $6::text[], $7::bigint[], $8::integer[], $9::bigint[], $10::boolean[], $11::bigint[], \
     $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::text[], $17::bytea[]) AS u"
);

/// From this number on, jobs are copied, so that the server writes them by page. For fewer, the
/// start of a copy costs more than it saves.
const COPY_MIN: usize = 64;
const COPY: &str = concat!("COPY jobs (", new_columns!(), ") FROM STDIN (FORMAT binary)");
const COPY_TYPES: [Type; 18] = [
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::INT4,
    Type::INT8,
    Type::BOOL,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::BYTEA,
    Type::INT8,
];

impl NewJobs {
    pub(super) async fn write(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        match self.id.len() {
            COPY_MIN.. => self.copy(sheet).await?,
            n_rows => exactly(sheet, INSERT, &with_now(self, sheet), n_rows).await?,
        }
        let standing = self.queue.iter().zip(self.place.iter());
        sheet.tell_work(standing.map(|(queue, place)| (*queue, *place)));
        Ok(())
    }

    async fn copy(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        let statement = sheet.transaction.prepare_cached(COPY).await?;
        let writer = sheet.transaction.copy_in(&statement).await?;
        let mut writer = pin!(BinaryCopyInWriter::new(writer, &COPY_TYPES));
        for at in 0..self.id.len() {
            let mut row = self.row(at);
            row.push(&sheet.now.0);
            writer.as_mut().write(&row).await?;
        }
        writer.finish().await?;
        Ok(())
    }
}

/// The columns of [`Changes`], as `u`.
macro_rules! changes {
    () => {
        "unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::integer[], \
         $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], \
         $12::bigint[], $13::boolean[], $14::boolean[], $15::boolean[], $16::bigint[], \
         $17::bigint[], $18::text[], $19::text[], $20::integer[], $21::bigint[], $22::bigint[], \
         $23::bigint[], $24::bigint[]) \
         AS u(id, fence_before, state, fence, priority, failures, losses, evictions, refusals, \
         revived, ready, backoff_until, on_hold, cancelling, is_live, n_blockers, n_dependents, \
         last_worker, error, exit_code, cost, place, due, queue)"
    };
}

/// Columns of the attempt stay for as long as the job has one.
pub(super) const UPDATE: &str = concat!(
    "UPDATE jobs j \
    SET state = u.state, fence = u.fence, priority = u.priority, \
    failures = u.failures, losses = u.losses, evictions = u.evictions, refusals = u.refusals, \
    revived = u.revived, ready = u.ready, backoff_until = u.backoff_until, on_hold = u.on_hold, \
    cancelling = u.cancelling, n_blockers = u.n_blockers, n_dependents = u.n_dependents, \
    last_worker = u.last_worker, error = u.error, exit_code = u.exit_code, cost = u.cost, \
    place = u.place, due = u.due, \
    worker = CASE WHEN u.is_live THEN j.worker END, \
    claimed = CASE WHEN u.is_live THEN j.claimed END, \
    started = CASE WHEN u.is_live THEN j.started END, \
    holds = CASE WHEN u.is_live THEN j.holds END, \
    fraction = CASE WHEN u.is_live THEN j.fraction END, \
    note = CASE WHEN u.is_live THEN j.note END, \
    stage = CASE WHEN u.is_live THEN j.stage END, \
    why = CASE WHEN u.is_live THEN j.why END, \
    pool = CASE WHEN u.is_live THEN j.pool END, \
    charges = CASE WHEN u.is_live THEN j.charges END \
    FROM ",
    changes!(),
    " WHERE j.id BETWEEN u.id AND u.id AND j.fence = u.fence_before \
    RETURNING j.queue, j.place"
);

/// Moves finished jobs back into the queue.
pub(super) const BACK: &str = concat!(
    "WITH back AS (DELETE FROM finished f \
    USING ",
    changes!(),
    " WHERE f.id BETWEEN u.id AND u.id AND f.fence = u.fence_before \
    RETURNING f.id, f.tenant, f.kind, f.dedupe_key, f.group_name, f.attempts, f.created, \
    u.queue, f.document, f.payload, u.state AS new_state, u.fence AS new_fence, \
    u.priority AS new_priority, u.failures AS new_failures, u.losses AS new_losses, \
    u.evictions AS new_evictions, u.refusals AS new_refusals, u.revived AS new_revived, \
    u.ready AS new_ready, u.last_worker AS new_last_worker, u.cost AS new_cost, u.place, u.due) \
    INSERT INTO jobs (id, tenant, kind, dedupe_key, group_name, attempts, created, queue, \
    document, payload, state, fence, priority, failures, losses, evictions, refusals, revived, \
    ready, last_worker, cost, place, due) SELECT * FROM back RETURNING queue, place"
);

impl Changes {
    pub(super) async fn write(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        self.put(sheet, UPDATE).await
    }

    pub(super) async fn write_back(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        self.put(sheet, BACK).await
    }

    /// Announces the jobs that wait for a worker. The queue comes from the row, because the
    /// submitter may have computed it differently.
    async fn put(&self, sheet: &Sheet<'_>, sql: &str) -> Result<(), Fault> {
        if self.id.is_empty() {
            return Ok(());
        }
        let statement = sheet.transaction.prepare_cached(sql).await?;
        let rows = sheet.transaction.query(&statement, &self.arrays()).await?;
        if rows.len() != self.id.len() {
            return Err(Fault::Conflict);
        }
        let standing = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        sheet.tell_work(standing.collect::<Result<Vec<_>, Fault>>()?);
        Ok(())
    }
}

pub(super) const FINISH: &str = "WITH gone AS (DELETE FROM jobs j \
    USING unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], \
    $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::text[], $11::text[], \
    $12::text[], $13::integer[], $14::bigint[], $15::bytea[]) \
    AS u(id, fence_before, state, fence, failures, losses, evictions, refusals, revived, \
    last_worker, cause, error, exit_code, cost, result) \
    WHERE j.id BETWEEN u.id AND u.id AND j.fence = u.fence_before \
    RETURNING j.id, j.tenant, j.kind, j.dedupe_key, j.group_name, j.priority, j.attempts, \
    j.created, j.ready, j.queue, j.document, j.payload, u.state, u.fence, u.failures, u.losses, \
    u.evictions, u.refusals, u.revived, u.last_worker, u.cause, u.error, u.exit_code, u.cost, \
    u.result) \
    INSERT INTO finished (id, tenant, kind, dedupe_key, group_name, priority, attempts, created, \
    ready, queue, document, payload, state, fence, failures, losses, evictions, refusals, \
    revived, last_worker, cause, error, exit_code, cost, result, finished) \
    SELECT gone.*, $16 FROM gone";

impl Ends {
    pub(super) async fn write(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        exactly(sheet, FINISH, &with_now(self, sheet), self.id.len()).await
    }
}

/// The usual end. Columns that do not change are not sent to the database and back, and the columns
/// of the attempt are in the deleted row. Answers which jobs have ended, if not all have. `guard`
/// is a further condition, `returned` has further columns of the deleted rows, and `over` uses
/// them.
macro_rules! succeed {
    ($guard:literal, $returned:expr, $over:expr) => {
        concat!(
            "WITH gone AS (DELETE FROM jobs j \
            USING unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::bigint[], \
            $6::bigint[], $7::text[], $8::bigint[], $9::bigint[]) \
            AS u(id, fence_before, started, exit_code, cost, charged, history_key, \
            fetched_paths, fetched_bytes) \
            WHERE j.id BETWEEN u.id AND u.id AND j.fence = u.fence_before",
            $guard,
            " RETURNING j.id, j.tenant, u.charged, u.history_key, j.kind, j.created, j.ready, \
            j.claimed, u.fetched_paths, u.fetched_bytes",
            $returned,
            "), ",
            $over,
            "ran AS (INSERT INTO runs (tenant, kind, history_key, at, wait, duration, ending, \
            out_of_memory, fetched_paths, fetched_bytes, n_dependents) \
            SELECT tenant, kind, history_key, $10, claimed - coalesce(ready, created), \
            $10 - claimed, 'succeeded', false, fetched_paths, fetched_bytes, 0 FROM gone \
            WHERE history_key IS NOT NULL), \
            charged AS (",
            add_usage!(
                "$11",
                "$12",
                "SELECT tenant, sum(charged) AS cost, count(*) AS completed FROM gone \
                 WHERE charged IS NOT NULL GROUP BY tenant"
            ),
            ") SELECT ",
            all_or_some!("gone")
        )
    };
}

/// For jobs that are stored. `returned` names further columns, and `kept` their values.
macro_rules! succeed_and_keep {
    ($returned:literal, $kept:literal) => {
        succeed!(
            "",
            concat!(
                ", j.fence, j.priority, j.document, j.payload, j.worker, j.why, u.started, \
                u.exit_code, u.cost",
                $returned
            ),
            concat!(
                "over AS (INSERT INTO finished (id, tenant, kind, state, fence, priority, \
                created, ready, queue, document, payload, last_worker, exit_code, cost, finished, \
                claimed, started, why, dedupe_key, group_name, attempts, failures, losses, \
                evictions, refusals, revived) SELECT id, tenant, kind, 'succeeded', fence + 1, \
                priority, created, ready, 0, document, payload, worker, exit_code, cost, $10, \
                claimed, started, why, ",
                $kept,
                " FROM gone), "
            )
        )
    };
}

pub(super) const SUCCEED: &str = succeed_and_keep!(
    ", j.dedupe_key, j.group_name, j.attempts, j.failures, j.losses, j.evictions, j.refusals, \
     j.revived",
    "dedupe_key, group_name, attempts, failures, losses, evictions, refusals, revived"
);

/// For jobs without a key or a group, at their first attempt.
pub(super) const SUCCEED_AT_ONCE: &str = succeed_and_keep!("", "NULL, NULL, 1, 0, 0, 0, 0, 0");

/// For jobs that are not stored. A job with output or a key is left alone. (`NOT EXISTS` would be a
/// join, and a planner that believes the table empty would begin with it.)
pub(super) const SUCCEED_AND_GO: &str = succeed!(
    " AND (SELECT keyed.job FROM keyed WHERE keyed.job = u.id LIMIT 1) IS NULL \
     AND (SELECT logs.job FROM logs WHERE logs.job = u.id LIMIT 1) IS NULL",
    "",
    ""
);

/// The same within a larger transaction, for jobs that are known to have neither.
pub(super) const GO: &str = "DELETE FROM jobs j USING unnest($1::bigint[], $2::bigint[]) \
    AS u(id, fence_before) WHERE j.id BETWEEN u.id AND u.id AND j.fence = u.fence_before";

/// Deletes jobs by their ids and fences.
pub(super) async fn go(sheet: &Sheet<'_>, gone: &[(i64, u64)]) -> Result<(), Fault> {
    let (ids, fences): (Vec<i64>, Vec<i64>) =
        gone.iter().map(|(id, fence)| (*id, number::signed(*fence))).unzip();
    exactly(sheet, GO, &[&ids, &fences], gone.len()).await
}

impl Successes {
    /// Writes them within a larger transaction.
    pub(super) async fn write(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        if self.id.is_empty() {
            return Ok(());
        }
        let statement = sheet.transaction.prepare_cached(SUCCEED).await?;
        let values = self.values(&sheet.now, &0, &0);
        let rows = sheet.transaction.query(&statement, &values).await?;
        read_some(&rows)?.map_or(Ok(()), |_| Err(Fault::Conflict))
    }

    /// The values of the statement: the time, its minute, and the row of usage.
    pub(super) fn values<'v>(
        &'v self,
        now: &'v Timestamp,
        minute: &'v i64,
        part: &'v i32,
    ) -> Vec<&'v (dyn ToSql + Sync)> {
        let more: [&(dyn ToSql + Sync); 3] = [&now.0, minute, part];
        let mut values = self.arrays();
        values.extend(more);
        values
    }
}

pub(super) const INSERT_PASTS: &str = "INSERT INTO attempts \
    (job, number, worker, claimed, started, ended, ending, error, exit_code, ram_peak_mb, \
    cpu_ms, disk_bytes, out_of_memory, why) \
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], \
    $6::bigint[], $7::text[], $8::text[], $9::integer[], $10::bigint[], $11::bigint[], \
    $12::bigint[], $13::boolean[], $14::text[])";

impl Pasts {
    pub(super) async fn write(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        exactly(sheet, INSERT_PASTS, &self.arrays(), self.job.len()).await
    }
}

const INSERT_OVER: &str = "INSERT INTO finished (id, tenant, kind, dedupe_key, group_name, state, \
    fence, priority, attempts, failures, losses, evictions, refusals, revived, created, finished, \
    cause, queue, document, payload, ready) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, 0, 0, 0, $9, $9, $10, $11, $12, $13, $14)";

/// Inserts a job that was final at its submission. There are few of them.
pub(super) async fn insert_over(sheet: &Sheet<'_>, id: i64, record: &Record) -> Result<(), Fault> {
    let spec = &record.spec;
    let (tenant, kind) = (spec.tenant.to_string(), spec.kind.to_string());
    let values: [&(dyn ToSql + Sync); 14] = [
        &id,
        &tenant,
        &kind,
        &spec.dedupe_key,
        &spec.group,
        &record.state.name(),
        &number::signed(record.fence),
        &record.priority,
        &sheet.now.0,
        &record.cause.map(Cause::name),
        &columns::queue(spec),
        &document::write(spec)?,
        &spec.payload,
        &record.ready.map(|moment| moment.0),
    ];
    exactly(sheet, INSERT_OVER, &values, 1).await
}
