//! Reads the data after a run: the tables, the database's journal, and the logs of clients and
//! workers.

use std::collections::BTreeMap;

use checker::{Attempt, Harm, History, Job, Key, Mark, Note, Piece, Step};
use faults::{read_marks, read_said};
use serde::Deserialize;
use tokio_postgres::{Client, Row};

use crate::Error;
use crate::load::{FLEETING, LABEL, terms};
use crate::stage::{Stage, limits};

/// The largest difference between the clocks of schedulers. Each follows the database's clock over
/// a link that may be slow.
const CLOCKS_MS: i64 = 300;
/// The default of tries.
const ATTEMPTS_MAX: u32 = 3;
/// The time within which a killed worker is gone.
const KILL_MS: i64 = 1_000;

/// All data about a run.
pub(crate) async fn history(client: &Client, stage: &Stage) -> Result<History, Error> {
    let mut history = History {
        jobs: list(client, JOBS, job).await?,
        attempts: list(client, ATTEMPTS, attempt).await?,
        keys: list(client, "SELECT tenant, key, jobs FROM maitre.keys ORDER BY id", key).await?,
        steps: list(client, STEPS, step).await?,
        output: list(client, OUTPUT, piece).await?,
        notes: list(client, "SELECT job, attempt, worker, note FROM journal.notes", note).await?,
        faults: stage.faults.clone(),
        limits: limits(),
        workers: stage.offers(),
        forgetful: [FLEETING.to_owned()].into(),
        clocks_ms: CLOCKS_MS,
        damage: [stage.panics(), stage.problems()?].concat(),
        ..History::default()
    };
    let completed = "SELECT coalesce(sum(completed), 0)::bigint FROM maitre.usage";
    history.n_completed =
        client.query_one(completed, &[]).await?.try_get::<_, i64>(0)?.unsigned_abs();
    let completions = "SELECT id, state FROM maitre.completions";
    let completions = list(client, completions, |row| Ok((number(row, 0)?, row.try_get(1)?)));
    history.completions = Some(completions.await?.into_iter().collect());
    let held = "SELECT name, held FROM maitre.holdings";
    let held = list(client, held, |row| Ok((row.try_get(0)?, row.try_get(1)?))).await?;
    history.held = held.into_iter().collect();
    for path in stage.client_logs() {
        history.said.extend(read_said(&path)?);
    }
    for path in stage.run_logs() {
        history.marks.extend(read_marks(&path, |at| at.parse().ok())?);
    }
    keep_time(&mut history);
    close_runs(&mut history);
    Ok(history)
}

/// A job without a row must have succeeded.
const JOBS: &str = "SELECT id, tenant, kind, state, NULL, dedupe_key, attempts, failures, \
    losses, refusals, created, NULL, document, NULL, false, 0::bigint, false, \
    evictions, priority FROM maitre.jobs \
    UNION ALL SELECT id, tenant, kind, state, cause, dedupe_key, attempts, failures, \
    losses, refusals, created, finished, document, result, false, 0, false, evictions, priority \
    FROM maitre.finished \
    UNION ALL SELECT id, tenant, kind, 'succeeded', NULL, dedupe_key, attempts, failures, \
    losses, refusals, created, at, document, NULL, true, n_dependents, cancelling, \
    evictions, priority FROM journal.forgotten ORDER BY 1";

const ATTEMPTS: &str = "SELECT job, number, worker, claimed, ended, ending, error \
    FROM maitre.pasts UNION ALL SELECT id, attempts, worker, claimed, NULL, '', NULL \
    FROM maitre.jobs WHERE worker IS NOT NULL \
    UNION ALL SELECT id, attempts, worker, claimed, at, 'succeeded', NULL \
    FROM journal.forgotten WHERE worker IS NOT NULL ORDER BY 1, 2";

const STEPS: &str = "SELECT job, at, state, fence, attempt, worker, ready, not_before \
    FROM journal.steps ORDER BY seq";

const OUTPUT: &str = "SELECT job, attempt, position, at, bytes FROM ( \
    SELECT job, attempt, position, bytes FROM maitre.logs) l \
    JOIN journal.pieces USING (job, attempt, position)";

async fn list<T>(
    client: &Client,
    sql: &str,
    read: impl Fn(&Row) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let rows = client.query(sql, &[]).await?;
    rows.iter().map(read).collect()
}

