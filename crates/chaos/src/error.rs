//! Errors that prevent the judgement of a run.

use std::io;

/// An error that prevents the judgement of a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of fault injection.
    #[error(transparent)]
    Faults(#[from] faults::Error),
    /// There is no Postgres.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The tables could not be read.
    #[error("could not ask the database")]
    Database(#[from] tokio_postgres::Error),
    /// A worker did not start.
    #[error("could not work")]
    Worker(#[from] worker::Error),
    /// A task of this program failed.
    #[error("a task ended: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    /// An error of the operating system during an operation.
    pub fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let told = faults::Error::system(doing);
        move |source| Self::Faults(told(source))
    }
}
