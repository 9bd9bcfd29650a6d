//! Notes about events, for users.

use model::Timestamp;
use rusqlite::{Connection, Result, params};

use super::row;
use super::writer::Desk;
use crate::{Note, NotePage, Noted};

const NOTE: &str = "INSERT INTO notes (topic, kind, key, at, ages, document) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";

/// All but the newest of a topic and kind.
const TRIM: &str = "DELETE FROM notes WHERE topic = ?1 AND kind = ?2 AND id <= \
    (SELECT id FROM notes WHERE topic = ?1 AND kind = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3)";

pub(super) fn note(desk: &mut Desk, notes: &[Note]) -> Result<()> {
    let now = desk.now();
    for note in notes {
        let Note { topic, kind, key, document, n_max, ages } = note;
        let values = params![topic, kind, key, now.0, ages, document];
        if desk.connection.prepare_cached(NOTE)?.execute(values)? == 1 {
            let n_max = i64::try_from(*n_max).unwrap_or(i64::MAX);
            desk.connection.prepare_cached(TRIM)?.execute(params![topic, kind, n_max])?;
        }
    }
    Ok(())
}

const NOTES: &str = "SELECT id, kind, key, at, document FROM notes \
    WHERE topic = ?1 AND (?2 IS NULL OR kind = ?2) AND id < ?3 ORDER BY id DESC LIMIT ?4";

pub(super) fn notes(connection: &Connection, page: &NotePage) -> Result<Vec<Noted>> {
    let before = page.before.map_or(i64::MAX, row::count);
    let max = i64::try_from(page.max).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(NOTES)?;
    let rows = statement.query_map(params![page.topic, page.kind, before, max], |row| {
        Ok(Noted {
            number: row.get::<_, i64>(0)?.unsigned_abs(),
            kind: row.get(1)?,
            key: row.get(2)?,
            at: Timestamp(row.get(3)?),
            document: row.get(4)?,
        })
    })?;
    rows.collect()
}
