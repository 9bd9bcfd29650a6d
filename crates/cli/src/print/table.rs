//! Tables that fit the terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};

use super::width;

/// Blanks around a cell.
const PADDING: usize = 2;

/// A table; columns in `numbers` are aligned to the right.
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
    let widths = widths(header, &rows, numbers, width.into());
    drawn(header, rows, &widths, numbers)
}

/// Tables of numbers, one below the other where there is no room for all columns side by side. Each
/// has the names of the first column. A number or a title is never broken; a name is if it would
/// take more than half of a line.
pub(crate) fn tables(header: &[&str], rows: &[Vec<String>]) -> String {
    tables_within(width().into(), header, rows)
}

fn tables_within(width: usize, header: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths = widest(header, rows, |_, cell| longest(cell.lines()));
    widths[0] = widths[0].min((width / 2).saturating_sub(PADDING));
    let (mut tables, mut left) = (Vec::<Vec<usize>>::new(), 0);
    for at in 1..header.len() {
        let wanted = widths[at] + PADDING;
        match tables.last_mut() {
            Some(table) if wanted <= left => table.push(at),
            _ => {
                tables.push(vec![0, at]);
                left = width.saturating_sub(widths[0] + PADDING);
            }
        }
        left = left.saturating_sub(wanted);
    }
    let tables = tables.iter().map(|columns| of_columns(columns, header, rows, &widths));
    tables.collect::<Vec<_>>().join("\n")
}

/// The table of some columns. Who has nothing in them is left out.
fn of_columns(
    columns: &[usize],
    header: &[&str],
    rows: &[Vec<String>],
    widths: &[usize],
) -> String {
    let cells = |row: &Vec<String>| columns.iter().map(|at| row[*at].clone()).collect();
    let rows = rows
        .iter()
        .map(cells)
        .filter(|cells: &Vec<String>| cells[1..].iter().any(|cell| !cell.is_empty()));
    let rows = rows.collect();
    let header: Vec<&str> = columns.iter().map(|at| header[*at]).collect();
    let widths: Vec<usize> = columns.iter().map(|at| widths[*at]).collect();
    let numbers: Vec<usize> = (1..columns.len()).collect();
    drawn(&header, rows, &widths, &numbers)
}

/// A table whose columns have these widths, without the blanks around them.
fn drawn(header: &[&str], rows: Vec<Vec<String>>, widths: &[usize], numbers: &[usize]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::MAX);
    table.set_header(header.iter().map(|title| title.to_ascii_uppercase()));
    table.add_rows(rows);
    for (at, width) in widths.iter().enumerate() {
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

/// A title above a table, in as many lines as it takes.
pub(crate) fn title(text: &str) -> String {
    textwrap::fill(text, usize::from(width())) + "\n"
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

#[cfg(test)]
mod tests {
    use super::*;

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
