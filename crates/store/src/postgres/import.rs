//! Copies a `SQLite` file to a Postgres that is empty, or that an earlier import left incomplete.
//! Rows that are there already are not copied again.

use std::path::Path;

use deadpool_postgres::{Object, Pool};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Statement};
use tokio_postgres::types::ToSql;

use super::Postgres;
use super::arrive;
use super::columns::clean;
use super::fault::{Doubt, Fault, unreachable};
use crate::sqlite::to_read;
use crate::{Error, checksum};

/// The limits of a batch, in rows and in bytes. A message to Postgres has at most 1 GiB.
const BATCH: usize = 2_000;
const BATCH_BYTES: usize = 16 << 20;
const DOING: &str = "move the store";

/// One table: the query, in a stable order, and the target of each column.
struct Table {
    name: &'static str,
    read: &'static str,
    /// Names and types in Postgres.
    columns: &'static [(&'static str, &'static str)],
}

macro_rules! columns {
    ($($name:ident $type:ident),* $(,)?) => {
        &[$((stringify!($name), stringify!($type))),*]
    };
}

/// Tables that refer to others come after them. Jobs come last, so that no scheduler runs a part of
/// them.
const TABLES: &[Table] = &[
    Table {
        name: "settings",
        read: "SELECT kind, name, document FROM settings ORDER BY kind, name",
        columns: columns![kind text, name text, document text],
    },
    Table {
        name: "usage",
        read: "SELECT minute, tenant, 0, cost, completed FROM usage ORDER BY minute, tenant",
        columns: columns![minute bigint, tenant text, part integer, cost bigint, completed bigint],
    },
    Table {
        name: "runs",
        read: "SELECT id, tenant, kind, history_key, at, wait, duration, ending, ram_peak_mb, \
            cpu_ms, disk_bytes, out_of_memory, fetched_paths, fetched_bytes, n_dependents \
            FROM runs ORDER BY id",
        columns: columns![
            id bigint, tenant text, kind text, history_key text, at bigint, wait bigint,
            duration bigint, ending text, ram_peak_mb bigint, cpu_ms bigint, disk_bytes bigint,
            out_of_memory boolean, fetched_paths bigint, fetched_bytes bigint, n_dependents bigint,
        ],
    },
    Table {
        name: "sessions",
        read: "SELECT worker, generation, lease_until, has_left FROM sessions ORDER BY worker",
        columns: columns![worker text, generation bigint, lease_until bigint, has_left boolean],
    },
    Table {
        name: "keys",
        read: "SELECT id, tenant, key, body, '{' || trim(jobs, '[]') || '}' FROM keys ORDER BY id",
        columns: &[
            ("id", "bigint"),
            ("tenant", "text"),
            ("key", "text"),
            ("body", "bytea"),
            ("jobs", "bigint[]"),
        ],
    },
    Table {
        name: "keyed",
        read: "SELECT job, key FROM keyed ORDER BY job, key",
        columns: columns![job bigint, key bigint],
    },
    Table {
        name: "logs",
        read: "SELECT job, attempt, position, stream, at, bytes FROM logs \
            ORDER BY job, attempt, position",
        columns: columns![
            job bigint, attempt bigint, position bigint, stream text, at bigint, bytes bytea,
        ],
    },
    Table {
        name: "attempts",
        read: "SELECT job, number, worker, claimed, started, ended, ending, error, exit_code, \
            ram_peak_mb, cpu_ms, disk_bytes, out_of_memory, why FROM attempts ORDER BY job, number",
        columns: columns![
            job bigint, number bigint, worker text, claimed bigint, started bigint, ended bigint,
            ending text, error text, exit_code integer, ram_peak_mb bigint, cpu_ms bigint,
            disk_bytes bigint, out_of_memory boolean, why text,
        ],
    },
    Table {
        name: "notices",
        read: "SELECT id, job, tenant, kind, url, state, cause, finished, tries, due \
            FROM notices ORDER BY id",
        columns: columns![
            id bigint, job bigint, tenant text, kind text, url text, state text, cause text,
            finished bigint, tries bigint, due bigint,
        ],
    },
    Table {
        name: "leads",
        read: "SELECT name, holder, token, lead_until, document FROM leads ORDER BY name",
        columns: columns![name text, holder text, token bigint, lead_until bigint, document text],
    },
    Table {
        name: "notes",
        read: "SELECT id, topic, kind, key, at, ages, document FROM notes ORDER BY id",
        columns: columns![
            id bigint, topic text, kind text, key text, at bigint, ages boolean, document text,
        ],
    },
    Table {
        name: "minutes",
        read: "SELECT minute, scheduler, document FROM minutes ORDER BY minute, scheduler",
        columns: columns![minute bigint, scheduler bigint, document text],
    },
    Table {
        name: "finished",
        read: "SELECT j.id, j.tenant, j.kind, s.document ->> '$.dedupe_key', j.group_name, \
            j.state, j.fence, j.priority, j.attempts, j.failures, j.losses, j.evictions, \
            j.refusals, j.revived, j.created, j.ready, j.last_worker, j.finished, j.cause, \
            j.error, j.exit_code, j.cost, j.result, 0, s.document, s.payload, j.claimed, \
            j.started, j.why FROM finished j JOIN specs s ON s.id = j.id ORDER BY j.id",
        columns: columns![
            id bigint, tenant text, kind text, dedupe_key text, group_name text, state text,
            fence bigint, priority integer, attempts bigint, failures bigint, losses bigint,
            evictions bigint, refusals bigint, revived bigint, created bigint, ready bigint,
            last_worker text, finished bigint, cause text, error text, exit_code integer,
            cost bigint, result bytea, queue bigint, document text, payload bytea, claimed bigint,
            started bigint, why text,
        ],
    },
    Table {
        name: "waits",
        read: "SELECT blocker, waiter FROM waits ORDER BY blocker, waiter",
        columns: columns![blocker bigint, waiter bigint],
    },
    Table {
        name: "jobs",
        read: "SELECT j.id, j.tenant, j.kind, j.dedupe_key, j.group_name, j.state, j.fence, \
            j.priority, j.attempts, j.failures, j.losses, j.evictions, j.refusals, j.revived, \
            j.created, j.ready, j.backoff_until, j.on_hold, j.cancelling, j.n_blockers, \
            j.n_dependents, j.last_worker, j.error, j.exit_code, j.cost, j.worker, j.claimed, \
            j.started, j.holds, j.fraction, j.note, j.stage, j.why, j.pool, 0, s.document, \
            s.payload FROM jobs j JOIN specs s ON s.id = j.id ORDER BY j.id",
        columns: columns![
            id bigint, tenant text, kind text, dedupe_key text, group_name text, state text,
            fence bigint, priority integer, attempts bigint, failures bigint, losses bigint,
            evictions bigint, refusals bigint, revived bigint, created bigint, ready bigint,
            backoff_until bigint, on_hold boolean, cancelling boolean, n_blockers bigint,
            n_dependents bigint, last_worker text, error text, exit_code integer, cost bigint,
            worker text, claimed bigint, started bigint, holds text, fraction bigint, note text,
            stage text, why text, pool text, queue bigint, document text, payload bytea,
        ],
    },
];

