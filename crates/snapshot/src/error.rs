//! Errors of a snapshot: the place, the problem and a hint.

use std::borrow::Cow;

/// The reason why a text is not a snapshot. One line each: the place, the value, the allowed
/// values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The text is not JSON.
    #[error("not JSON: {problem} at line {line}, column {column}")]
    Json {
        /// The message of the JSON parser.
        problem: String,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// A hint.
        hint: Option<String>,
    },
    /// The text is JSON, but a value in it is invalid.
    #[error("`{path}` {problem}")]
    Field {
        /// The path of the value, such as `jobs[3].priority`.
        path: String,
        /// The problem: the value, and the limit or the allowed values.
        problem: String,
        /// A hint.
        hint: Option<String>,
    },
}

impl SnapshotError {
    /// A hint, if there is a likely one.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Json { hint, .. } | Self::Field { hint, .. } => hint.as_deref(),
        }
    }
}

/// An invalid value, while its path is collected from the inside out.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The innermost step first.
    steps: Vec<Step>,
    /// The rest of a sentence that starts with the path.
    what: String,
    hint: Option<String>,
}

/// One step of a path.
#[derive(Debug)]
pub(crate) enum Step {
    Field(Cow<'static, str>),
    Index(usize),
}

impl Problem {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { steps: Vec::new(), what: what.into(), hint: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same problem, with one step more in its path.
    pub(crate) fn at(mut self, step: impl Into<Step>) -> Self {
        self.steps.push(step.into());
        self
    }

    pub(crate) fn into_error(self) -> SnapshotError {
        let path = path(self.steps.iter().rev());
        SnapshotError::Field { path, problem: self.what, hint: self.hint }
    }
}

/// Adds a step to the path of a problem.
pub(crate) trait At {
    fn at(self, step: impl Into<Step>) -> Self;
}

impl<T> At for Result<T, Problem> {
    fn at(self, step: impl Into<Step>) -> Self {
        self.map_err(|problem| problem.at(step))
    }
}

impl From<&'static str> for Step {
    fn from(field: &'static str) -> Self {
        Self::Field(Cow::Borrowed(field))
    }
}

impl From<String> for Step {
    fn from(field: String) -> Self {
        Self::Field(Cow::Owned(field))
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

fn path<'a>(steps: impl Iterator<Item = &'a Step>) -> String {
    let path: String = steps
        .map(|step| match step {
            Step::Index(index) => format!("[{index}]"),
            Step::Field(field) if is_plain(field) => format!(".{field}"),
            Step::Field(field) => format!("[{:?}]", shortened(field)),
        })
        .collect();
    match path.strip_prefix('.') {
        Some(path) => path.to_owned(),
        None if path.is_empty() => "snapshot".to_owned(),
        None => format!("snapshot{path}"),
    }
}

/// Whether `field` needs no quotes in a path.
fn is_plain(field: &str) -> bool {
    (1..=64).contains(&field.len())
        && field.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// The start of `text`, so that a message stays one readable line.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    const CHARS_MAX: usize = 80;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_names_the_outer_step_first() {
        let problem = Problem::new("is -1, not a whole number").at("min").at(1).at("quotas");
        let error = problem.at(0).at("tenants").into_error();
        assert_eq!(error.to_string(), "`tenants[0].quotas[1].min` is -1, not a whole number");
    }

    #[test]
    fn a_key_that_is_not_a_word_is_quoted() {
        let problem = Problem::new("is wrong").at("a \"b\"\n".to_owned()).at("needs");
        assert_eq!(problem.into_error().to_string(), r#"`needs["a \"b\"\n"]` is wrong"#);
    }

    #[test]
    fn no_path_is_the_snapshot_itself() {
        assert_eq!(Problem::new("is bad").into_error().to_string(), "`snapshot` is bad");
    }
}
