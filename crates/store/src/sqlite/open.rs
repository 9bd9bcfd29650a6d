//! Opens a file after it checks its program, its integrity and its schema.

use std::path::Path;
use std::time::Duration;

use model::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::migrate;
use crate::Error;

/// Older versions can corrupt a write-ahead log that two connections use.
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// Timeout for a lock of a different connection. Ours are short.
const BUSY: Duration = Duration::from_secs(5);
/// Up to this size (1 GiB) the whole file is checked at start. Of a larger file, only hot tables
/// are.
const CHECKED_PAGES_MAX: i64 = 262_144;
/// The tables that scheduling uses.
const HOT_TABLES: &[&str] = &["meta", "jobs", "waits", "sessions", "settings"];
/// Statements that stay prepared. There are fewer.
const STATEMENTS_MAX: usize = 256;

/// Opens a file, or makes one.
pub(super) fn file(path: &Path, now: Timestamp) -> Result<Connection, Error> {
    check_version()?;
    let shown = path.display().to_string();
    let cannot = |error: rusqlite::Error| {
        Error::Unusable(format!("`{shown}` cannot be opened as a store of Maitre: {error}"))
    };
    let mut connection = Connection::open(path).map_err(cannot)?;
    connection.busy_timeout(BUSY).map_err(cannot)?;
    migrate::check(&connection, &shown)?;
    check_pages(&connection, &shown)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(cannot)?;
    set_up(&connection).map_err(cannot)?;
    migrate::migrate(&mut connection, now).map_err(cannot)?;
    Ok(connection)
}

/// A store in memory, which ends with the process.
pub(super) fn memory(now: Timestamp) -> Result<Connection, Error> {
    check_version()?;
    let cannot = |error: rusqlite::Error| Error::Unusable(format!("no store in memory: {error}"));
    let mut connection = Connection::open_in_memory().map_err(cannot)?;
    set_up(&connection).map_err(cannot)?;
    migrate::migrate(&mut connection, now).map_err(cannot)?;
    Ok(connection)
}

/// A further connection to the same file, which cannot write.
pub(super) fn reader(path: &Path) -> Result<Connection, Error> {
    let cannot = |error: rusqlite::Error| {
        Error::Unusable(format!("`{}` cannot be opened for reading: {error}", path.display()))
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(cannot)?;
    connection.busy_timeout(BUSY).map_err(cannot)?;
    keep_statements(&connection).map_err(cannot)?;
    connection.pragma_update(None, "query_only", true).map_err(cannot)?;
    Ok(connection)
}

/// A connection that cannot write, to an existing file with a current schema.
pub(crate) fn to_read(path: &Path) -> Result<Connection, Error> {
    check_version()?;
    let connection = reader(path)?;
    migrate::check(&connection, &path.display().to_string())?;
    if !migrate::is_current(&connection) {
        return Err(Error::Unusable(format!(
            "`{}` is empty or of an older version; a scheduler that opens it brings it up to date",
            path.display()
        )));
    }
    Ok(connection)
}

fn check_version() -> Result<(), Error> {
    if rusqlite::version_number() >= SQLITE_VERSION_MIN {
        return Ok(());
    }
    Err(Error::Unusable(format!(
        "SQLite {} can corrupt its write-ahead log; 3.51.3 or newer is needed",
        rusqlite::version()
    )))
}

fn check_pages(connection: &Connection, path: &str) -> Result<(), Error> {
    let damaged = |finding: String| {
        Error::Unusable(format!(
            "`{path}` is damaged: {finding}; nothing was changed: restore it from a backup"
        ))
    };
    let number = |pragma: &str| {
        let number = connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
        number.map_err(|error| damaged(error.to_string()))
    };
    let check = |pragma: &str| {
        let found = connection.query_row(pragma, [], |row| row.get::<_, String>(0));
        match found.map_err(|error| damaged(error.to_string()))? {
            text if text == "ok" => Ok(()),
            text => Err(damaged(text)),
        }
    };
    if number("PRAGMA page_count")? <= CHECKED_PAGES_MAX {
        return check("PRAGMA quick_check(1)");
    }
    HOT_TABLES.iter().try_for_each(|table| check(&format!("PRAGMA quick_check({table})")))
}

/// With `NORMAL`, `SQLite` syncs before and after a checkpoint, and not at commits. The thread of
/// `disk.rs` syncs those, before any caller is answered.
fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    keep_statements(connection)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // `SQLite` writes only to the file and to its log.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // A negative number is in KiB.
    connection.pragma_update(None, "cache_size", -16_384)?;
    // Shrinks a log that grew during a long read.
    connection.pragma_update(None, "journal_size_limit", 64 << 20)
}

/// Keeps statements prepared. Without `ENABLE_QPSG`, statements that could use a partial index
/// would be prepared again for each value.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}