/// Exists during an import: until it is dropped, the store is incomplete. No step of the schema
/// makes it, so it disturbs no other version.
const BEGIN: &str = "CREATE TABLE moving \
    (begun timestamptz NOT NULL DEFAULT clock_timestamp(), source text NOT NULL)";
/// The state of the file when the import began. Null if an older version began it.
const SOURCE: &str = "SELECT to_jsonb(m) ->> 'source' FROM moving m";
/// Changes with each use of the file, because every change of a job raises its fence.
const STATE: &str = "SELECT json_array( \
    (SELECT json_array(next_job, latest, generations) FROM meta), \
    (SELECT json_array(count(*), sum(fence)) FROM jobs), \
    (SELECT json_array(count(*), sum(fence)) FROM finished), \
    (SELECT json_group_array(json_array(kind, name, document)) \
    FROM (SELECT * FROM settings ORDER BY kind, name)))";
const END: &str = "DROP TABLE moving";
const IS_MOVING: &str = "SELECT to_regclass('maitre.moving') IS NOT NULL";
const IS_EMPTY: &str = "SELECT NOT EXISTS (SELECT 1 FROM jobs) \
    AND NOT EXISTS (SELECT 1 FROM finished) AND NOT EXISTS (SELECT 1 FROM keys)";

const OTHERS: &str = "SELECT count(*) FROM schedulers \
    WHERE at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 10000";

