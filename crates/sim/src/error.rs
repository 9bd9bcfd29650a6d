//! What can go wrong before a replay starts.

use std::io;
use std::path::PathBuf;

use crate::workload::Bad;

/// Why a workload or a fleet cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The input is of no known form.
    #[error("`{name}` {problem}")]
    Form {
        /// The file, or the flag.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// More rows are bad than may be.
    #[error("{name} has {} bad rows, more than {bad_max}: {bad}", bad.count)]
    Bad {
        /// What has them.
        name: String,
        /// Those that are bad.
        bad: Bad,
        /// How many may be.
        bad_max: usize,
    },
    /// What was asked for does not go together.
    #[error("{0}")]
    Unfit(String),
}

impl Error {
    /// What does not go together with a policy, with its name.
    #[must_use]
    pub fn of(self, policy: &str) -> Self {
        match self {
            Self::Unfit(problem) => Self::Unfit(format!("`{policy}` {problem}")),
            other @ (Self::Read { .. } | Self::Form { .. } | Self::Bad { .. }) => other,
        }
    }

    pub(crate) fn form(name: &str, problem: impl Into<String>) -> Self {
        Self::Form { name: name.to_owned(), problem: problem.into() }
    }
}
