//! The command line.

use std::path::PathBuf;

use crate::USAGE;

/// What the command line says.
pub(crate) struct Arguments {
    pub(crate) command: String,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) list: Option<PathBuf>,
    /// Names of traces; empty means all.
    pub(crate) only: Vec<String>,
    /// Sources of estimates; empty means those of the list.
    pub(crate) estimates: Vec<String>,
    /// Policies; empty means `balanced`.
    pub(crate) policies: Vec<String>,
    pub(crate) seed: u64,
    pub(crate) n_threads: usize,
    /// `None` means as many as the command has by default.
    pub(crate) n_runs: Option<u64>,
}

/// Reads the command line, or says what is wrong with it.
pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        command: words.next().ok_or(USAGE)?,
        folders: Vec::new(),
        list: None,
        only: Vec::new(),
        estimates: Vec::new(),
        policies: Vec::new(),
        seed: 0,
        n_threads: 2,
        n_runs: None,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("`{word}` has no value"));
        match word.as_str() {
            "--list" => arguments.list = Some(value()?.into()),
            "--only" => arguments.only = several(&value()?),
            "--estimates" => arguments.estimates = several(&value()?),
            "--policy" => arguments.policies.push(value()?),
            "--seed" => arguments.seed = number(&word, &value()?)?,
            "--runs" => arguments.n_runs = Some(number(&word, &value()?)?),
            "--threads" => arguments.n_threads = number::<usize>(&word, &value()?)?.max(1),
            _ if word.starts_with('-') => return Err(format!("there is no `{word}`\n\n{USAGE}")),
            _ => arguments.folders.push(word.into()),
        }
    }
    if arguments.policies.is_empty() {
        arguments.policies.push("balanced".to_owned());
    }
    Ok(arguments)
}

fn several(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

fn number<T: std::str::FromStr>(flag: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{flag}` is `{text}`, not a whole number"))
}
