//! Notices about final jobs.

use model::{Cause, Name, Record, Retry, State, TenantId, Timestamp, retry};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::desk::{Desk, Sheet, Stage};
use super::fault::{Fault, unreadable};
use super::row;
use crate::{Notice, number};

const INSERT: &str = "INSERT INTO notices (job, tenant, kind, url, state, cause, finished, tries, \
    due) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $7)";

/// Stores notices of records that are final and have a webhook.
pub(super) async fn note<'r>(
    sheet: &Sheet<'_>,
    ended: impl Iterator<Item = (i64, &'r Record)>,
) -> Result<(), Fault> {
    let notices: Vec<(i64, Notice)> =
        ended.filter_map(|(id, record)| Some((id, Notice::of(0, record)?))).collect();
    if notices.is_empty() {
        return Ok(());
    }
    let statement = sheet.transaction.prepare_cached(INSERT).await?;
    for (id, notice) in notices {
        let (tenant, kind) = (notice.tenant.to_string(), notice.kind.to_string());
        let (state, cause) = (notice.state.name(), notice.cause.map(Cause::name));
        let values: [&(dyn ToSql + Sync); 7] =
            [&id, &tenant, &kind, &notice.url, &state, &cause, &notice.finished.0];
        sheet.transaction.execute(&statement, &values).await?;
    }
    Ok(())
}

/// Takes notices that are due.
pub(super) struct Telling {
    pub(super) wait: Retry,
    pub(super) max: usize,
}

/// Skips notices that a peer has locked.
const DUE: &str = "SELECT id, job, tenant, kind, url, state, cause, finished, tries FROM notices \
    WHERE due <= $1 ORDER BY due, id LIMIT $2 FOR UPDATE SKIP LOCKED";
const TOLD_ONCE_MORE: &str = "UPDATE notices n SET tries = u.tries, due = u.due \
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u(id, tries, due) WHERE n.id = u.id";

impl Stage for Telling {
    type Answer = Vec<Notice>;

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<Vec<Notice>, Fault> {
        let max = i64::try_from(self.max).unwrap_or(i64::MAX);
        let statement = sheet.transaction.prepare_cached(DUE).await?;
        let rows = sheet.transaction.query(&statement, &[&sheet.now.0, &max]).await?;
        let due: Vec<Notice> = rows.iter().map(notice).collect::<Result<_, Fault>>()?;
        if due.is_empty() {
            return Ok(due);
        }
        let ids: Vec<i64> = due.iter().map(|notice| number::signed(notice.id)).collect();
        let tries: Vec<i64> = due.iter().map(|notice| i64::from(notice.tries)).collect();
        let again =
            |notice: &Notice| (sheet.now + retry::backoff(notice.tries, &self.wait, notice.id)).0;
        let dues: Vec<i64> = due.iter().map(again).collect();
        let statement = sheet.transaction.prepare_cached(TOLD_ONCE_MORE).await?;
        sheet.transaction.execute(&statement, &[&ids, &tries, &dues]).await?;
        Ok(due)
    }
}

/// The notice with this try counted.
fn notice(row: &Row) -> Result<Notice, Fault> {
    let state = row::named(row, 5, State::named)?;
    Ok(Notice {
        id: number::size(row.try_get(0)?),
        job: number::id(row.try_get(1)?),
        tenant: TenantId::new(row.try_get(2)?),
        kind: Name::new(row.try_get(3)?),
        url: row.try_get(4)?,
        state: state.ok_or_else(|| unreadable("the state of a notice"))?,
        cause: row::named(row, 6, Cause::named)?,
        finished: Timestamp(row.try_get(7)?),
        tries: row::small(row, 8)?.saturating_add(1),
    })
}

pub(super) async fn told(desk: &Desk, notices: &[u64]) -> Result<(), Fault> {
    let ids: Vec<i64> = notices.iter().map(|id| number::signed(*id)).collect();
    let connection = desk.connection().await?;
    let sql = "DELETE FROM notices WHERE id = ANY($1)";
    let statement = connection.prepare_cached(sql).await?;
    connection.execute(&statement, &[&ids]).await?;
    Ok(())
}