const USED_SINCE: &str = "what is to be moved was used after the move began, so that what is there \
    already may be old; make the database empty (`DROP SCHEMA maitre CASCADE`), and move again";

impl Postgres {
    /// Copies the whole file and compares the counts. No other process may use the file meanwhile.
    /// `tell` gets a table, its copied rows and its total rows. Returns the number of jobs.
    pub async fn import(
        &self,
        path: &Path,
        mut tell: impl FnMut(&str, u64, u64),
    ) -> Result<u64, Error> {
        let source = to_read(path)?;
        self.begin(&source).await.map_err(|fault| fault.tell(DOING, Doubt::None))??;
        let import = async {
            let connection = self.desk.connection().await?;
            let mut n_jobs = 0;
            for table in TABLES {
                let n = table.copy(&source, &connection, &mut tell).await?;
                if ["jobs", "finished"].contains(&table.name) {
                    n_jobs += n;
                }
            }
            let (next, generations) = source
                .query_row("SELECT next_job, generations FROM meta", [], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
                })
                .map_err(unread)?;
            let sql = "SELECT setval('job_ids', $1, false)";
            connection.query_one(sql, &[&next.max(1)]).await?;
            connection.execute("UPDATE generations SET highest = $1", &[&generations]).await?;
            connection.batch_execute("SET statement_timeout = 0").await?;
            connection.batch_execute(&format!("{}; {END}", arrive::arrive())).await?;
            connection.batch_execute("RESET statement_timeout").await?;
            Ok(n_jobs)
        };
        import.await.map_err(|fault: Fault| fault.tell(DOING, Doubt::None))
    }

    /// Continues an interrupted import, or begins one in an empty database.
    async fn begin(&self, source: &Connection) -> Result<Result<(), Error>, Fault> {
        let state: String = source.query_row(STATE, [], |row| row.get(0)).map_err(unread)?;
        let state = checksum::of(&state);
        let connection = self.desk.connection().await?;
        let others: i64 = connection.query_one(OTHERS, &[]).await?.try_get(0)?;
        if others > 0 {
            return Ok(Err(Error::Unusable(format!(
                "schedulers worked on it in the last 10 s ({others}); stop them, and try again"
            ))));
        }
        if is_moving(&connection).await? {
            let begun = connection.query_opt(SOURCE, &[]).await?;
            let begun: Option<String> = begun.map(|row| row.try_get(0)).transpose()?.flatten();
            return Ok(if begun.is_none_or(|begun| begun == state) {
                Ok(())
            } else {
                Err(Error::Unusable(USED_SINCE.to_owned()))
            });
        }
        if !connection.query_one(IS_EMPTY, &[]).await?.try_get::<_, bool>(0)? {
            let problem = "there are jobs in it already; move into an empty database";
            return Ok(Err(Error::Unusable(problem.to_owned())));
        }
        let keep = format!("INSERT INTO moving (source) VALUES ('{state}')");
        connection.batch_execute(&format!("BEGIN; {BEGIN}; {keep}; COMMIT")).await?;
        Ok(Ok(()))
    }
}

async fn is_moving(connection: &Object) -> Result<bool, Fault> {
    Ok(connection.query_one(IS_MOVING, &[]).await?.try_get(0)?)
}

/// Refuses an incomplete import.
pub(super) async fn is_whole(pool: &Pool) -> Result<(), Error> {
    let is_moving = async { is_moving(&pool.get().await?).await };
    if is_moving.await.map_err(unreachable)? {
        return Err(Error::Unusable(
            "somebody began to move a store into this one, and it is half there; the same \
             `maitre store move` again goes on where it stopped"
                .to_owned(),
        ));
    }
    Ok(())
}

