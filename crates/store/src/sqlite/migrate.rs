//! Migrations of the schema. Each step is one transaction, and a released step never changes.

use model::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use crate::{Error, checksum};

/// Marks a file as a store of Maitre: `MTRE`.
pub(super) const APPLICATION_ID: i32 = 0x4D54_5245;

struct Step {
    name: &'static str,
    sql: &'static str,
}

/// In order. The position in the list is the number of the schema.
const STEPS: &[Step] = &[
    Step { name: "0001_jobs", sql: include_str!("../../migrations/sqlite/0001_jobs.sql") },
    Step { name: "0002_pool", sql: include_str!("../../migrations/sqlite/0002_pool.sql") },
    Step { name: "0003_notices", sql: include_str!("../../migrations/sqlite/0003_notices.sql") },
    Step { name: "0004_leads", sql: include_str!("../../migrations/sqlite/0004_leads.sql") },
    Step { name: "0005_stage", sql: include_str!("../../migrations/sqlite/0005_stage.sql") },
    Step { name: "0006_plain", sql: include_str!("../../migrations/sqlite/0006_plain.sql") },
    Step { name: "0007_minutes", sql: include_str!("../../migrations/sqlite/0007_minutes.sql") },
];

const MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT";

/// Refuses files of other programs, and newer schemas. Changes nothing.
pub(super) fn check(connection: &Connection, path: &str) -> Result<(), Error> {
    let cannot = |error: rusqlite::Error| {
        Error::Unusable(format!("`{path}` cannot be read as a store of Maitre: {error}"))
    };
    let application_id: i32 =
        connection.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(cannot)?;
    let n_things: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(cannot)?;
    if application_id == 0 && n_things == 0 {
        return Ok(());
    }
    if application_id != APPLICATION_ID {
        return Err(Error::Unusable(format!(
            "`{path}` is a database, but not a store of Maitre; nothing was changed"
        )));
    }
    for (number, name, checksum) in applied(connection).map_err(cannot)? {
        let known = usize::try_from(number - 1).ok().and_then(|place| STEPS.get(place));
        let Some(step) = known else {
            return Err(Error::Unusable(format!(
                "`{path}` was written by a newer version (schema {number} `{name}`, this version \
                 knows {}); nothing was changed",
                STEPS.len()
            )));
        };
        if checksum != checksum::of(step.sql) {
            return Err(Error::Unusable(format!(
                "`{path}` has another schema than this version under the same number ({number} \
                 `{name}`); nothing was changed"
            )));
        }
    }
    Ok(())
}

/// Whether the schema is up to date.
pub(super) fn is_current(connection: &Connection) -> bool {
    applied(connection).is_ok_and(|applied| applied.len() == STEPS.len())
}

/// Updates the schema.
pub(super) fn migrate(connection: &mut Connection, now: Timestamp) -> rusqlite::Result<()> {
    for (number, step) in (1_i64..).zip(STEPS) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(MIGRATIONS)?;
        let is_applied = transaction
            .query_row("SELECT 1 FROM migrations WHERE number = ?1", [number], |_| Ok(()))
            .optional()?
            .is_some();
        if !is_applied {
            transaction.execute_batch(step.sql)?;
            transaction.execute(
                "INSERT INTO migrations (number, name, checksum, at) VALUES (?1, ?2, ?3, ?4)",
                params![number, step.name, checksum::of(step.sql), now.0],
            )?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        }
        transaction.commit()?;
    }
    Ok(())
}

fn applied(connection: &Connection) -> rusqlite::Result<Vec<(i64, String, String)>> {
    connection
        .prepare("SELECT number, name, checksum FROM migrations ORDER BY number")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_the_first_version_is_brought_up_to_date() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(MIGRATIONS).unwrap();
        connection.execute_batch(STEPS[0].sql).unwrap();
        let first = params![STEPS[0].name, checksum::of(STEPS[0].sql)];
        connection.execute("INSERT INTO migrations VALUES (1, ?1, ?2, 0)", first).unwrap();
        migrate(&mut connection, Timestamp(1)).unwrap();
        let pools: Vec<Option<String>> = connection
            .prepare("SELECT pool FROM jobs")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        assert_eq!(pools, []);
        assert_eq!(applied(&connection).unwrap().len(), STEPS.len());
    }

    #[test]
    fn released_steps_are_never_changed() {
        let checksums: Vec<String> = STEPS.iter().map(|step| checksum::of(step.sql)).collect();
        let released = [
            "041b90b6074261ef",
            "e917c09f9b3b4c39",
            "abbea6e8d3f6c7d5",
            "d0618342232ec226",
            "088d23bb7cc22365",
            "120b5b51a1f7d9bf",
            "80f11e21ce66727f",
        ];
        assert_eq!(checksums, released);
    }
}
