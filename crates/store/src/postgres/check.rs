//! The consistency check of the database.

use super::Postgres;
use super::fault::{Doubt, Fault};
use crate::{Checked, Error, agree, number};

/// Inconsistencies that only a store of several schedulers can have.
const SHARED: &[(&str, &str)] = &[
    (
        "jobs whose queue is not listed",
        "SELECT count(*) FROM jobs j WHERE NOT EXISTS \
         (SELECT 1 FROM queues q WHERE q.queue = j.queue)",
    ),
    (
        "attempts of workers that have no session",
        "SELECT count(*) FROM jobs j WHERE j.worker IS NOT NULL AND NOT EXISTS \
         (SELECT 1 FROM sessions s WHERE s.worker = j.worker)",
    ),
    (
        "attempts that are not among what their workers were given",
        "SELECT count(*) FROM jobs j WHERE j.worker IS NOT NULL AND NOT EXISTS \
         (SELECT 1 FROM grants g WHERE g.worker = j.worker AND j.id = ANY(g.jobs))",
    ),
    (
        "jobs of which one column belies another",
        "SELECT count(*) FROM jobs WHERE state NOT IN ('blocked', 'queued', 'claimed', 'running') \
         OR fence <= 0 OR n_blockers < 0 OR n_dependents < 0 \
         OR (state = 'blocked') <> (n_blockers > 0) OR (state = 'blocked') <> (ready IS NULL) \
         OR (state IN ('claimed', 'running')) <> (worker IS NOT NULL) \
         OR (worker IS NULL) <> (claimed IS NULL) OR (worker IS NULL) <> (why IS NULL) \
         OR (state = 'running') <> (started IS NOT NULL) OR (fraction IS NULL) <> (note IS NULL) \
         OR (worker IS NULL AND (holds IS NOT NULL OR fraction IS NOT NULL OR cancelling \
         OR charges IS NOT NULL)) OR (state = 'blocked' AND place IS NOT NULL) \
         OR (state <> 'queued' AND due IS NOT NULL)",
    ),
    (
        "finished jobs of which one column belies another",
        "SELECT count(*) FROM finished WHERE state NOT IN ('succeeded', 'failed', 'cancelled') \
         OR fence <= 0 OR (state = 'succeeded') <> (cause IS NULL)",
    ),
    (
        "jobs that wait for a worker and stand nowhere",
        "SELECT count(*) FROM jobs WHERE state = 'queued' AND NOT on_hold \
         AND place IS NULL AND due IS NULL",
    ),
    (
        "limits of which another amount is in use than attempts use",
        "SELECT count(*) FROM holdings h FULL JOIN \
         (SELECT c.value ->> 0 AS name, sum((c.value ->> 1)::bigint) AS used FROM jobs j, \
         json_array_elements(j.charges::json) AS c(value) WHERE j.charges IS NOT NULL \
         GROUP BY 1) u ON u.name = h.name WHERE coalesce(h.held, 0) <> coalesce(u.used, 0)",
    ),
];

/// All rules, each a query for violations.
pub(super) fn rules() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    agree::PROBLEMS.iter().chain(SHARED)
}

const COUNTS: &str = "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM finished)";

impl Postgres {
    /// Counts the jobs of one snapshot, and finds inconsistencies.
    pub async fn check(&self) -> Result<Checked, Error> {
        let checked = self.checked().await;
        checked.map_err(|fault| fault.tell("check the store", Doubt::None))
    }

    async fn checked(&self) -> Result<Checked, Fault> {
        let mut connection = self.desk.connection().await?;
        let builder = connection.build_transaction().read_only(true);
        let level = tokio_postgres::IsolationLevel::RepeatableRead;
        let transaction = builder.isolation_level(level).start().await?;
        // The check reads whole tables, so it undoes the planner settings for short reads.
        let settings = "SET LOCAL statement_timeout = 0; SET LOCAL enable_hashjoin = on; \
            SET LOCAL enable_seqscan = on; SET LOCAL enable_mergejoin = on";
        transaction.batch_execute(settings).await?;
        let counts = transaction.query_one(COUNTS, &[]).await?;
        let mut problems = Vec::new();
        for (what, sql) in rules() {
            let n: i64 = transaction.query_one(*sql, &[]).await?.try_get(0)?;
            if n > 0 {
                problems.push(format!("{n} {what}"));
            }
        }
        Ok(Checked {
            unfinished: number::size(counts.try_get(0)?),
            finished: number::size(counts.try_get(1)?),
            problems,
        })
    }
}
