//! The list of queues: one row for jobs of a tenant that differ only in their order.
//!
//! **Invariant:** the queue of every unfinished job is listed. A row is deleted only after a day
//! without a confirmation, and no scheduler relies on its own confirmation for more than an hour.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use model::{Millis, Name, Spec, Timestamp};
use tokio_postgres::types::ToSql;

use super::desk::Sheet;
use super::fault::Fault;

/// A confirmed row exists for at least this time.
const SURE_FOR: Millis = Millis::from_secs(3_600);
/// Rows without a confirmation for this time may be deleted.
pub(super) const KEPT_FOR: Millis = Millis::from_secs(24 * 3_600);
/// Queues that this process remembers. Beyond this number it forgets all, and confirms them again.
const REMEMBERED_MAX: usize = 100_000;

/// Interval of deleting unused rows.
const SWEPT_EVERY: Millis = Millis::from_secs(3_600);

/// The queues that this process has confirmed.
#[derive(Default)]
pub(super) struct Queues {
    /// The time of the last confirmation of each queue.
    sure: Mutex<HashMap<i64, Timestamp>>,
    /// The time of the last deletion of unused rows.
    swept: Mutex<Option<Timestamp>>,
}

const MAKE_SURE: &str = "INSERT INTO queues (queue, tenant, kind, pool, used) \
    SELECT u.queue, u.tenant, u.kind, u.pool, $5 \
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) \
    AS u(queue, tenant, kind, pool) ORDER BY u.queue \
    ON CONFLICT (queue) DO UPDATE SET used = excluded.used";

impl Queues {
    /// Confirms the queues of these jobs that this process has not confirmed yet. After the commit,
    /// [`Self::are_sure`] records them.
    pub(super) async fn make_sure(
        &self,
        sheet: &Sheet<'_>,
        mut specs: HashMap<i64, &Spec>,
    ) -> Result<(), Fault> {
        let now = sheet.now;
        specs.retain(|queue, _| !self.is_sure(*queue, now));
        if specs.is_empty() {
            return Ok(());
        }
        let queues: Vec<i64> = specs.keys().copied().collect();
        let tenants: Vec<String> = specs.values().map(|spec| spec.tenant.to_string()).collect();
        let kinds: Vec<String> = specs.values().map(|spec| spec.kind.to_string()).collect();
        let pool = |spec: &&Spec| spec.pool.as_ref().map(Name::to_string);
        let pools: Vec<Option<String>> = specs.values().map(pool).collect();
        let statement = sheet.transaction.prepare_cached(MAKE_SURE).await?;
        let values: [&(dyn ToSql + Sync); 5] = [&queues, &tenants, &kinds, &pools, &now.0];
        sheet.transaction.execute(&statement, &values).await?;
        sheet.outcome().queues.extend(queues);
        Ok(())
    }

    /// Records confirmed queues after the commit.
    pub(super) fn are_sure(&self, queues: Vec<i64>, now: Timestamp) {
        let mut known = self.sure.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > REMEMBERED_MAX {
            known.clear();
        }
        known.extend(queues.into_iter().map(|queue| (queue, now)));
    }

    /// Whether to delete unused rows now. Returns `true` once in each interval.
    pub(super) fn is_time_to_sweep(&self, now: Timestamp) -> bool {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = swept.is_none_or(|at| at + SWEPT_EVERY <= now);
        if is_time {
            *swept = Some(now);
        }
        is_time
    }

    fn is_sure(&self, queue: i64, now: Timestamp) -> bool {
        let known = self.sure.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&queue).is_some_and(|at| *at + SURE_FOR > now)
    }
}
