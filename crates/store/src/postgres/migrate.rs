//! Migrations of the schema. A released step never changes, and each step leaves a schema that the
//! version before it can use.

use deadpool_postgres::{GenericClient, Object, Pool, Transaction};
use tokio_postgres::error::SqlState;

use super::fault::{Fault, cause, unreachable};
use crate::Error;
use crate::checksum;

pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
}

/// In order. The position in the list is the number of the schema.
pub(super) const STEPS: &[Step] = &[
    Step { name: "0001_jobs", sql: include_str!("../../migrations/postgres/0001_jobs.sql") },
    Step { name: "0002_sql", sql: include_str!("../../migrations/postgres/0002_sql.sql") },
    Step { name: "0003_leads", sql: include_str!("../../migrations/postgres/0003_leads.sql") },
    Step { name: "0004_stage", sql: include_str!("../../migrations/postgres/0004_stage.sql") },
    Step { name: "0005_plain", sql: include_str!("../../migrations/postgres/0005_plain.sql") },
    Step { name: "0006_calls", sql: include_str!("../../migrations/postgres/0006_calls.sql") },
    Step { name: "0007_grants", sql: include_str!("../../migrations/postgres/0007_grants.sql") },
    Step { name: "0008_stay", sql: include_str!("../../migrations/postgres/0008_stay.sql") },
    Step { name: "0009_forget", sql: include_str!("../../migrations/postgres/0009_forget.sql") },
    Step { name: "0010_usage", sql: include_str!("../../migrations/postgres/0010_usage.sql") },
    Step { name: "0011_minutes", sql: include_str!("../../migrations/postgres/0011_minutes.sql") },
];

/// Steps by which a schema may be newer than this version, so that an old scheduler can work during
/// an upgrade.
const NEWER_MAX: usize = 1;

/// Migrations run one at a time. A second process finds them done.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('maitre migrations'))";

/// A waiting schema change blocks all users of its table, so it gives up after a second and is
/// retried. Once it has its lock, it may take any time.
const LOCK_BRIEFLY: &str = "SET LOCAL lock_timeout = '1s'; SET LOCAL statement_timeout = 0";

pub(super) const PREPARE: &str = "CREATE SCHEMA IF NOT EXISTS maitre; \
    CREATE TABLE IF NOT EXISTS maitre.migrations ( \
    number bigint PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, \
    at timestamptz NOT NULL DEFAULT clock_timestamp())";

const APPLIED: &str = "SELECT number, name, checksum FROM maitre.migrations ORDER BY number";
const IS_MADE: &str = "SELECT to_regclass('maitre.migrations') IS NOT NULL";

/// Updates the schema, or returns why it cannot be used.
pub(super) async fn migrate(pool: &Pool) -> Result<(), Error> {
    let mut connection = pool.get().await.map_err(|error| unreachable(error.into()))?;
    is_new_enough(&connection).await.map_err(unreachable)??;
    let n_applied = applied(&connection).await.map_err(unreachable)??;
    if n_applied >= STEPS.len() {
        return Ok(());
    }
    match apply(&mut connection).await {
        Ok(answer) => answer,
        // A process with the privilege may have migrated while this one waited.
        Err(fault) if is_forbidden(&fault) => match is_current(pool).await {
            Err(Error::Unusable(_)) => Err(unmade(fault, n_applied)),
            current => current,
        },
        Err(fault) => Err(unmade(fault, n_applied)),
    }
}

fn is_forbidden(fault: &Fault) -> bool {
    let Fault::Database(error) = fault else { return false };
    error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
}

/// The error if the schema is too old and this role may not change it.
fn unmade(fault: Fault, n_applied: usize) -> Error {
    let Fault::Database(error) = &fault else { return unreachable(fault) };
    if !is_forbidden(&fault) {
        return unreachable(fault);
    }
    let (cause, n_steps) = (cause(error), STEPS.len());
    Error::Unusable(match n_applied {
        0 => format!(
            "there is no store of Maitre in this database, and this user may not make one \
             ({cause}): start a scheduler as a user who may, once"
        ),
        n => format!(
            "the store has schema {n}, this version works with {n_steps}, and this user may not \
             change it ({cause}): start a scheduler of this version as the schema's owner, once"
        ),
    })
}

/// Checks that the schema exists and is current. Changes nothing.
pub(super) async fn is_current(pool: &Pool) -> Result<(), Error> {
    let connection = pool.get().await.map_err(|error| unreachable(error.into()))?;
    is_new_enough(&connection).await.map_err(unreachable)??;
    let n_applied = applied(&connection).await.map_err(unreachable)??;
    if n_applied >= STEPS.len() {
        return Ok(());
    }
    Err(Error::Unusable(match n_applied {
        0 => "there is no store of Maitre in this database".to_owned(),
        n => format!(
            "the store has schema {n}, and this version works with {}: a scheduler of this \
             version brings it up to date",
            STEPS.len()
        ),
    }))
}

