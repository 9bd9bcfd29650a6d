//! Notices about final jobs.

use model::{Cause, Name, Record, Retry, State, TenantId, Timestamp, retry};
use rusqlite::{Connection, Result, Row, params};

use super::fault::unreadable;
use super::row;
use super::writer::Desk;
use crate::{Notice, number};

const INSERT: &str = "INSERT INTO notices (job, tenant, kind, url, state, cause, finished, tries, \
    due) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?7)";

/// Stores a notice if the record is final and has a webhook.
pub(super) fn note(connection: &Connection, id: i64, record: &Record) -> Result<()> {
    let Some(notice) = Notice::of(0, record) else { return Ok(()) };
    connection.prepare_cached(INSERT)?.execute(params![
        id,
        notice.tenant.to_string(),
        notice.kind.to_string(),
        notice.url,
        notice.state.name(),
        notice.cause.map(Cause::name),
        notice.finished.0,
    ])?;
    Ok(())
}

const DUE: &str = "SELECT id, job, tenant, kind, url, state, cause, finished, tries FROM notices \
    WHERE due <= ?1 ORDER BY due, id LIMIT ?2";
const TOLD_ONCE_MORE: &str = "UPDATE notices SET tries = ?2, due = ?3 WHERE id = ?1";

pub(super) fn notices(desk: &mut Desk, wait: Retry, max: usize) -> Result<Vec<Notice>> {
    let now = desk.now();
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let mut due = desk.connection.prepare_cached(DUE)?;
    let due = due.query_map([now.0, max], notice)?.collect::<Result<Vec<Notice>>>()?;
    let mut again = desk.connection.prepare_cached(TOLD_ONCE_MORE)?;
    for Notice { id, tries, .. } in &due {
        let due = now + retry::backoff(*tries, &wait, *id);
        again.execute(params![id.cast_signed(), tries, due.0])?;
    }
    Ok(due)
}

/// The notice with this try counted.
fn notice(row: &Row<'_>) -> Result<Notice> {
    let state = row::named(row, 5, State::named)?;
    Ok(Notice {
        id: row.get::<_, i64>(0)?.unsigned_abs(),
        job: number::id(row.get(1)?),
        tenant: TenantId::new(row.get_ref(2)?.as_str()?),
        kind: Name::new(row.get_ref(3)?.as_str()?),
        url: row.get(4)?,
        state: state.ok_or_else(|| unreadable("the state of a notice"))?,
        cause: row::named(row, 6, Cause::named)?,
        finished: Timestamp(row.get(7)?),
        tries: row.get::<_, u32>(8)? + 1,
    })
}

pub(super) fn told(desk: &mut Desk, notices: &[u64]) -> Result<()> {
    let mut delete = desk.connection.prepare_cached("DELETE FROM notices WHERE id = ?1")?;
    for id in notices {
        delete.execute([id.cast_signed()])?;
    }
    Ok(())
}
