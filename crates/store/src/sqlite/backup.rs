//! A copy of a store while it is in use, and its check.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::{migrate, open};
use crate::{Checked, Error, agree};

/// The content of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Its size.
    pub bytes: u64,
    /// Unfinished jobs in it.
    pub unfinished: u64,
    /// Finished jobs in it.
    pub finished: u64,
}

/// Copies the store in the file `from`, in use or not, to the new file `to`: one snapshot with all
/// changes that were answered before it began. The copy gets its name after its check and its sync.
pub fn backup(from: &Path, to: &Path) -> Result<Backup, Error> {
    if !from.exists() {
        return Err(Error::Unusable(format!("there is no store at `{}`", from.display())));
    }
    if to.exists() {
        let to = to.display();
        return Err(Error::Unusable(format!("`{to}` is there already, and was left as it is")));
    }
    let part = PathBuf::from(format!("{}.part", to.display()));
    let done = copy(from, &part).and_then(|backup| {
        File::open(&part)
            .and_then(|file| file.sync_all())
            .map_err(|error| cannot(&part, &error))?;
        // Must not replace a file that was made meanwhile.
        fs::hard_link(&part, to).map_err(|error| cannot(to, &error))?;
        let dir = to.parent().filter(|dir| !dir.as_os_str().is_empty());
        let dir = File::open(dir.unwrap_or(Path::new("."))).and_then(|dir| dir.sync_all());
        dir.map_err(|error| cannot(to, &error))?;
        Ok(backup)
    });
    let _never_made = fs::remove_file(&part);
    done
}

fn copy(from: &Path, part: &Path) -> Result<Backup, Error> {
    let _left_over = fs::remove_file(part);
    let source = open::reader(from)?;
    migrate::check(&source, &from.display().to_string())?;
    // One statement is one transaction, and readers block no writer.
    source.pragma_update(None, "query_only", false).map_err(|error| cannot(part, &error))?;
    let target = part.display().to_string();
    source.execute("VACUUM INTO ?1", [&target]).map_err(|error| cannot(part, &error))?;
    drop(source);
    check_copy(part)
}

/// Reads the copy from its first page to its last.
fn check_copy(part: &Path) -> Result<Backup, Error> {
    let damaged = |finding: String| {
        Error::Unusable(format!("the copy is not whole, and was removed: {finding}"))
    };
    let Checked { unfinished, finished, problems } = check(part)?;
    if let Some(problem) = problems.into_iter().next() {
        return Err(damaged(problem));
    }
    let bytes = fs::metadata(part).map_err(|error| cannot(part, &error))?.len();
    Ok(Backup { bytes, unfinished, finished })
}

/// Reads the store in a file from its first page to its last, in use or not.
pub fn check(path: &Path) -> Result<Checked, Error> {
    let unreadable = |error: rusqlite::Error| {
        Error::Unusable(format!("could not read `{}`: {error}", path.display()))
    };
    if !path.exists() {
        return Err(Error::Unusable(format!("there is no store at `{}`", path.display())));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(unreadable)?;
    migrate::check(&connection, &path.display().to_string())?;
    let mut problems = Vec::new();
    let found =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    match found {
        Ok(found) if found == "ok" => {}
        Ok(found) => problems.push(found),
        Err(error) => problems.push(error.to_string()),
    }
    let count = |sql: &str| {
        let n = connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        n.map(i64::unsigned_abs).map_err(unreadable)
    };
    if problems.is_empty() {
        let orphans = count("SELECT count(*) FROM pragma_foreign_key_check")?;
        if orphans != 0 {
            problems.push(format!("{orphans} rows name others that are not there"));
        }
        for (what, sql) in agree::PROBLEMS {
            let n = count(sql)?;
            if n != 0 {
                problems.push(format!("{n} {what}"));
            }
        }
    }
    if !problems.is_empty() {
        return Ok(Checked { unfinished: 0, finished: 0, problems });
    }
    let (unfinished, finished) =
        (count("SELECT count(*) FROM jobs")?, count("SELECT count(*) FROM finished")?);
    Ok(Checked { unfinished, finished, problems })
}

fn cannot(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Unusable(format!("could not write `{}`: {error}", path.display()))
}
