//! Documents that an operator set.

use super::desk::{Desk, Sheet, Stage};
use super::fault::{Fault, unreadable};
use super::row;
use crate::{Setting, SettingKind};

/// Settings to set or to remove.
pub(super) struct Changing {
    pub(super) settings: Vec<Setting>,
}

const SET: &str = "INSERT INTO settings (kind, name, document) VALUES ($1, $2, $3) \
    ON CONFLICT (kind, name) DO UPDATE SET document = excluded.document";
const REMOVE: &str = "DELETE FROM settings WHERE kind = $1 AND name = $2";

impl Stage for Changing {
    type Answer = ();

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<(), Fault> {
        let set = sheet.transaction.prepare_cached(SET).await?;
        let remove = sheet.transaction.prepare_cached(REMOVE).await?;
        for Setting { kind, name, document } in &self.settings {
            match document {
                Some(document) => {
                    sheet.transaction.execute(&set, &[&kind.name(), name, document]).await?;
                }
                None => {
                    sheet.transaction.execute(&remove, &[&kind.name(), name]).await?;
                }
            }
        }
        sheet.outcome().told.settings = true;
        Ok(())
    }
}

/// A setting to set or to remove, if it still equals `was`.
pub(super) struct Replacing {
    pub(super) was: Option<String>,
    pub(super) setting: Setting,
}

const ADD: &str = "INSERT INTO settings (kind, name, document) \
    VALUES ($1, $2, $3) ON CONFLICT (kind, name) DO NOTHING";
const REPLACE: &str =
    "UPDATE settings SET document = $3 WHERE kind = $1 AND name = $2 AND document = $4";
const REMOVE_IF: &str = "DELETE FROM settings WHERE kind = $1 AND name = $2 AND document = $3";
const IS_NONE: &str = "SELECT 1 FROM settings WHERE kind = $1 AND name = $2";

impl Stage for Replacing {
    type Answer = bool;

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<bool, Fault> {
        let Setting { kind, name, document } = &self.setting;
        let (kind, on) = (kind.name(), sheet.transaction);
        let is_done = match (&self.was, document) {
            (None, Some(document)) => on.execute(ADD, &[&kind, name, document]).await? == 1,
            (Some(was), Some(document)) => {
                on.execute(REPLACE, &[&kind, name, document, was]).await? == 1
            }
            (Some(was), None) => on.execute(REMOVE_IF, &[&kind, name, was]).await? == 1,
            (None, None) => on.query_opt(IS_NONE, &[&kind, name]).await?.is_none(),
        };
        sheet.outcome().told.settings = is_done;
        Ok(is_done)
    }
}

pub(super) async fn settings(desk: &Desk) -> Result<Vec<Setting>, Fault> {
    let connection = desk.connection().await?;
    let sql = "SELECT kind, name, document FROM settings";
    let statement = connection.prepare_cached(sql).await?;
    let setting = |read: &tokio_postgres::Row| {
        let kind = row::named(read, 0, SettingKind::named)?;
        let kind = kind.ok_or_else(|| unreadable("the kind of a setting"))?;
        Ok(Setting { kind, name: read.try_get(1)?, document: Some(read.try_get(2)?) })
    };
    let rows = connection.query(&statement, &[]).await?;
    let mut settings: Vec<Setting> = rows.iter().map(setting).collect::<Result<_, Fault>>()?;
    settings.sort_unstable();
    Ok(settings)
}