impl Table {
    async fn copy(
        &self,
        source: &Connection,
        target: &Object,
        tell: &mut impl FnMut(&str, u64, u64),
    ) -> Result<u64, Fault> {
        let count = format!("SELECT count(*) FROM ({})", self.read);
        let total = source.query_row(&count, [], |row| row.get::<_, i64>(0)).map_err(unread)?;
        let total = total.unsigned_abs();
        let here = format!("SELECT count(*) FROM {}", self.name);
        let there: i64 = target.query_one(here.as_str(), &[]).await?.try_get(0)?;
        let mut n_done = there.unsigned_abs();
        let insert = target.prepare_cached(&self.insert()).await?;
        let mut statement = source.prepare(self.read).map_err(unread)?;
        let mut batches = Batches::new(&mut statement, self.columns, n_done)?;
        while let Some(batch) = batches.next()? {
            let mut values: Vec<&(dyn ToSql + Sync)> = Vec::with_capacity(batch.len());
            for column in &batch {
                values.push(column);
            }
            target.execute(&insert, &values).await?;
            n_done += u64::try_from(batch.first().map_or(0, Vec::len)).unwrap_or(0);
            tell(self.name, n_done, total);
        }
        let now: i64 = target.query_one(here.as_str(), &[]).await?.try_get(0)?;
        if now.unsigned_abs() == total {
            return Ok(total);
        }
        let problem = format!("`{}` has {now} rows there and {total} here", self.name);
        Err(Fault::Unreadable(format!("{problem}; move into an empty database")))
    }

    /// All values are sent as text.
    fn insert(&self) -> String {
        let list = |one: fn(usize, &(&str, &str)) -> String| {
            let all: Vec<String> =
                self.columns.iter().enumerate().map(|(at, column)| one(at, column)).collect();
            all.join(", ")
        };
        let overriding = "OVERRIDING SYSTEM VALUE";
        format!(
            "INSERT INTO {} ({}) {overriding} SELECT {} FROM unnest({}) AS u({}) \
             ON CONFLICT DO NOTHING",
            self.name,
            list(|_, (name, _)| (*name).to_owned()),
            list(|at, (_, kind)| format!("c{at}::{kind}")),
            list(|at, _| format!("${}::text[]", at + 1)),
            list(|at, _| format!("c{at}")),
        )
    }
}

/// Rows by column, a batch at a time.
struct Batches<'s> {
    rows: rusqlite::Rows<'s>,
    n_columns: usize,
}

impl<'s> Batches<'s> {
    fn new(
        statement: &'s mut Statement<'_>,
        columns: &[(&str, &str)],
        n_skipped: u64,
    ) -> Result<Self, Fault> {
        let mut rows = statement.query([]).map_err(unread)?;
        for _ in 0..n_skipped {
            rows.next().map_err(unread)?;
        }
        Ok(Self { rows, n_columns: columns.len() })
    }

    fn next(&mut self) -> Result<Option<Vec<Vec<Option<String>>>>, Fault> {
        let mut batch: Vec<Vec<Option<String>>> = vec![Vec::new(); self.n_columns];
        let (mut n_rows, mut n_bytes) = (0, 0);
        while n_rows < BATCH && n_bytes < BATCH_BYTES {
            let Some(row) = self.rows.next().map_err(unread)? else { break };
            for (at, column) in batch.iter_mut().enumerate() {
                let text = text(row.get_ref(at).map_err(unread)?);
                n_bytes += text.as_ref().map_or(0, String::len);
                column.push(text);
            }
            n_rows += 1;
        }
        Ok(batch.first().is_some_and(|column| !column.is_empty()).then_some(batch))
    }
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(text) => Some(clean(&String::from_utf8_lossy(text))),
        ValueRef::Blob(bytes) => {
            let hex = bytes.iter().map(|byte| format!("{byte:02x}"));
            Some(format!("\\x{}", hex.collect::<String>()))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the function is passed to map_err by value")]
fn unread(error: rusqlite::Error) -> Fault {
    Fault::Unreadable(format!("something that cannot be read: {error}"))
}
