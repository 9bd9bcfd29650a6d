//! Leads: one holder at a time, and its document for the next one.

use model::{Millis, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::row;
use super::writer::Desk;
use crate::Lead;

const TAKE: &str = "INSERT INTO leads (name, holder, token, lead_until, document) \
    VALUES (?1, ?2, 1, ?3, '') ON CONFLICT DO UPDATE SET \
    token = token + (holder <> ?2), holder = ?2, lead_until = ?3 \
    WHERE holder = ?2 OR lead_until <= ?4 \
    RETURNING name, holder, token, lead_until, document";

pub(super) fn lead(
    desk: &mut Desk,
    name: &str,
    holder: &str,
    length: Millis,
) -> Result<Option<Lead>> {
    let now = desk.now();
    let values = params![name, holder, (now + length).0, now.0];
    desk.connection.prepare_cached(TAKE)?.query_row(values, read).optional()
}

const KEEP: &str = "UPDATE leads SET document = ?3 WHERE name = ?1 AND token = ?2";

pub(super) fn keep(desk: &mut Desk, name: &str, token: u64, document: &str) -> Result<bool> {
    let values = params![name, row::count(token), document];
    Ok(desk.connection.prepare_cached(KEEP)?.execute(values)? == 1)
}

const LEADS: &str = "SELECT name, holder, token, lead_until, document FROM leads \
    WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name";

pub(super) fn leads(connection: &Connection, prefix: &str) -> Result<Vec<Lead>> {
    connection.prepare_cached(LEADS)?.query_map([prefix], read)?.collect()
}

fn read(row: &Row<'_>) -> Result<Lead> {
    Ok(Lead {
        name: row.get(0)?,
        holder: row.get(1)?,
        token: row.get::<_, i64>(2)?.unsigned_abs(),
        until: Timestamp(row.get(3)?),
        document: row.get(4)?,
    })
}
