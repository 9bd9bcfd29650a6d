//! Documents that an operator set.

use rusqlite::{Connection, OptionalExtension as _, Result, params};

use super::fault::unreadable;
use super::row;
use super::writer::Desk;
use crate::{Setting, SettingKind};

const SET: &str = "INSERT INTO settings (kind, name, document) VALUES (?1, ?2, ?3) \
    ON CONFLICT DO UPDATE SET document = excluded.document";
const REMOVE: &str = "DELETE FROM settings WHERE kind = ?1 AND name = ?2";

pub(super) fn set(desk: &mut Desk, settings: &[Setting]) -> Result<()> {
    for Setting { kind, name, document } in settings {
        match document {
            Some(document) => {
                let values = params![kind.name(), name, document];
                desk.connection.prepare_cached(SET)?.execute(values)?;
            }
            None => {
                desk.connection.prepare_cached(REMOVE)?.execute(params![kind.name(), name])?;
            }
        }
    }
    Ok(())
}

const IS: &str = "SELECT document FROM settings WHERE kind = ?1 AND name = ?2";

pub(super) fn replace(desk: &mut Desk, was: Option<&str>, setting: Setting) -> Result<bool> {
    let key = params![setting.kind.name(), setting.name];
    let mut statement = desk.connection.prepare_cached(IS)?;
    let is: Option<String> = statement.query_row(key, |row| row.get(0)).optional()?;
    drop(statement);
    // There is one writer, so no write comes in between.
    let is_same = is.as_deref() == was;
    if is_same {
        set(desk, &[setting])?;
    }
    Ok(is_same)
}

pub(super) fn settings(connection: &Connection) -> Result<Vec<Setting>> {
    let mut statement = connection.prepare_cached("SELECT kind, name, document FROM settings")?;
    let rows = statement.query_map([], |row| {
        let kind = row::named(row, 0, SettingKind::named)?;
        let kind = kind.ok_or_else(|| unreadable("the kind of a setting"))?;
        Ok(Setting { kind, name: row.get(1)?, document: Some(row.get(2)?) })
    })?;
    let mut settings: Vec<Setting> = rows.collect::<Result<_>>()?;
    settings.sort_unstable();
    Ok(settings)
}
