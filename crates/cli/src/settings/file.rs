//! A file of settings, with the line of everything that it says.

use std::ops::Range;
use std::path::Path;
use std::{fs, io};

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Said, Source};
use crate::meant::unknown_field;
use crate::print::Failure;
use crate::work::Section;

/// The file that is read if it is there and nobody names another.
const FILE: &str = "maitre.toml";
/// The part of a file that is about a worker.
const WORKER: &str = "worker";
/// What in it is about commands.
const COMMANDS: &str = "commands";
const PART: &str = "the only part of a file is `[worker]`; `maitre config` lists every setting";

/// What a file says.
#[derive(Default)]
pub(super) struct File {
    /// About the scheduler.
    pub(super) said: Vec<Said>,
    /// About its worker, one by one, in the order of the file.
    pub(super) of_worker: Vec<Said>,
    /// The same, together.
    pub(super) worker: Section,
}

/// Reads the file that is named, or the one in the working directory if it is there.
pub(super) fn read(named: Option<&Path>) -> Result<File, Failure> {
    let path = named.unwrap_or(Path::new(FILE));
    match fs::read_to_string(path) {
        Ok(text) => parse(&path.display().to_string(), &text),
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
            Ok(File::default())
        }
        Err(error) => Err(Failure::Input {
            error: format!("cannot read `{}`: {error}", path.display()),
            hint: Some("give the path of a settings file with `--config`".to_owned()),
        }),
    }
}

/// The same, of a text.
pub(super) fn parse(path: &str, text: &str) -> Result<File, Failure> {
    let table = DeTable::parse(text).map_err(|error| wrong(path, text, &error))?;
    let place =
        |span: &Range<usize>| Source::File { path: path.to_owned(), line: line(text, span) };
    let (mut said, mut of_worker) = (Vec::new(), Vec::new());
    for (key, value) in table.get_ref() {
        if key.get_ref() == WORKER {
            of_worker = section(value.get_ref(), place);
            continue;
        }
        let source = place(&key.span());
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
        said.push(Said { key: key.get_ref().to_string(), text, source });
    }
    let only: OnlyWorker = toml::from_str(text).map_err(|error| wrong(path, text, &error))?;
    Ok(File { said, of_worker, worker: only.worker })
}

/// What is said about a worker. Of a command only what is run is shown: its environment may be
/// secret.
fn section(worker: &DeValue<'_>, place: impl Fn(&Range<usize>) -> Source) -> Vec<Said> {
    let DeValue::Table(table) = worker else { return Vec::new() };
    let mut all = Vec::new();
    for (key, value) in table {
        let name = format!("{WORKER}.{}", key.get_ref());
        if let DeValue::Table(commands) = value.get_ref()
            && key.get_ref() == COMMANDS
        {
            all.extend(commands.iter().map(|(kind, command)| {
                let argv = command.get_ref().get("argv");
                let text = argv.map(|argv| shown(argv.get_ref(), " ")).unwrap_or_default();
                let key = format!("{name}.{}", kind.get_ref());
                (kind.span(), Said { key, text, source: place(&kind.span()) })
            }));
        } else {
            let (text, source) = (shown(value.get_ref(), ", "), place(&key.span()));
            all.push((key.span(), Said { key: name, text, source }));
        }
    }
    all.sort_by_key(|(span, _)| span.start);
    all.into_iter().map(|(_, said)| said).collect()
}

/// A value as people write it on the command line; the parts of a list are joined by `between`.
fn shown(value: &DeValue<'_>, between: &str) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(moment) => moment.to_string(),
        DeValue::Array(parts) => {
            let parts = parts.iter().map(|part| shown(part.get_ref(), between));
            parts.collect::<Vec<String>>().join(between)
        }
        DeValue::Table(fields) => {
            let field = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
                format!("{}={}", key.get_ref(), shown(value.get_ref(), "|"))
            };
            fields.iter().map(field).collect::<Vec<String>>().join(between)
        }
    }
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
