//! What the database says went wrong, told apart by what can be done about it.

use std::io;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::Error;

/// Why a stage did not come to its end.
#[derive(Debug)]
pub(super) enum Fault {
    /// Somebody else was quicker: the same from the beginning may work.
    Conflict,
    /// The database said no, or nothing.
    Database(tokio_postgres::Error),
    /// There was no connection.
    Pool(String),
    /// There was no answer for longer than any may take.
    Silence,
    /// What is there is not understood.
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

/// Whether what was asked may have been done although nobody said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It was not.
    None,
    /// The connection may have been lost after it was.
    IfLost,
}

impl Fault {
    /// What to tell whoever asked.
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

/// What to tell whoever connects. What may pass is `Unavailable`; a password, a name or a right
/// that is wrong stays so until somebody does something about it.
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

/// Whether it may go away by itself: nobody answers, it starts, it stops, it has too much to do.
fn may_pass(error: &tokio_postgres::Error) -> bool {
    if let Some(code) = error.code() {
        return PASSING.iter().any(|class| code.code().starts_with(class));
    }
    let source = std::error::Error::source(error);
    let source = source.map(|source| source.downcast_ref::<io::Error>());
    // A certificate that is not to be trusted is an error in what was read.
    source.is_none_or(|io| io.is_some_and(|io| io.kind() != io::ErrorKind::InvalidData))
}

/// Classes of errors: of connections, of want of room, of locks, of those who operate it, of its
/// machine.
const PASSING: [&str; 5] = ["08", "53", "55", "57", "58"];

/// What the database said, without the words around it.
pub(super) fn cause(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => said.message().to_owned(),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

/// Something in the database that this version does not understand.
pub(super) fn unreadable(what: &str) -> Fault {
    Fault::Unreadable(format!("{what} that this version does not understand"))
}
