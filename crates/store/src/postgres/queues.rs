//! The list of queues: one row for jobs of a tenant that only their order tells apart.
//!
//! **Invariant:** the queue of every unfinished job is listed. A row goes only when nobody made
//! sure of it for a day, and nobody relies on a row that it made sure of more than an hour ago.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use model::{Millis, Name, Spec, Timestamp};
use tokio_postgres::types::ToSql;

use super::desk::Sheet;
use super::fault::Fault;

/// For so long a row that was made sure of is there.
const SURE_FOR: Millis = Millis::from_secs(3_600);
/// Rows that nobody made sure of for so long may go.
pub(super) const KEPT_FOR: Millis = Millis::from_secs(24 * 3_600);
/// Queues that are remembered; then all are made sure of anew.
const REMEMBERED_MAX: usize = 100_000;

/// Rows that may go are looked for this often.
const SWEPT_EVERY: Millis = Millis::from_secs(3_600);

/// What this process knows of the list.
#[derive(Default)]
pub(super) struct Queues {
    /// When it last made sure of each queue.
    sure: Mutex<HashMap<i64, Timestamp>>,
    /// When it last looked for rows that may go.
    swept: Mutex<Option<Timestamp>>,
}

const MAKE_SURE: &str = "INSERT INTO queues (queue, tenant, kind, pool, used) \
    SELECT u.queue, u.tenant, u.kind, u.pool, $5 \
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) \
    AS u(queue, tenant, kind, pool) ORDER BY u.queue \
    ON CONFLICT (queue) DO UPDATE SET used = excluded.used";

impl Queues {
    /// Makes sure of the queues of these jobs, as far as this process is not sure of them.
    /// [`Self::are_sure`] is told once that is committed.
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

    /// They are committed.
    pub(super) fn are_sure(&self, queues: Vec<i64>, now: Timestamp) {
        let mut known = self.sure.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > REMEMBERED_MAX {
            known.clear();
        }
        known.extend(queues.into_iter().map(|queue| (queue, now)));
    }

    /// Whether to look for rows that may go: that is not said again for a while.
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
