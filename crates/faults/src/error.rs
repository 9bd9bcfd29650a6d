//! What keeps a scenario from being played to its end.

use std::io;
use std::time::Duration;

/// What keeps a scenario from being played to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine would not.
    #[error("could not {doing}")]
    System {
        /// A verb phrase.
        doing: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The store's file could not be read.
    #[error("could not read the store's file")]
    Store(#[from] rusqlite::Error),
    /// Something that one of the logs says makes no sense.
    #[error("could not understand `{line}`")]
    Line {
        /// What it says.
        line: String,
    },
    /// Something that had to come true did not: progress was lost for good.
    #[error("it is not so within {within:?} that {what}")]
    Late {
        /// The rest of a sentence.
        what: String,
        /// For how long it was waited for.
        within: Duration,
    },
    /// A process ended by itself.
    #[error("{who} ended by itself: {how}")]
    Ended {
        /// Which.
        who: String,
        /// Its exit code or signal, and what it said last.
        how: String,
    },
    /// The scheduler refused what it had to take.
    #[error("the scheduler would not {doing}")]
    Refused {
        /// A verb phrase.
        doing: &'static str,
        /// Its answer.
        #[source]
        source: Box<tonic::Status>,
    },
    /// The history breaks what must hold.
    #[error("{0}")]
    Violated(String),
}

impl Error {
    /// Names what the machine would not do.
    pub fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}
