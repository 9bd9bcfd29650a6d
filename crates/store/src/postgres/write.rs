//! Many rows in one statement each.
//!
//! **Invariant:** what was there before is changed only under the fence under which it was read.
//!
//! A row is found by an id *between* the one that is named and itself: an equality for which an
//! order is of no use, so that one way is left to answer, by the index for each of the ids. With a
//! plain equality, a planner that last saw an empty table walks over all of it instead.

use std::pin::pin;

use model::{Cause, Record};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::columns::{self, Changes, Ends, NewJobs, Pasts};
use super::desk::Sheet;
use super::fault::Fault;
use crate::{document, number};

/// Runs a statement that must change so many rows.
pub(super) async fn exactly(
    sheet: &Sheet<'_>,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
    n_rows: usize,
) -> Result<(), Fault> {
    let statement = sheet.transaction.prepare_cached(sql).await?;
    let n_changed = sheet.transaction.execute(&statement, values).await?;
    if u64::try_from(n_rows).is_ok_and(|n_rows| n_rows == n_changed) {
        return Ok(());
    }
    Err(Fault::Conflict)
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

/// So many jobs are copied: the server then writes them by the page. With fewer, being let to
/// takes longer than that saves.
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
            0 => Ok(()),
            COPY_MIN.. => self.copy(sheet).await,
            _ => self.insert(sheet).await,
        }
    }

    async fn insert(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        let values: [&(dyn ToSql + Sync); 18] = [
            &self.id,
            &self.tenant,
            &self.kind,
            &self.dedupe_key,
            &self.group_name,
            &self.state,
            &self.fence,
            &self.priority,
            &self.ready,
            &self.on_hold,
            &self.n_blockers,
            &self.n_dependents,
            &self.queue,
            &self.place,
            &self.due,
            &self.document,
            &self.payload,
            &sheet.now.0,
        ];
        exactly(sheet, INSERT, &values, self.id.len()).await
    }

    async fn copy(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        let statement = sheet.transaction.prepare_cached(COPY).await?;
        let writer = sheet.transaction.copy_in(&statement).await?;
        let mut writer = pin!(BinaryCopyInWriter::new(writer, &COPY_TYPES));
        for at in 0..self.id.len() {
            let values: [&(dyn ToSql + Sync); 18] = [
                &self.id[at],
                &self.tenant[at],
                &self.kind[at],
                &self.dedupe_key[at],
                &self.group_name[at],
                &self.state[at],
                &self.fence[at],
                &self.priority[at],
                &self.ready[at],
                &self.on_hold[at],
                &self.n_blockers[at],
                &self.n_dependents[at],
                &self.queue[at],
                &self.place[at],
                &self.due[at],
                &self.document[at],
                &self.payload[at],
                &sheet.now.0,
            ];
            writer.as_mut().write(&values).await?;
        }
        writer.finish().await?;
        Ok(())
    }
}

/// What its attempt was like stays for as long as it has one.
pub(super) const UPDATE: &str = "UPDATE jobs j \
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
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::integer[], \
    $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], \
    $12::bigint[], $13::boolean[], $14::boolean[], $15::boolean[], $16::bigint[], $17::bigint[], \
    $18::text[], $19::text[], $20::integer[], $21::bigint[], $22::bigint[], $23::bigint[], \
    $24::bigint[]) \
    AS u(id, fence_before, state, fence, priority, failures, losses, evictions, refusals, \
    revived, ready, backoff_until, on_hold, cancelling, is_live, n_blockers, n_dependents, \
    last_worker, error, exit_code, cost, place, due, queue) \
    WHERE j.id BETWEEN u.id AND u.id AND j.fence = u.fence_before";

