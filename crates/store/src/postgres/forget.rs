//! Deletes data after its retention, a step at a time.

use tokio_postgres::types::ToSql;

use super::desk::{READ_ALL, Sheet, Stage};
use super::fault::Fault;
use super::grants;
use super::old;
use super::queues::KEPT_FOR;
use crate::{Old, minute};

/// Rows of usage and history that one step deletes.
const ROWS_MAX: i64 = 10_000;

/// The key of a submission is deleted with the first of its jobs. Locked jobs are skipped, and so
/// are jobs that were revived.
pub(super) const JOBS: &str = "WITH old AS MATERIALIZED (SELECT f.id \
    FROM unnest($2::bigint[]) AS u(id) CROSS JOIN LATERAL (SELECT w.id FROM finished w \
    WHERE w.id BETWEEN u.id AND u.id AND w.finished < $1 FOR UPDATE SKIP LOCKED) f), \
    gone_keys AS (SELECT DISTINCT k.key FROM old JOIN keyed k ON k.job = old.id), \
    dropped_keys AS (DELETE FROM keys USING gone_keys WHERE keys.id = gone_keys.key), \
    dropped_keyed AS (DELETE FROM keyed USING gone_keys WHERE keyed.key = gone_keys.key), \
    dropped_logs AS (DELETE FROM logs USING old WHERE logs.job = old.id), \
    dropped_attempts AS (DELETE FROM attempts USING old WHERE attempts.job = old.id) \
    DELETE FROM finished USING old WHERE finished.id = old.id";

/// Usage of minutes before the limit.
const USAGE: &str = "DELETE FROM usage WHERE ctid = ANY(ARRAY(SELECT ctid FROM usage \
    WHERE minute < $1 ORDER BY minute LIMIT $2))";

/// Counts of schedulers.
const MINUTES: &str = "DELETE FROM minutes WHERE ctid = ANY(ARRAY(SELECT ctid FROM minutes \
    WHERE minute < $1 ORDER BY minute LIMIT $2))";

/// Ids are in the order of time, so the oldest are first.
const RUNS: &str = "DELETE FROM runs \
    WHERE id = ANY(ARRAY(SELECT id FROM runs ORDER BY id LIMIT $2)) AND at < $1";

/// Histories that one step reads. The next step continues after them.
const HISTORIES_MAX: i64 = 5_000;

/// Deletes all but the newest runs of each history. Returns the last history, if there may be more.
const TRIM: &str = "WITH RECURSIVE histories AS ( \
    (SELECT tenant, kind, history_key FROM runs WHERE (tenant, kind, history_key) > ($2, $3, $4) \
    ORDER BY tenant, kind, history_key LIMIT 1) \
    UNION ALL SELECT n.tenant, n.kind, n.history_key FROM histories h CROSS JOIN LATERAL ( \
    SELECT r.tenant, r.kind, r.history_key FROM runs r \
    WHERE (r.tenant, r.kind, r.history_key) > (h.tenant, h.kind, h.history_key) \
    ORDER BY r.tenant, r.kind, r.history_key LIMIT 1) n), \
    portion AS MATERIALIZED (SELECT * FROM histories LIMIT $5), \
    last AS MATERIALIZED (SELECT h.*, o.id FROM portion h CROSS JOIN LATERAL ( \
    SELECT r.id FROM runs r WHERE r.tenant = h.tenant AND r.kind = h.kind \
    AND r.history_key = h.history_key ORDER BY r.id DESC LIMIT 1 OFFSET $1) o), \
    trimmed AS (DELETE FROM runs USING last WHERE runs.tenant = last.tenant \
    AND runs.kind = last.kind AND runs.history_key = last.history_key AND runs.id <= last.id) \
    SELECT tenant, kind, history_key FROM portion OFFSET $5 - 1";

/// Sessions of workers that were away for this time. If a worker returns, its generation is still
/// higher than any before.
const SESSIONS: &str = "WITH old AS (DELETE FROM sessions s WHERE s.lease_until < $1 \
    AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.worker = s.worker) RETURNING s.generation) \
    UPDATE generations SET highest = greatest(highest, (SELECT max(generation) FROM old)) \
    WHERE EXISTS (SELECT 1 FROM old)";

