//! Invalid values.

use std::fmt;

/// An invalid value: the field, and the rest of a sentence that starts with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field.
    pub field: String,
    /// The value and the limit.
    pub problem: String,
}

impl Problem {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// The same problem, of a field inside `place`.
    #[must_use]
    pub fn inside(self, place: &str) -> Self {
        Self { field: format!("{place}.{}", self.field), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.problem)
    }
}

impl std::error::Error for Problem {}
