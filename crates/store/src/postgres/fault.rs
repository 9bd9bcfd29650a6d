//! Errors of the database, one variant for each reaction of the caller.

use std::io;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::Error;

/// The reason why a stage failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// A concurrent transaction changed the rows first. A retry from the beginning may succeed.
    Conflict,
    /// The database returned an error, or the connection failed.
    Database(tokio_postgres::Error),
    /// The pool returned no connection.
    Pool(String),
    /// The database did not answer within the timeout.
    Silence,
    /// The store cannot read a stored value.
    Unreadable(String),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        let is_conflict = error.code().is_some_and(|code| CONFLICTS.contains(code));
        if is_conflict { Self::Conflict } else { Self::Database(error) }
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Database(error),
            PoolError::Timeout(_)
            | PoolError::Closed
            | PoolError::NoRuntimeSpecified
            | PoolError::PostCreateHook(_) => Self::Pool(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

const CONFLICTS: &[SqlState] = &[
    SqlState::T_R_SERIALIZATION_FAILURE,
    SqlState::T_R_DEADLOCK_DETECTED,
    SqlState::UNIQUE_VIOLATION,
];

/// Whether a failed call may have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It has not.
    None,
    /// It may have, if the connection failed during the commit.
    IfLost,
}

impl Fault {
    /// The error for the caller.
    pub(super) fn tell(self, doing: &'static str, doubt: Doubt) -> Error {
        match self {
            Self::Conflict => {
                let cause = "others changed the same all the time".to_owned();
                Error::Unavailable { doing, cause }
            }
            Self::Pool(cause) => Error::Unavailable { doing, cause },
            Self::Silence if doubt == Doubt::IfLost => Error::Unknown { doing, cause: silence() },
            Self::Silence => Error::Unavailable { doing, cause: silence() },
            Self::Unreadable(what) => {
                Error::Unusable(format!("could not {doing}: the store has {what}"))
            }
            Self::Database(error) => match error.code() {
                Some(&SqlState::DISK_FULL) => Error::Full { doing },
                None if doubt == Doubt::IfLost => Error::Unknown { doing, cause: cause(&error) },
                Some(_) | None => Error::Unavailable { doing, cause: cause(&error) },
            },
        }
    }
}

fn silence() -> String {
    "the database does not answer".to_owned()
}

/// The error for a caller that connects. A problem that may pass is `Unavailable`. A wrong
/// password, name or privilege stays wrong until an operator fixes it.
pub(super) fn unreachable(fault: Fault) -> Error {
    if let Fault::Database(error) = &fault
        && !may_pass(error)
    {
        let cause = cause(error);
        return Error::Unusable(format!(
            "the store will not be used like this: {cause}; look at its address, its user's \
             password and rights, and at whether the database exists"
        ));
    }
    fault.tell("connect to the store", Doubt::None)
}

/// Whether the problem may pass: the database does not answer, starts, stops or is overloaded.
fn may_pass(error: &tokio_postgres::Error) -> bool {
    if let Some(code) = error.code() {
        return PASSING.iter().any(|class| code.code().starts_with(class));
    }
    let source = std::error::Error::source(error);
    let source = source.map(|source| source.downcast_ref::<io::Error>());
    // An untrusted certificate is reported as `InvalidData`.
    source.is_none_or(|io| io.is_some_and(|io| io.kind() != io::ErrorKind::InvalidData))
}

/// Classes of errors that may pass: connections, resources, locks, operator intervention, system.
const PASSING: [&str; 5] = ["08", "53", "55", "57", "58"];

/// The message of the database, without the client's prefix.
pub(super) fn cause(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => said.message().to_owned(),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

/// An error about a stored value that this version cannot read.
pub(super) fn unreadable(what: &str) -> Fault {
    Fault::Unreadable(format!("{what} that this version does not understand"))
}
