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
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none() {
        table.set_width(width());
    }
    table.set_header(header.iter().map(|title| title.to_ascii_uppercase()));
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(String::len).max();
    let widths: Vec<usize> = numbers.iter().map(|at| widest(*at).unwrap_or(0)).collect();
    table.add_rows(rows);
    for (at, width) in numbers.iter().zip(widths) {
        if let Some(column) = table.column_mut(*at) {
            // Words may go on in the next line; a number is one.
            let width = Width::Fixed(u16::try_from(width + PADDING).unwrap_or(u16::MAX));
            column.set_constraint(ColumnConstraint::LowerBoundary(width));
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    lines(&table)
}

/// Tables of numbers, one below the other where the terminal has no room for all columns side by
/// side. Each has the names of the first column. A number or a title is never broken; a name is if
/// it would take more than half of a line.
pub(crate) fn tables(header: &[&str], rows: &[Vec<String>]) -> String {
    tables_within(width().into(), header, rows)
}

fn tables_within(columns: usize, header: &[&str], rows: &[Vec<String>]) -> String {
    let widest = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain([header[at].chars().count()]).max().unwrap_or(0) + PADDING
    };
    let names = widest(0).min(columns / 2);
    let (mut tables, mut left) = (Vec::<Vec<(usize, usize)>>::new(), 0);
    for (at, width) in (1..header.len()).map(|at| (at, widest(at))) {
        match tables.last_mut() {
            Some(table) if width <= left => table.push((at, width)),
            _ => {
                tables.push(vec![(0, names), (at, width)]);
                left = columns.saturating_sub(names);
            }
        }
        left = left.saturating_sub(width);
    }
    let tables = tables.iter().map(|columns| of_columns(columns, header, rows));
    tables.collect::<Vec<_>>().join("\n")
}

/// The table of some columns, each with its width. Who has nothing in them is left out.
fn of_columns(columns: &[(usize, usize)], header: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::MAX);
    table.set_header(columns.iter().map(|(at, _)| header[*at].to_ascii_uppercase()));
    for row in rows {
        let cells: Vec<&str> = columns.iter().map(|(at, _)| row[*at].as_str()).collect();
        if cells[1..].iter().any(|cell| !cell.is_empty()) {
            table.add_row(cells);
        }
    }
    for (place, (_, width)) in columns.iter().enumerate() {
        if let Some(column) = table.column_mut(place) {
            let width = Width::Fixed(u16::try_from(*width).unwrap_or(u16::MAX));
            column.set_constraint(ColumnConstraint::Absolute(width));
            if place > 0 {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    lines(&table)
}

fn lines(table: &Table) -> String {
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

/// A title above a table, in as many lines as it takes.
pub(crate) fn title(text: &str) -> String {
    textwrap::fill(text, usize::from(width())) + "\n"
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

    #[test]
    fn columns_that_have_no_room_are_in_another_table_below() {
        let header = ["policy", "mean s", "makespan s", "share err"];
        let row = |name: &str, cells: [&str; 3]| -> Vec<String> {
            [name].into_iter().chain(cells).map(str::to_owned).collect()
        };
        let rows = [
            row("balanced:perfect", ["12345.67", "2509", "266.92 %"]),
            row("no policy can beat", ["0.01", "", ""]),
        ];
        let wide = tables_within(80, &header, &rows);
        assert_eq!(wide.lines().count(), 3, "{wide}");
        let narrow = "
 POLICY                MEAN S
 balanced:perfect    12345.67
 no policy can beat      0.01

 POLICY              MAKESPAN S
 balanced:perfect          2509

 POLICY              SHARE ERR
 balanced:perfect     266.92 %
";
        assert_eq!(tables_within(40, &header, &rows), narrow[1..]);
    }

    #[test]
    fn a_long_name_goes_on_in_the_next_line_and_a_number_does_not() {
        let name = r#"{"preset":"balanced","shortest":{"relief":false}}"#;
        let rows = [vec![name.to_owned(), "123456789.12".to_owned(), "7".to_owned()]];
        let told = tables_within(48, &["policy", "mean s", "p50"], &rows);
        assert!(told.lines().all(|line| line.len() <= 48), "{told}");
        let names = told.lines().skip(1).map(|line| line.chars().take(24).collect::<String>());
        let names: String = names.map(|part| part.trim().to_owned()).collect();
        assert_eq!((names.as_str(), told.contains(" 123456789.12 ")), (name, true), "{told}");
    }
}
