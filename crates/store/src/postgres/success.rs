//! Jobs that succeeded and said nothing: all that is new about them fits in five columns. Most jobs
//! end so, and what does not change is not sent to the database to come back to it.

use model::{Fixed, Record};
use tokio_postgres::types::ToSql;

use super::desk::Sheet;
use super::fault::Fault;
use super::write::exactly;
use crate::{Past, number};

/// One array a column.
#[derive(Default)]
pub(super) struct Successes {
    id: Vec<i64>,
    fence_before: Vec<i64>,
    started: Vec<Option<i64>>,
    exit_code: Vec<Option<i32>>,
    cost: Vec<Option<i64>>,
}

/// What is kept of the attempt is in the row that goes.
pub(super) const SUCCEED: &str = "WITH gone AS (DELETE FROM jobs j \
    USING unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::bigint[]) \
    AS u(id, fence_before, started, exit_code, cost) \
    WHERE j.id BETWEEN u.id AND u.id AND j.fence = u.fence_before \
    RETURNING j.id, j.tenant, j.kind, j.dedupe_key, j.group_name, j.fence, j.priority, \
    j.attempts, j.failures, j.losses, j.evictions, j.refusals, j.revived, j.created, j.ready, \
    j.queue, j.document, j.payload, j.worker, j.claimed, j.why, u.started, u.exit_code, u.cost) \
    INSERT INTO finished (id, tenant, kind, dedupe_key, group_name, state, fence, priority, \
    attempts, failures, losses, evictions, refusals, revived, created, ready, queue, document, \
    payload, last_worker, exit_code, cost, finished, claimed, started, why) SELECT id, tenant, \
    kind, dedupe_key, group_name, 'succeeded', fence + 1, priority, attempts, failures, losses, \
    evictions, refusals, revived, created, ready, queue, document, payload, worker, exit_code, \
    cost, $6, claimed, started, why FROM gone";

impl Successes {
    /// Takes the job, if this is how it ended. `fence` is the one before.
    pub(super) fn take(&mut self, (id, fence): (i64, u64), record: &Record, past: &Past) -> bool {
        let is_taken =
            past.is_plain(record) && record.fence == fence + 1 && record.result.is_none();
        if is_taken {
            self.id.push(id);
            self.fence_before.push(number::signed(fence));
            self.started.push(past.started.map(|moment| moment.0));
            self.exit_code.push(record.exit_code);
            self.cost.push(record.cost.map(Fixed::in_thousandths));
        }
        is_taken
    }

    pub(super) const fn len(&self) -> usize {
        self.id.len()
    }

    pub(super) async fn write(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        if self.id.is_empty() {
            return Ok(());
        }
        let values: [&(dyn ToSql + Sync); 6] = [
            &self.id,
            &self.fence_before,
            &self.started,
            &self.exit_code,
            &self.cost,
            &sheet.now.0,
        ];
        exactly(sheet, SUCCEED, &values, self.id.len()).await
    }
}
