//! Notes about events, for users.

use model::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::columns::clean;
use super::desk::{Desk, Sheet, Stage};
use super::fault::Fault;
use crate::{Note, NotePage, Noted, number};

/// Notes to store.
pub(super) struct Noting {
    pub(super) notes: Vec<Note>,
}

const NOTE: &str = "INSERT INTO notes (topic, kind, key, at, ages, document) \
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";

/// All but the newest of a topic and kind.
const TRIM: &str = "DELETE FROM notes WHERE topic = $1 AND kind = $2 AND id <= \
    (SELECT id FROM notes WHERE topic = $1 AND kind = $2 ORDER BY id DESC LIMIT 1 OFFSET $3)";

impl Stage for Noting {
    type Answer = ();

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<(), Fault> {
        let insert = sheet.transaction.prepare_cached(NOTE).await?;
        let trim = sheet.transaction.prepare_cached(TRIM).await?;
        for note in &self.notes {
            let Note { topic, kind, key, document, n_max, ages } = note;
            let document = clean(document);
            let values: [&(dyn ToSql + Sync); 6] =
                [topic, kind, key, &sheet.now.0, ages, &document];
            if sheet.transaction.execute(&insert, &values).await? == 1 {
                let n_max = i64::try_from(*n_max).unwrap_or(i64::MAX);
                sheet.transaction.execute(&trim, &[topic, kind, &n_max]).await?;
            }
        }
        Ok(())
    }
}

const NOTES: &str = "SELECT id, kind, key, at, document FROM notes \
    WHERE topic = $1 AND ($2::text IS NULL OR kind = $2) AND id < $3 ORDER BY id DESC LIMIT $4";

pub(super) async fn notes(desk: &Desk, page: &NotePage) -> Result<Vec<Noted>, Fault> {
    let before = page.before.map_or(i64::MAX, number::signed);
    let max = i64::try_from(page.max).unwrap_or(i64::MAX);
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(NOTES).await?;
    let values: [&(dyn ToSql + Sync); 4] = [&page.topic, &page.kind, &before, &max];
    let noted = |row: &Row| {
        Ok(Noted {
            number: number::size(row.try_get(0)?),
            kind: row.try_get(1)?,
            key: row.try_get(2)?,
            at: Timestamp(row.try_get(3)?),
            document: row.try_get(4)?,
        })
    };
    connection.query(&statement, &values).await?.iter().map(noted).collect()
}
