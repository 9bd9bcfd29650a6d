//! Parses a text to a document, with the paths of errors.
//!
//! A valid text is parsed once, at full speed. Only an invalid one is parsed again to find the path
//! of its error.

use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment};

use crate::document::Object;
use crate::error::{Problem, SnapshotError, Step, shortened};
use crate::nearest::did_you_mean;

/// The reason why a text cannot be parsed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It is not JSON.
    Syntax(SnapshotError),
    /// A value is invalid.
    Value(Problem),
}

impl Failure {
    /// The same failure, with one step more in its path.
    pub(crate) fn at(self, step: impl Into<Step>) -> Self {
        match self {
            Self::Syntax(error) => Self::Syntax(error),
            Self::Value(problem) => Self::Value(problem.at(step)),
        }
    }

    pub(crate) fn into_error(self) -> SnapshotError {
        match self {
            Self::Syntax(error) => error,
            Self::Value(problem) => problem.into_error(),
        }
    }
}

/// Parses `text` as one JSON object.
pub(crate) fn object<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    // Some editors start a file with a byte order mark, which is not JSON.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match serde_json::from_str::<Object<T>>(text) {
        Ok(Object(document)) => Ok(document),
        Err(error) => Err(explain::<T>(text, &error)),
    }
}

fn explain<T: DeserializeOwned>(text: &str, error: &serde_json::Error) -> Failure {
    let mut json = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, Object<T>>(&mut json) {
        Err(found) if is_about_a_value(found.inner()) => {
            let message = message(found.inner());
            Failure::Value(located(problem(&message), found.path()))
        }
        Ok(_) | Err(_) => Failure::Syntax(syntax(error)),
    }
}

/// Whether the text is JSON as far as it was read.
fn is_about_a_value(error: &serde_json::Error) -> bool {
    match error.classify() {
        Category::Data => true,
        Category::Syntax => message(error) == NUMBER_TOO_LARGE,
        Category::Io | Category::Eof => false,
    }
}

const NUMBER_TOO_LARGE: &str = "number out of range";

/// The message of the JSON parser, without the position that it adds.
fn message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&place).map(str::to_owned).unwrap_or(message)
}

fn syntax(error: &serde_json::Error) -> SnapshotError {
    let problem = message(error);
    let hint = match problem.as_str() {
        "trailing comma" => Some("JSON has no comma after the last entry"),
        "key must be a string" => Some("JSON has names of fields in double quotes"),
        _ if error.is_eof() => Some("the text ends too early"),
        _ => None,
    };
    SnapshotError::Json {
        problem,
        line: error.line(),
        column: error.column(),
        hint: hint.map(str::to_owned),
    }
}

fn located(problem: Problem, path: &Path) -> Problem {
    path.iter().rev().fold(problem, |problem, segment| match segment {
        Segment::Seq { index } => problem.at(*index),
        Segment::Map { key } => problem.at(key.clone()),
        Segment::Enum { variant } => problem.at(variant.clone()),
        Segment::Unknown => problem,
    })
}

/// Translates a message of serde. Messages of our own types need no change.
fn problem(message: &str) -> Problem {
    if let Some(field) = quoted(message, "missing field `") {
        return Problem::new("is missing").at(field.to_owned());
    }
    if let Some(field) = quoted(message, "duplicate field `") {
        return Problem::new("is given twice").at(field.to_owned());
    }
    if let Some((field, known)) = unknown_field(message) {
        return Problem::new("is not a known field").with_hint(did_you_mean(field, &known));
    }
    if message == NUMBER_TOO_LARGE {
        return Problem::new("is a number beyond 1.8e308, too large to read");
    }
    let mismatch = ["invalid type: ", "invalid value: "]
        .into_iter()
        .find_map(|prefix| message.strip_prefix(prefix)?.rsplit_once(", expected "));
    match mismatch {
        Some((found, "a boolean")) => {
            Problem::new(format!("is {}, not true or false", value(found)))
        }
        Some((found, expected)) => Problem::new(format!("is {}, not {expected}", value(found))),
        None => Problem::new(message),
    }
}

fn quoted<'a>(message: &'a str, prefix: &str) -> Option<&'a str> {
    message.strip_prefix(prefix)?.strip_suffix('`')
}

/// The unknown field and the known ones, from "unknown field `x`, expected one of `a`, `b`".
fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let (field, known) = message.strip_prefix("unknown field `")?.rsplit_once("`, expected ")?;
    Some((field, known.split('`').skip(1).step_by(2).collect()))
}

/// The JSON form of a value, from serde's description of it.
fn value(found: &str) -> String {
    match found {
        "map" => return "an object".to_owned(),
        "sequence" => return "a list".to_owned(),
        _ => {}
    }
    let number = ["integer `", "floating point `", "boolean `", "number `"]
        .into_iter()
        .find_map(|prefix| quoted(found, prefix));
    match (number, found.strip_prefix("string ")) {
        (Some(number), _) => number.to_owned(),
        (None, Some(text)) => shortened(text).into_owned(),
        (None, None) => shortened(found).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &str) -> String {
        problem(message).at("x").into_error().to_string()
    }

    #[test]
    fn messages_of_serde_are_translated() {
        for (message, expected) in [
            ("invalid type: map, expected a list", "`x` is an object, not a list"),
            ("invalid type: integer `7`, expected a list", "`x` is 7, not a list"),
            ("invalid value: string \"a\", expected b", "`x` is \"a\", not b"),
            ("missing field `id`", "`x.id` is missing"),
            ("duplicate field `id`", "`x.id` is given twice"),
            ("has 300 bytes, more than 256", "`x` has 300 bytes, more than 256"),
        ] {
            assert_eq!(said(message), expected);
        }
    }

    #[test]
    fn the_known_fields_are_found_in_the_message() {
        let message = "unknown field `a`b`, expected one of `id`, `slots`";
        assert_eq!(unknown_field(message), Some(("a`b", vec!["id", "slots"])));
        let message = "unknown field `x`, expected `freed`";
        assert_eq!(unknown_field(message), Some(("x", vec!["freed"])));
    }
}
