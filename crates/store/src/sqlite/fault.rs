//! Errors of the database, one variant for each reaction of the caller.

use std::sync::{Arc, OnceLock};

use rusqlite::{ErrorCode, ffi};

use crate::Error;

/// Set once, for good: the disk failed, and the store accepts and answers no call any more.
///
/// **Invariant:** a failed sync is never retried. The kernel may have dropped the pages that it
/// could not write, and would report success the second time.
#[derive(Clone, Default)]
pub(super) struct Broken(Arc<OnceLock<String>>);

impl Broken {
    /// The answer to every call, if the store is broken.
    pub(super) fn error(&self, doing: &'static str) -> Option<Error> {
        self.0.get().map(|cause| Error::Broken { doing, cause: cause.clone() })
    }

    /// The answer after `error`. Remembers an error after which the store is broken.
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

    /// Marks the store as broken.
    pub(super) fn give_up(&self, cause: &str) {
        // The first cause stays: later errors follow from it.
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
    // The memory of the log's index is requested before any write.
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

/// A stored value that this version cannot read, as an error of the database.
pub(super) fn unreadable(what: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, what.into())
}
