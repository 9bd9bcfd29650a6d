//! What keeps a run from being judged.

use std::io;

/// What keeps a run from being judged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What keeps any scenario from being played to its end.
    #[error(transparent)]
    Faults(#[from] faults::Error),
    /// There is no Postgres.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The tables could not be read.
    #[error("could not ask the database")]
    Database(#[from] tokio_postgres::Error),
    /// A worker would not start.
    #[error("could not work")]
    Worker(#[from] worker::Error),
    /// One of our own tasks ended.
    #[error("a task ended: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    /// Names what the machine would not do.
    pub fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let told = faults::Error::system(doing);
        move |source| Self::Faults(told(source))
    }
}
