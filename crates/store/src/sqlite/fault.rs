//! What the database says went wrong, told apart by what can be done about it.

use std::sync::{Arc, OnceLock};

use rusqlite::{ErrorCode, ffi};

use crate::Error;

/// Set once, for good: the disk failed, and nothing more is taken or told.
///
/// **Invariant:** a failed sync is never tried again: the kernel may have dropped what it could
/// not write, and would answer the second time as if all were well.
#[derive(Clone, Default)]
pub(super) struct Broken(Arc<OnceLock<String>>);

impl Broken {
    /// What to answer to everything, if it is broken.
    pub(super) fn error(&self, doing: &'static str) -> Option<Error> {
        self.0.get().map(|cause| Error::Broken { doing, cause: cause.clone() })
    }

    /// What to answer after `error`. Remembers it if there is no going on.
    pub(super) fn note(&self, doing: &'static str, error: &rusqlite::Error) -> Error {
        let cause = error.to_string();
        match kind(error) {
            Kind::Full => Error::Full { doing },
            Kind::Passing => Error::Unavailable { doing, cause },
            Kind::Final => {
                self.give_up(&cause);
                Error::Broken { doing, cause }
            }
        }
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// There is no going on.
    pub(super) fn give_up(&self, cause: &str) {
        // Whoever was first keeps the word: what follows is a consequence.
        let _ = self.0.set(cause.to_owned());
    }
}

enum Kind {
    Full,
    Passing,
    Final,
}

fn kind(error: &rusqlite::Error) -> Kind {
    if matches!(error, rusqlite::Error::FromSqlConversionFailure(..)) {
        return Kind::Final;
    }
    let Some(failure) = error.sqlite_error() else {
        return Kind::Passing;
    };
    // Room for the index of the log is asked for before anything is written.
    if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE {
        return Kind::Full;
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "the list is SQLite's")]
    match failure.code {
        ErrorCode::DiskFull => Kind::Full,
        ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            Kind::Final
        }
        _ => Kind::Passing,
    }
}

/// Something on disk that this version does not understand, as an error of the database.
pub(super) fn unreadable(what: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, what.into())
}
