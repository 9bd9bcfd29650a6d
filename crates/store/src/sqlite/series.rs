//! Minutes: counts of the scheduler.

use model::Timestamp;
use rusqlite::{Connection, Result, params};

use super::writer::Desk;
use crate::{Minute, minute};

/// One scheduler uses the file.
const SCHEDULER: i64 = 0;

const KEEP: &str = "INSERT INTO minutes (minute, scheduler, document) VALUES (?1, ?2, ?3) \
    ON CONFLICT DO UPDATE SET document = excluded.document";

pub(super) fn keep(desk: &Desk, at: Timestamp, document: &str) -> Result<()> {
    let values = params![minute::of(at), SCHEDULER, document];
    desk.connection.prepare_cached(KEEP)?.execute(values)?;
    Ok(())
}

const MINUTES: &str = "SELECT minute, scheduler, document FROM minutes \
    WHERE minute >= ?1 AND minute < ?2 ORDER BY minute, scheduler";

pub(super) fn minutes(
    connection: &Connection,
    from: Timestamp,
    before: Timestamp,
) -> Result<Vec<Minute>> {
    let mut statement = connection.prepare_cached(MINUTES)?;
    let rows = statement.query_map([minute::of(from), minute::of(before)], |row| {
        let (at, scheduler) = (minute::begin(row.get(0)?), row.get(1)?);
        Ok(Minute { at, scheduler, document: row.get(2)? })
    })?;
    rows.collect()
}
