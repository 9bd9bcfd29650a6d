//! A file of settings, with the line of everything that it says.

use std::ops::Range;
use std::path::Path;
use std::{fs, io};

use serde::Deserialize;
use toml::de::{DeTable, DeValue};

use super::{Said, Source};
use crate::meant::unknown_field;
use crate::print::Failure;
use crate::work::Section;

/// The file that is read if it is there and nobody names another.
const FILE: &str = "maitre.toml";
/// The part of a file that is about a worker.
const WORKER: &str = "worker";
const PART: &str = "the only part of a file is `[worker]`; `maitre config` lists every setting";

/// What the file says about the scheduler, and about its worker.
pub(super) fn read(named: Option<&Path>) -> Result<(Vec<Said>, Section), Failure> {
    let path = named.unwrap_or(Path::new(FILE));
    match fs::read_to_string(path) {
        Ok(text) => parse(&path.display().to_string(), &text),
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
            Ok((Vec::new(), Section::default()))
        }
        Err(error) => Err(Failure::Input {
            error: format!("cannot read `{}`: {error}", path.display()),
            hint: Some("give the path of a settings file with `--config`".to_owned()),
        }),
    }
}

/// The same, of a text.
pub(super) fn parse(path: &str, text: &str) -> Result<(Vec<Said>, Section), Failure> {
    let table = DeTable::parse(text).map_err(|error| wrong(path, text, &error))?;
    let mut all = Vec::new();
    for (key, value) in table.get_ref() {
        if key.get_ref() == WORKER {
            continue;
        }
        let source = Source::File { path: path.to_owned(), line: line(text, &key.span()) };
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                let error = format!("{source}: `{}` is not a text, number or flag", key.get_ref());
                let is_part = matches!(value.get_ref(), DeValue::Table(_));
                let hint = if is_part { PART } else { "`maitre config` lists every setting" };
                return Err(Failure::Input { error, hint: Some(hint.to_owned()) });
            }
        };
        all.push(Said { key: key.get_ref().to_string(), text, source });
    }
    let only: OnlyWorker = toml::from_str(text).map_err(|error| wrong(path, text, &error))?;
    Ok((all, only.worker))
}

#[derive(Deserialize)]
struct OnlyWorker {
    #[serde(default)]
    worker: Section,
}

fn line(text: &str, span: &Range<usize>) -> usize {
    text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1)
}

/// What a reader says is wrong, with its line, and what may have been meant.
fn wrong(path: &str, text: &str, error: &toml::de::Error) -> Failure {
    let line = error.span().map_or(1, |span| line(text, &span));
    let message = error.message();
    let (problem, hint) = match unknown_field(message) {
        Some((field, hint)) => (format!("{field} is not a setting of a worker"), hint),
        None => (message.to_owned(), "docs/operating.md has an example".to_owned()),
    };
    Failure::Input { error: format!("{path}:{line}: {problem}"), hint: Some(hint) }
}
