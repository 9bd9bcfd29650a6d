//! What keeps a run from being judged.

use std::io;
use std::time::Duration;

/// What keeps a run from being judged.
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
    /// There is no Postgres.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The tables could not be read.
    #[error("could not ask the database")]
    Database(#[from] tokio_postgres::Error),
    /// Something that one of the logs says makes no sense.
    #[error("could not understand `{line}`")]
    Line {
        /// What it says.
        line: String,
    },
    /// Something that had to come true did not.
    #[error("it is not so within {within:?} that {what}")]
    Late {
        /// The rest of a sentence.
        what: String,
        /// For how long it was waited for.
        within: Duration,
    },
    /// A worker would not start.
    #[error("could not work")]
    Worker(#[from] worker::Error),
    /// One of our own tasks ended.
    #[error("a task ended: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    /// Names what the machine would not do.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}