/// The fields of documents that are checked.
#[derive(Default, Deserialize)]
struct Document {
    slots: Option<u32>,
    retry: Option<Retry>,
    resource: Option<Ask>,
    pool: Option<String>,
    #[serde(default)]
    needs: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    amounts: BTreeMap<String, u64>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Ask {
    Named(String),
    Any,
}

#[derive(Deserialize)]
struct Retry {
    attempts_max: u32,
    backoff_ms: i64,
}

fn job(row: &Row) -> Result<Job, Error> {
    let document: String = row.try_get(12)?;
    let unread = |_| faults::Error::Line { line: document.clone() };
    let mut document: Document = serde_json::from_str(&document).map_err(unread)?;
    let retry = document.retry.unwrap_or(Retry { attempts_max: ATTEMPTS_MAX, backoff_ms: 0 });
    let result: Option<Vec<u8>> = row.try_get(13)?;
    let resource = document.resource.and_then(|ask| match ask {
        Ask::Named(name) => Some(name),
        Ask::Any => None,
    });
    let (kind, slots, priority): (String, _, _) =
        (row.try_get(2)?, document.slots.unwrap_or(1), row.try_get(18)?);
    let terms = terms(
        (&kind, slots, priority),
        (document.pool.as_deref(), resource.as_deref()),
        document.needs.clone(),
        &document.amounts,
    );
    Ok(Job {
        id: number(row, 0)?,
        tenant: row.try_get(1)?,
        kind,
        state: row.try_get(3)?,
        cause: row.try_get(4)?,
        dedupe: row.try_get(5)?,
        slots,
        terms: Some(terms),
        attempts_max: retry.attempts_max,
        backoff_ms: retry.backoff_ms,
        n_attempts: small(row, 6)?,
        n_failures: small(row, 7)?,
        n_losses: small(row, 8)?,
        n_refusals: small(row, 9)?,
        created_ms: row.try_get(10)?,
        finished_ms: row.try_get(11)?,
        resource,
        pool: document.pool,
        needs: document.needs,
        amounts: document.amounts,
        result: result.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        label: document.labels.remove(LABEL),
        is_forgotten: row.try_get(14)?,
        n_dependents: small(row, 15)?,
        was_cancelling: row.try_get(16)?,
        n_evictions: small(row, 17)?,
        priority,
    })
}

fn attempt(row: &Row) -> Result<Attempt, Error> {
    Ok(Attempt {
        job: number(row, 0)?,
        number: small(row, 1)?,
        worker: row.try_get(2)?,
        claimed_ms: row.try_get(3)?,
        ended_ms: row.try_get(4)?,
        heard_ms: row.try_get(4)?,
        ending: row.try_get(5)?,
        error: row.try_get::<_, Option<String>>(6)?.unwrap_or_default(),
    })
}

fn key(row: &Row) -> Result<Key, Error> {
    let ids: Vec<i64> = row.try_get(2)?;
    let ids = ids.into_iter().map(i64::unsigned_abs).collect();
    Ok(Key { tenant: row.try_get(0)?, key: row.try_get(1)?, ids })
}

fn step(row: &Row) -> Result<Step, Error> {
    Ok(Step {
        job: number(row, 0)?,
        at_ms: row.try_get(1)?,
        state: row.try_get(2)?,
        fence: number(row, 3)?,
        attempt: small(row, 4)?,
        worker: row.try_get(5)?,
        ready_ms: row.try_get(6)?,
        not_before_ms: row.try_get(7)?,
    })
}

fn piece(row: &Row) -> Result<Piece, Error> {
    let bytes: Vec<u8> = row.try_get(4)?;
    Ok(Piece {
        job: number(row, 0)?,
        attempt: small(row, 1)?,
        position: number(row, 2)?,
        at_ms: row.try_get(3)?,
        text: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

fn note(row: &Row) -> Result<Note, Error> {
    Ok(Note {
        job: number(row, 0)?,
        attempt: small(row, 1)?,
        worker: row.try_get(2)?,
        text: row.try_get(3)?,
    })
}

fn number(row: &Row, column: usize) -> Result<u64, tokio_postgres::Error> {
    Ok(row.try_get::<_, i64>(column)?.unsigned_abs())
}

fn small(row: &Row, column: usize) -> Result<u32, tokio_postgres::Error> {
    Ok(u32::try_from(row.try_get::<_, i64>(column)?).unwrap_or(u32::MAX))
}

/// Replaces the times of schedulers by those of the journal, so that all have one clock. The time
/// at which a report of an end arrived stays, because its write may be much later.
fn keep_time(history: &mut History) {
    let mut claimed: BTreeMap<(u64, u32), i64> = BTreeMap::new();
    let mut ended: BTreeMap<(u64, u32), i64> = BTreeMap::new();
    let (mut begun, mut gone) = (BTreeMap::new(), BTreeMap::new());
    for step in &history.steps {
        begun.entry(step.job).or_insert(step.at_ms);
        let attempt = (step.job, step.attempt);
        match step.state.as_deref() {
            Some("claimed") => drop(claimed.insert(attempt, step.at_ms)),
            Some("running") => {}
            Some(_) => drop(ended.entry(attempt).or_insert(step.at_ms)),
            None => {
                ended.entry(attempt).or_insert(step.at_ms);
                gone.insert(step.job, step.at_ms);
            }
        }
    }
    for attempt in &mut history.attempts {
        let token = (attempt.job, attempt.number);
        attempt.claimed_ms = claimed.get(&token).copied().unwrap_or(attempt.claimed_ms);
        let at_ms = ended.get(&token).copied();
        attempt.ended_ms = attempt.ended_ms.map(|ended_ms| at_ms.unwrap_or(ended_ms));
    }
    for job in &mut history.jobs {
        job.created_ms = begun.get(&job.id).copied().unwrap_or(job.created_ms);
        let at_ms = gone.get(&job.id).copied();
        job.finished_ms = job.finished_ms.map(|finished_ms| at_ms.unwrap_or(finished_ms));
    }
}

/// A run without an end record continued until its worker was killed.
fn close_runs(history: &mut History) {
    let mut last: BTreeMap<(u64, u32), &Mark> = BTreeMap::new();
    for mark in &history.marks {
        last.insert((mark.job, mark.attempt), mark);
    }
    let open = last.into_values().filter(|mark| matches!(mark.what.as_str(), "start" | "line"));
    let killed = |mark: &Mark| {
        let kills = history.faults.iter().filter(|fault| fault.harm == Harm::Kill);
        let mut own = kills.filter(|fault| fault.who == mark.worker);
        let kill = own.find(|fault| fault.at_ms + KILL_MS >= mark.at_ms)?;
        let at_ms = kill.at_ms.max(mark.at_ms);
        Some(Mark { what: "killed".to_owned(), at_ms, ..mark.clone() })
    };
    let closed: Vec<Mark> = open.filter_map(killed).collect();
    history.marks.extend(closed);
}
