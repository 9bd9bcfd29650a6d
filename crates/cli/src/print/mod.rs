//! The one place that talks to the terminal: data to stdout, the rest to stderr.

mod table;

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

pub(crate) use table::{table, table_within, tables, title};

/// What a command could not do.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input is wrong; nothing was changed. Exit code 2.
    Input { error: String, hint: Option<String> },
    /// Something else went wrong. Exit code 1.
    Other(anyhow::Error),
    /// All was said already; this is the exit code.
    Exit(u8),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input { error, hint: Some(hint) } => write!(f, "{error}\n\nhint: {hint}"),
            Self::Input { error, hint: None } => f.write_str(error),
            Self::Other(error) => write!(f, "{error:#}"),
            Self::Exit(_) => Ok(()),
        }
    }
}

/// Tells what went wrong, and whose fault it is by the exit code.
pub(crate) fn exit_code(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    if let Failure::Other(error) = &failure {
        let cause = error.downcast_ref::<io::Error>();
        if cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe) {
            // Whoever read our output has seen enough.
            return ExitCode::SUCCESS;
        }
    }
    if !matches!(failure, Failure::Exit(_)) {
        note(&folded(&format!("error: {failure}"), is_watched()));
    }
    match failure {
        Failure::Input { .. } => ExitCode::from(2),
        Failure::Other(_) => ExitCode::FAILURE,
        Failure::Exit(code) => ExitCode::from(code),
    }
}

/// Writes data.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") });
    written.and_then(|()| out.flush()).map_err(|error| Failure::Other(error.into()))
}

/// Writes sentences: for a person, none is wider than the terminal.
pub(crate) fn prose(text: &str) -> Result<(), Failure> {
    data(&folded(text, is_terminal()))
}

/// Each line in as many as it takes, unless nobody sees them: those who look for words in it want
/// it whole.
fn folded(text: &str, is_seen: bool) -> String {
    if !is_seen {
        return text.to_owned();
    }
    let whole = textwrap::WordSplitter::NoHyphenation;
    textwrap::fill(text, textwrap::Options::new(width().into()).word_splitter(whole))
}

/// Writes data for machines.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value);
    data(&text.map_err(|error| Failure::Other(error.into()))?)
}

/// Tells a person something that is not data.
pub(crate) fn note(text: &str) {
    // If even stderr is gone, there is nobody to tell.
    let _unheard = writeln!(io::stderr(), "{text}");
}

/// So many of them, as people say it.
pub(crate) fn count(n: impl TryInto<u64>, what: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Whether a person sees what is written as data.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether a person watches stderr.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Asks a person; whoever does not agree is an error, and so is a machine.
pub(crate) fn confirm(question: &str) -> Result<(), Failure> {
    let stop = |error: String, hint: &str| Failure::Input { error, hint: Some(hint.to_owned()) };
    if !io::stdin().is_terminal() {
        let error = format!("nobody is there to agree to: {question}");
        return Err(stop(error, "`--yes` agrees in advance"));
    }
    // If stderr is gone, nobody sees the question and nobody agrees.
    let _unheard = write!(io::stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| Failure::Other(error.into()))?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(stop("nothing was changed".to_owned(), "`y` agrees")),
    }
}

/// Columns that there are: of the terminal, or as `COLUMNS` says, or as many as seem right.
pub(crate) fn width() -> u16 {
    let terminal = || crossterm::terminal::size().ok().map(|(columns, _)| columns);
    let terminal = io::stdout().is_terminal().then(terminal).flatten();
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(said).filter(|columns| *columns > 0).unwrap_or(WIDTH_WITHOUT_TERMINAL)
}

/// Columns of a table that goes into a file or a pipe.
const WIDTH_WITHOUT_TERMINAL: u16 = 110;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_folded_between_words_for_those_who_see_them() {
        let text = format!("first\n  second {}", "no-worker-ever ".repeat(30).trim_end());
        let seen = folded(&text, true);
        assert!(seen.starts_with("first\n  second no-worker-ever "));
        assert!(seen.lines().all(|line| line.len() <= width().into()), "{seen}");
        assert!(seen.split_whitespace().eq(text.split_whitespace()), "{seen}");
        assert_eq!(folded(&text, false), text);
    }
}
