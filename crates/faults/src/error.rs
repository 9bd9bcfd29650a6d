//! Errors that end a scenario early.

use std::io;
use std::time::Duration;

/// An error that ends a scenario early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system returned an error.
    #[error("could not {doing}")]
    System {
        /// A verb phrase.
        doing: String,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// The store's file could not be read.
    #[error("could not read the store's file")]
    Store(#[from] rusqlite::Error),
    /// A line of a log cannot be read.
    #[error("could not understand `{line}`")]
    Line {
        /// The line.
        line: String,
    },
    /// An expected condition did not become true in time.
    #[error("it is not so within {within:?} that {what}")]
    Late {
        /// The rest of a sentence.
        what: String,
        /// The timeout.
        within: Duration,
    },
    /// A process ended unexpectedly.
    #[error("{who} ended by itself: {how}")]
    Ended {
        /// The process.
        who: String,
        /// Its exit code or signal, and its last output.
        how: String,
    },
    /// The scheduler rejected a valid request.
    #[error("the scheduler would not {doing}")]
    Refused {
        /// A verb phrase.
        doing: &'static str,
        /// Its answer.
        #[source]
        source: Box<tonic::Status>,
    },
    /// The history violates a rule.
    #[error("{0}")]
    Violated(String),
}

impl Error {
    /// An error of the operating system during an operation.
    pub fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}