/// Deletes queues that no scheduler confirmed for long. Queues that still have jobs are kept, so
/// this reads all jobs. The last check of `used` sees a queue that is confirmed meanwhile.
const QUEUES: &str = "WITH old AS MATERIALIZED (SELECT queue FROM queues WHERE used < $1), \
    busy AS MATERIALIZED (SELECT DISTINCT queue FROM jobs WHERE EXISTS (SELECT 1 FROM old)), \
    kept AS (UPDATE queues q SET used = $2 FROM busy \
    WHERE q.queue = busy.queue AND q.used < $1 RETURNING q.queue) \
    DELETE FROM queues q USING old WHERE q.queue = old.queue AND q.used < $1 \
    AND NOT EXISTS (SELECT 1 FROM busy WHERE busy.queue = q.queue)";

/// A topic has few notes of each kind, so this reads few rows.
const NOTES: &str = "DELETE FROM notes WHERE ages AND at < $1";

/// Notices that no scheduler could deliver in all this time.
const NOTICES: &str = "DELETE FROM notices WHERE id = ANY(ARRAY(SELECT id FROM notices \
    WHERE finished < $1 ORDER BY finished LIMIT $2))";

/// Limits without usage. A limit that a claim has locked stays.
const HOLDINGS: &str = "DELETE FROM holdings WHERE ctid = ANY(ARRAY(SELECT ctid FROM holdings \
    WHERE held = 0 LIMIT $1 FOR UPDATE SKIP LOCKED))";

impl Stage for Old {
    type Answer = usize;

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<usize, Fault> {
        let Self { before, charged_before, counted_before, max } = *self;
        let transaction = sheet.transaction;
        if !old::is_first(sheet).await? {
            grants::sweep(sheet).await?;
            return Ok(0);
        }
        let old = sheet.desk.walk.old(sheet, before, max).await?;
        let jobs = transaction.prepare_cached(JOBS).await?;
        let n_jobs = transaction.execute(&jobs, &[&before.0, &old]).await?;
        let usage = transaction.prepare_cached(USAGE).await?;
        transaction.execute(&usage, &[&minute::of(charged_before), &ROWS_MAX]).await?;
        let minutes = transaction.prepare_cached(MINUTES).await?;
        transaction.execute(&minutes, &[&minute::of(counted_before), &ROWS_MAX]).await?;
        let runs = transaction.prepare_cached(RUNS).await?;
        transaction.execute(&runs, &[&before.0, &ROWS_MAX]).await?;
        trim(sheet).await?;
        let sessions = transaction.prepare_cached(SESSIONS).await?;
        transaction.execute(&sessions, &[&before.0]).await?;
        let notes = transaction.prepare_cached(NOTES).await?;
        transaction.execute(&notes, &[&before.0]).await?;
        let notices = transaction.prepare_cached(NOTICES).await?;
        transaction.execute(&notices, &[&before.0, &ROWS_MAX]).await?;
        let holdings = transaction.prepare_cached(HOLDINGS).await?;
        transaction.execute(&holdings, &[&ROWS_MAX]).await?;
        // Last: claims delete these rows too, and wait for this transaction from here to the
        // commit.
        grants::sweep(sheet).await?;
        Ok(usize::try_from(n_jobs).unwrap_or(usize::MAX))
    }
}

/// Queues that no scheduler confirmed for long.
pub(super) struct OldQueues;

impl Stage for OldQueues {
    type Answer = ();

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<(), Fault> {
        sheet.transaction.batch_execute(READ_ALL).await?;
        let queues = sheet.transaction.prepare_cached(QUEUES).await?;
        let unused = sheet.now - KEPT_FOR;
        sheet.transaction.execute(&queues, &[&unused.0, &sheet.now.0]).await?;
        Ok(())
    }
}

/// A history: the tenant, the type, and its key.
pub(super) type History = (String, String, String);

async fn trim(sheet: &Sheet<'_>) -> Result<(), Fault> {
    let runs_max = i64::try_from(sheet.desk.options.runs_max).unwrap_or(i64::MAX);
    let (tenant, kind, key) = sheet.desk.trimmed().clone();
    let statement = sheet.transaction.prepare_cached(TRIM).await?;
    let values: [&(dyn ToSql + Sync); 5] = [&runs_max, &tenant, &kind, &key, &HISTORIES_MAX];
    let last = sheet.transaction.query_opt(&statement, &values).await?;
    let last = last.map(|row| Ok::<_, Fault>((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)));
    *sheet.desk.trimmed() = last.transpose()?.unwrap_or_default();
    Ok(())
}