/// They leave the finished ones, and stand in the queue again.
pub(super) const BACK: &str = "WITH back AS (DELETE FROM finished f \
    USING unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::integer[], \
    $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], \
    $12::bigint[], $13::boolean[], $14::boolean[], $15::boolean[], $16::bigint[], $17::bigint[], \
    $18::text[], $19::text[], $20::integer[], $21::bigint[], $22::bigint[], $23::bigint[], \
    $24::bigint[]) \
    AS u(id, fence_before, state, fence, priority, failures, losses, evictions, refusals, \
    revived, ready, backoff_until, on_hold, cancelling, is_live, n_blockers, n_dependents, \
    last_worker, error, exit_code, cost, place, due, queue) \
    WHERE f.id BETWEEN u.id AND u.id AND f.fence = u.fence_before \
    RETURNING f.id, f.tenant, f.kind, f.dedupe_key, f.group_name, f.attempts, f.created, \
    u.queue, f.document, f.payload, u.state AS new_state, u.fence AS new_fence, \
    u.priority AS new_priority, u.failures AS new_failures, u.losses AS new_losses, \
    u.evictions AS new_evictions, u.refusals AS new_refusals, u.revived AS new_revived, \
    u.ready AS new_ready, u.last_worker AS new_last_worker, u.cost AS new_cost, u.place, u.due) \
    INSERT INTO jobs (id, tenant, kind, dedupe_key, group_name, attempts, created, queue, \
    document, payload, state, fence, priority, failures, losses, evictions, refusals, revived, \
    ready, last_worker, cost, place, due) SELECT * FROM back";

impl Changes {
    pub(super) async fn write(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        self.put(sheet, UPDATE).await
    }

    pub(super) async fn write_back(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        self.put(sheet, BACK).await
    }

    async fn put(&self, sheet: &Sheet<'_>, sql: &str) -> Result<(), Fault> {
        if self.id.is_empty() {
            return Ok(());
        }
        let values: [&(dyn ToSql + Sync); 24] = [
            &self.id,
            &self.fence_before,
            &self.state,
            &self.fence,
            &self.priority,
            &self.counts[0],
            &self.counts[1],
            &self.counts[2],
            &self.counts[3],
            &self.counts[4],
            &self.ready,
            &self.backoff_until,
            &self.flags[0],
            &self.flags[1],
            &self.flags[2],
            &self.n_blockers,
            &self.n_dependents,
            &self.last_worker,
            &self.error,
            &self.exit_code,
            &self.cost,
            &self.place,
            &self.due,
            &self.queue,
        ];
        exactly(sheet, sql, &values, self.id.len()).await
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
        if self.id.is_empty() {
            return Ok(());
        }
        let values: [&(dyn ToSql + Sync); 16] = [
            &self.id,
            &self.fence_before,
            &self.state,
            &self.fence,
            &self.counts[0],
            &self.counts[1],
            &self.counts[2],
            &self.counts[3],
            &self.counts[4],
            &self.last_worker,
            &self.cause,
            &self.error,
            &self.exit_code,
            &self.cost,
            &self.result,
            &sheet.now.0,
        ];
        exactly(sheet, FINISH, &values, self.id.len()).await
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
        if self.job.is_empty() {
            return Ok(());
        }
        let values: [&(dyn ToSql + Sync); 14] = [
            &self.job,
            &self.number,
            &self.worker,
            &self.claimed,
            &self.started,
            &self.ended,
            &self.ending,
            &self.error,
            &self.exit_code,
            &self.measured[0],
            &self.measured[1],
            &self.measured[2],
            &self.out_of_memory,
            &self.why,
        ];
        exactly(sheet, INSERT_PASTS, &values, self.job.len()).await
    }
}

const INSERT_OVER: &str = "INSERT INTO finished (id, tenant, kind, dedupe_key, group_name, state, \
    fence, priority, attempts, failures, losses, evictions, refusals, revived, created, finished, \
    cause, queue, document, payload, ready) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, 0, 0, 0, $9, $9, $10, $11, $12, $13, $14)";

/// A job that was over when it came in; there are few of them.
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