/// The oldest supported Postgres, in the form of `server_version_num`.
const VERSION_MIN: i32 = 150_000;
const VERSION: &str = "SELECT current_setting('server_version_num')::int";

async fn is_new_enough(connection: &Object) -> Result<Result<(), Error>, Fault> {
    let version: i32 = connection.query_one(VERSION, &[]).await?.try_get(0)?;
    Ok(new_enough(version))
}

fn new_enough(version: i32) -> Result<(), Error> {
    if version >= VERSION_MIN {
        return Ok(());
    }
    let (is, must) = (version / 10_000, VERSION_MIN / 10_000);
    let refused = format!("the store is Postgres {is}, and must be {must} or later");
    Err(Error::Unusable(refused))
}

/// The number of applied steps. Changes nothing, so it needs no privilege beyond reading.
async fn applied(connection: &impl GenericClient) -> Result<Result<usize, Error>, Fault> {
    if !connection.query_one(IS_MADE, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(Ok(0));
    }
    let rows = connection.query(APPLIED, &[]).await?;
    for (place, row) in rows.iter().enumerate() {
        let (name, sum): (String, String) = (row.try_get(1)?, row.try_get(2)?);
        let number = place + 1;
        match STEPS.get(place) {
            Some(step) if sum == checksum::of(step.sql) => {}
            Some(_) => {
                return Ok(Err(Error::Unusable(format!(
                    "the store has another schema than this version under the same number \
                     ({number} `{name}`); nothing was changed"
                ))));
            }
            None if place < STEPS.len() + NEWER_MAX => {}
            None => {
                return Ok(Err(Error::Unusable(format!(
                    "the store was written by a newer version (schema {number} `{name}`, this \
                     version knows {} and works with one more); nothing was changed",
                    STEPS.len()
                ))));
            }
        }
    }
    Ok(Ok(rows.len()))
}

/// Schedulers that reported within the last 10 s, by the database's clock.
const OTHERS: &str = "SELECT count(*) FROM maitre.schedulers \
    WHERE at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 10000";

/// Whether connected schedulers would meet a schema that is too new. They can work with a schema
/// that is one step newer than theirs.
async fn is_too_far(transaction: &Transaction<'_>, n_applied: usize) -> Result<bool, Fault> {
    if n_applied == 0 || STEPS.len() <= n_applied + NEWER_MAX {
        return Ok(false);
    }
    Ok(transaction.query_one(OTHERS, &[]).await?.try_get::<_, i64>(0)? > 0)
}

async fn apply(connection: &mut Object) -> Result<Result<(), Error>, Fault> {
    let transaction = connection.transaction().await?;
    transaction.batch_execute(LOCK).await?;
    transaction.batch_execute(LOCK_BRIEFLY).await?;
    transaction.batch_execute(PREPARE).await?;
    // A concurrent process may have migrated while this one waited for the lock.
    let n_applied = match applied(&transaction).await? {
        Ok(n_applied) => n_applied,
        Err(error) => return Ok(Err(error)),
    };
    if is_too_far(&transaction, n_applied).await? {
        let n_steps = STEPS.len();
        return Ok(Err(Error::Unusable(format!(
            "the store has schema {n_applied}, this version works with {n_steps}, and schedulers \
             that were here in the last 10 s cannot work with that; stop all of them first, or \
             let them be replaced by versions in between, one step at a time"
        ))));
    }
    for (place, step) in STEPS.iter().enumerate().skip(n_applied) {
        let number = i64::try_from(place + 1).unwrap_or(i64::MAX);
        transaction.batch_execute(step.sql).await?;
        let sql = "INSERT INTO maitre.migrations (number, name, checksum) VALUES ($1, $2, $3)";
        let values = (number, step.name, checksum::of(step.sql));
        transaction.execute(sql, &[&values.0, &values.1, &values.2]).await?;
    }
    transaction.commit().await?;
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_postgres_that_is_too_old_is_refused_by_its_version() {
        assert!(new_enough(150_000).is_ok() && new_enough(180_001).is_ok());
        let refused = new_enough(140_022).unwrap_err();
        let expected = "the store is Postgres 14, and must be 15 or later";
        assert!(matches!(&refused, Error::Unusable(told) if told == expected), "{refused}");
    }

    #[test]
    fn released_steps_are_never_changed() {
        let checksums: Vec<String> = STEPS.iter().map(|step| checksum::of(step.sql)).collect();
        let released = [
            "b4b42f2a86774819",
            "4975060bdce94585",
            "7354e78653619ebd",
            "7572b4d2f42cca65",
            "64c4ee1bf97b03ca",
            "5c94c897d13da596",
            "c07f2e2dd3db7ed3",
            "d388d1239083a893",
            "d040ee96ce86d070",
            "ee97747c26a96eed",
            "f7ab4b41ce73b539",
        ];
        assert_eq!(checksums, released);
    }
}
