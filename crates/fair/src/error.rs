//! Reasons why a scenario has no verdict.

/// Reasons why a scenario has no verdict.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine refused something, or a condition did not come true in time.
    #[error(transparent)]
    Faults(#[from] faults::Error),
    /// There is no Postgres.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The scheduler refused a command.
    #[error("`maitre {words}` failed: {cause}")]
    Refused {
        /// The words after `maitre`.
        words: String,
        /// The standard error of the command.
        cause: String,
    },
    /// The name of `--only` is not in the table.
    #[error("no scenario is called `{name}`; the table has: {all}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// All names.
        all: String,
    },
    /// One of the tasks that play scenarios panicked.
    #[error("a scenario panicked")]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    /// Names what the machine refused.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let system = faults::Error::system(doing);
        move |source| Self::Faults(system(source))
    }
}
