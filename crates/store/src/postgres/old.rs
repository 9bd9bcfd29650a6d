//! Finds jobs past their retention with a walk along their ids, a stretch at a time. Ids are nearly
//! in the order of time, so old jobs come first. So completions need to write no index of times.
//!
//! **Invariant:** each job before the start of the next walk was not old when the walk last passed
//! it, or was found by a walk that was rolled back. The walk starts again from the first id when it
//! reaches jobs that were submitted too recently. So no job is skipped for good.

use std::sync::atomic::{AtomicI64, Ordering};

use model::Timestamp;

use super::desk::Sheet;
use super::fault::Fault;

/// Jobs in a stretch, and stretches in a walk. A few walks pass even many recent jobs that stand
/// before the old ones.
const STRETCH: i64 = 10_000;
const STRETCHES_MAX: usize = 20;

/// The old jobs of the next stretch, the first to finish first, the last id of the stretch, and
/// whether the walk continues. It stops at a stretch of recent submissions: none behind it can be
/// old.
pub(super) const OLD: &str = "SELECT \
    coalesce((array_agg(s.id ORDER BY s.finished, s.id) FILTER (WHERE s.finished < $1))[1:$2], \
    '{}'), max(s.id), count(*) = $4 AND min(s.created) < $1 \
    FROM (SELECT f.id, f.finished, f.created FROM finished f WHERE f.id > $3 \
    ORDER BY f.id LIMIT $4) s";

/// One process deletes at a time, and a second one returns. Two would find the same jobs, and each
/// would take the other's deletions for the end of the old jobs.
const LOCK: &str = "SELECT pg_try_advisory_xact_lock(hashtext('maitre forgets'))";

/// Whether this transaction holds the lock for deletions. Does not wait.
pub(super) async fn is_first(sheet: &Sheet<'_>) -> Result<bool, Fault> {
    let lock = sheet.transaction.prepare_cached(LOCK).await?;
    Ok(sheet.transaction.query_one(&lock, &[]).await?.try_get(0)?)
}

/// The id after which the next walk begins.
pub(super) struct Walk(AtomicI64);

impl Default for Walk {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }
}

impl Walk {
    /// At most `max` jobs that finished before a moment.
    pub(super) async fn old(
        &self,
        sheet: &Sheet<'_>,
        before: Timestamp,
        max: usize,
    ) -> Result<Vec<i64>, Fault> {
        let statement = sheet.transaction.prepare_cached(OLD).await?;
        let mut old: Vec<i64> = Vec::new();
        for _ in 0..STRETCHES_MAX {
            let after = self.0.load(Ordering::Relaxed);
            let n_more = i32::try_from(max - old.len()).unwrap_or(i32::MAX);
            let values = (before.0, n_more, after, STRETCH);
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                [&values.0, &values.1, &values.2, &values.3];
            let row = sheet.transaction.query_one(&statement, &values).await?;
            old.extend(row.try_get::<_, Vec<i64>>(0)?);
            if old.len() >= max {
                break;
            }
            let goes_on = row.try_get::<_, Option<bool>>(2)?.unwrap_or(false);
            let last = row.try_get::<_, Option<i64>>(1)?.filter(|_| goes_on);
            self.0.store(last.unwrap_or(i64::MIN), Ordering::Relaxed);
            if last.is_none() {
                break;
            }
        }
        Ok(old)
    }
}
