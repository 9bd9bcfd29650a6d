//! Finding the jobs that are old enough to be forgotten: a walk along their ids, a stretch at a
//! time. Ids are nearly in the order of time, so what is old is in front, and no index of moments
//! has to be written with every job that ends.
//!
//! **Invariant:** what lies before the spot where the next walk begins was not old when it was last
//! passed by, or was found by a walk that was undone. A walk that came to where no job was
//! submitted long enough ago begins anew, so nothing is passed by for good.

use std::sync::atomic::{AtomicI64, Ordering};

use model::Timestamp;

use super::desk::Sheet;
use super::fault::Fault;

/// Jobs in one stretch, and stretches of one walk: so many that finished lately may stand before
/// those that are old, and still be passed by in a few walks.
const STRETCH: i64 = 10_000;
const STRETCHES_MAX: usize = 20;

/// The old ones of the next stretch, the first to finish first; its last id; and whether it goes on
/// after it. Where all were submitted later, none behind them finished before.
pub(super) const OLD: &str = "SELECT \
    coalesce((array_agg(s.id ORDER BY s.finished, s.id) FILTER (WHERE s.finished < $1))[1:$2], \
    '{}'), max(s.id), count(*) = $4 AND min(s.created) < $1 \
    FROM (SELECT f.id, f.finished, f.created FROM finished f WHERE f.id > $3 \
    ORDER BY f.id LIMIT $4) s";

/// One forgets at a time: whoever comes second leaves it to them. Two would find the same jobs, and
/// each would take what the other forgets for the end of what is old.
const LOCK: &str = "SELECT pg_try_advisory_xact_lock(hashtext('maitre forgets'))";

/// Whether nobody else forgets now: whoever does would be waited for.
pub(super) async fn is_first(sheet: &Sheet<'_>) -> Result<bool, Fault> {
    let lock = sheet.transaction.prepare_cached(LOCK).await?;
    Ok(sheet.transaction.query_one(&lock, &[]).await?.try_get(0)?)
}

/// Where the next walk begins: after this id.
pub(super) struct Walk(AtomicI64);

impl Default for Walk {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }
}

impl Walk {
    /// Jobs that finished before a moment, at most so many.
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
