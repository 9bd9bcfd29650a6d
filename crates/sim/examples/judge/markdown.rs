//! Tables in Markdown, aligned for terminals.

/// The first line is the header. The first `n_words` columns hold words, the others numbers.
pub(crate) fn aligned(lines: &[Vec<String>], n_words: usize) -> String {
    let length = |cell: &String| cell.chars().count();
    let n_columns = lines.first().map_or(0, Vec::len);
    let width = |at: usize| lines.iter().map(|line| length(&line[at])).max().unwrap_or(0).max(4);
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let line = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            if at < n_words { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let rule = widths.iter().enumerate().map(|(at, width)| {
        let end = if at < n_words { "-" } else { ":" };
        format!("{}{end}", "-".repeat(*width - 1))
    });
    let rule = format!("| {} |\n", rule.collect::<Vec<_>>().join(" | "));
    let mut lines = lines.iter().map(line);
    lines.next().unwrap_or_default() + &rule + &lines.collect::<String>()
}
