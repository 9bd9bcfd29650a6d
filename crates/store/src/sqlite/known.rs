//! The state of jobs that a submission names.

use model::{Name, State};
use rusqlite::{Connection, OptionalExtension as _, Result, params};

use super::row;
use crate::plan::Known;

/// Queries on demand: there is no concurrent writer.
impl Known for Connection {
    type Fault = rusqlite::Error;

    fn holder(&self, tenant: &str, (kind, key): (&Name, &str)) -> Result<Option<i64>> {
        let mut statement = self.prepare_cached(HOLDER)?;
        statement.query_row(params![tenant, kind.to_string(), key], |row| row.get(0)).optional()
    }

    fn state(&self, tenant: &str, id: i64) -> Result<Option<State>> {
        let mut statement = self.prepare_cached(STATE)?;
        let state =
            statement.query_row(params![id, tenant], |read| row::named(read, 0, State::named));
        Ok(state.optional()?.flatten())
    }
}

const HOLDER: &str = "SELECT id FROM jobs WHERE tenant = ?1 AND kind = ?2 AND dedupe_key = ?3";

const STATE: &str = "SELECT state FROM jobs WHERE id = ?1 AND tenant = ?2 \
    UNION ALL SELECT state FROM finished WHERE id = ?1 AND tenant = ?2";
