//! Settings: a TOML file, then the environment, then flags; each overrides the one before.

mod entry;
mod file;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

pub(crate) use entry::{All, ENTRIES};
pub(crate) use value::Length;

use crate::print::Failure;
use crate::work::Section;

/// Where a scheduler listens, and clients look for it.
pub(crate) const ADDRESS: &str = "127.0.0.1:7070";
/// What every variable of ours begins with.
const PREFIX: &str = "MAITRE_";
/// Variables that are ours and no settings: for clients, for workers, for commands of jobs, for
/// tests.
const OTHER_VARIABLES: &[&str] = &[
    "SERVER",
    "TOKEN",
    "TOKEN_FILE",
    "CA",
    "LOG",
    "LOG_FORMAT",
    "CONFIG",
    "JOB",
    "ATTEMPT",
    "TENANT",
    "RESOURCE",
    "ARRAY_INDEX",
    "RESULT",
    "WORKER_",
    "FAULT_",
    "TEST_",
    "STORE_",
];

/// Who said what a setting is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nobody.
    Default,
    /// A line of a file.
    File { path: String, line: usize },
    /// A variable.
    Environment(String),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Environment(variable) => f.write_str(variable),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// One thing that was said.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) key: String,
    pub(crate) text: String,
    pub(crate) source: Source,
}

impl Said {
    /// What a flag says.
    pub(crate) fn by_flag(flag: &str, key: &str, text: &str) -> Self {
        let source = Source::Flag(flag.to_owned());
        Self { key: key.to_owned(), text: text.to_owned(), source }
    }
}

/// Everything that was said, put together.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) all: All,
    sources: BTreeMap<&'static str, Source>,
    /// For `maitre work` and the worker of `maitre dev`.
    pub(crate) worker: Section,
    /// What a file says about that worker, one by one.
    pub(crate) of_worker: Vec<Said>,
}

impl Settings {
    /// What the file that was named says, or the one in the working directory if there is one;
    /// then the environment; then flags. Whether it goes together is not looked at.
    pub(crate) fn read(named: Option<&Path>, flags: Vec<Said>) -> Result<Self, Failure> {
        let file = file::read(named)?;
        let variables = std::env::vars_os()
            .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)));
        let (worker, of_worker) = (file.worker, file.of_worker);
        let mut settings = Self { worker, of_worker, ..Self::default() };
        for said in file.said.into_iter().chain(environment(variables)).chain(flags) {
            settings.put(said)?;
        }
        Ok(settings)
    }

    /// The same, and all of it goes together.
    pub(crate) fn checked(named: Option<&Path>, flags: Vec<Said>) -> Result<Self, Failure> {
        let settings = Self::read(named, flags)?;
        settings.all.config.check().map_err(|error| {
            let hint = Some(error.hint.to_owned());
            let source = settings.sources.get(error.field);
            let place = source.map(|source| format!("{source}: ")).unwrap_or_default();
            Failure::Input { error: format!("{place}{error}"), hint }
        })?;
        Ok(settings)
    }

    /// Who said what this setting is.
    pub(crate) fn source(&self, key: &str) -> Source {
        self.sources.get(key).cloned().unwrap_or(Source::Default)
    }

    fn put(&mut self, said: Said) -> Result<(), Failure> {
        let Said { key, text, source } = said;
        let Some(entry) = ENTRIES.iter().find(|entry| entry.key == key) else {
            let known: Vec<&str> = ENTRIES.iter().map(|entry| entry.key).collect();
            return Err(Failure::Input {
                error: format!("{source}: `{key}` is not a setting"),
                hint: Some(snapshot::did_you_mean(&key, &known)),
            });
        };
        (entry.put)(&mut self.all, &text).map_err(|problem| Failure::Input {
            error: format!("{source}: `{key}`: {problem}"),
            hint: Some(format!("`{key}` says: {}", entry.about)),
        })?;
        self.sources.insert(entry.key, source);
        Ok(())
    }
}

/// What the environment sets: `MAITRE_LEASE` for `lease`, and so on.
fn environment(variables: impl Iterator<Item = (String, String)>) -> Vec<Said> {
    let is_other = |name: &str| {
        OTHER_VARIABLES.iter().any(|other| {
            if other.ends_with('_') { name.starts_with(other) } else { name == *other }
        })
    };
    let is_key = |name: &str| ENTRIES.iter().any(|entry| entry.key.eq_ignore_ascii_case(name));
    let said = |(variable, text): (String, String)| {
        let name = variable.strip_prefix(PREFIX)?;
        (is_key(name) || !is_other(name)).then(|| Said {
            key: name.to_ascii_lowercase(),
            text,
            source: Source::Environment(variable.clone()),
        })
    };
    let mut said: Vec<Said> = variables.filter_map(said).collect();
    said.sort_unstable_by(|one, other| one.key.cmp(&other.key));
    said
}

#[cfg(test)]
mod tests;
