//! The one place that talks to the terminal: data to stdout, the rest to stderr.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};

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

/// A table that fits the terminal; columns in `numbers` are aligned to the right.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>, numbers: &[usize]) -> String {
    table_within(width(), header, rows, numbers)
}

/// A table of at most so many columns of text.
pub(crate) fn table_within(
    width: u16,
    header: &[&str],
    rows: Vec<Vec<String>>,
    numbers: &[usize],
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width);
    table.set_header(header.iter().map(|title| title.to_ascii_uppercase()));
    let widths = widths(header, &rows, numbers, width.into());
    table.add_rows(rows);
    for (at, width) in widths.into_iter().enumerate() {
        if let Some(column) = table.column_mut(at) {
            let width = Width::Fixed(u16::try_from(width + PADDING).unwrap_or(u16::MAX));
            column.set_constraint(ColumnConstraint::Absolute(width));
            if numbers.contains(&at) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

/// What each column gets, without the blanks around it: so much that no word and no number goes on
/// in the next line, and of what is left as much as it can use. Where there is less, the longest
/// words are broken, and numbers never.
fn widths(header: &[&str], rows: &[Vec<String>], numbers: &[usize], width: usize) -> Vec<usize> {
    let room = width.saturating_sub(PADDING * header.len());
    let wanted = widest(header, rows, |_, cell| longest(cell.lines()));
    let mut widths = widest(header, rows, |at, cell| {
        if numbers.contains(&at) { longest(cell.lines()) } else { longest(cell.split_whitespace()) }
    });
    while widths.iter().sum::<usize>() > room {
        let words = widths.iter_mut().enumerate().filter(|(at, _)| !numbers.contains(at));
        let longest = words.map(|(_, width)| width).max().filter(|width| **width > 1);
        let Some(longest) = longest else { break };
        *longest -= 1;
    }
    let mut spare = room.saturating_sub(widths.iter().sum());
    let mut order: Vec<usize> = (0..widths.len()).collect();
    // Whoever lacks least can be helped completely.
    order.sort_by_key(|at| wanted[*at] - widths[*at]);
    for (n_before, at) in order.iter().enumerate() {
        let fair = spare / (order.len() - n_before);
        let more = (wanted[*at] - widths[*at]).min(fair);
        widths[*at] += more;
        spare -= more;
    }
    widths
}

/// The largest that `measure` finds in each column, its title among them.
fn widest(
    header: &[&str],
    rows: &[Vec<String>],
    measure: impl Fn(usize, &str) -> usize,
) -> Vec<usize> {
    let of_column = |(at, title): (usize, &&str)| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| measure(at, cell));
        cells.max().unwrap_or(0).max(measure(at, title))
    };
    header.iter().enumerate().map(of_column).collect()
}

/// The length of the longest.
fn longest<'a>(parts: impl Iterator<Item = &'a str>) -> usize {
    parts.map(|part| part.chars().count()).max().unwrap_or(0)
}

/// Blanks around a cell.
const PADDING: usize = 2;

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

    /// The cells that a table of so many columns shows whole: no line of it is wider.
    fn shown(width: u16, header: &[&str], row: &[&str]) -> String {
        let cells = row.iter().map(|cell| (*cell).to_owned()).collect();
        let table = table_within(width, header, vec![cells], &[0]);
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width.into()), "{table}");
        table
    }

    #[test]
    fn eighty_columns_break_no_word_and_no_number() {
        let header =
            ["job", "tenant", "type", "state", "priority", "tries", "age", "worker", "error"];
        let error = "the worker gave no sign of life for longer than its lease lasts";
        let row = [
            "1234567",
            "default",
            "exec",
            "failed (exhausted)",
            "0",
            "3",
            "12m 10s",
            "worker-17",
            error,
        ];
        let table = shown(80, &header, &row);
        let words: Vec<&str> = table.split_whitespace().collect();
        for word in row.iter().flat_map(|cell| cell.split_whitespace()).chain(["PRIORITY"]) {
            assert!(words.contains(&word), "`{word}` is broken:\n{table}");
        }
    }

    #[test]
    fn what_fits_is_in_one_line() {
        let header = ["job", "state", "priority", "worker"];
        let table = shown(46, &header, &["1", "failed (exhausted)", "0", "worker-17"]);
        assert_eq!(table.lines().count(), 2, "{table}");
    }

    #[test]
    fn where_words_must_be_broken_it_is_the_longest() {
        let path = format!("/{}", "long".repeat(30));
        let table = shown(40, &["job", "error", "worker"], &["12345", &path, "worker-17"]);
        assert!(table.contains("12345") && table.contains("worker-17"), "{table}");
    }
}
