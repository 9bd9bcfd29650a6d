//! Who gets which part of the height.

/// A title with rows; where there is no room for all, the last ones are left out.
pub(super) struct Part {
    title: String,
    rows: Vec<Row>,
    /// Rows that are shown even where there is little room.
    rows_least: usize,
    /// Rows that are shown however much room there is.
    rows_max: usize,
}

/// A row, and lines below it of which all but the first can be left out.
pub(super) struct Row {
    pub(super) line: String,
    pub(super) below: Vec<String>,
}

impl Row {
    fn least(&self) -> usize {
        1 + self.below.len().min(1)
    }

    /// As many lines as there is room for; the last says if there would be more.
    fn lines(&self, room: usize) -> Vec<String> {
        let n_below = self.below.len().min(room.saturating_sub(1));
        let mut lines = vec![self.line.clone()];
        lines.extend_from_slice(&self.below[..n_below]);
        if let Some(last) = lines.last_mut().filter(|_| n_below < self.below.len()) {
            last.push_str(" …");
        }
        lines
    }
}

impl Part {
    /// A title and rows, of which so many are shown at least and at most, if there are any.
    pub(super) const fn new(title: String, rows: Vec<Row>, least_and_max: (usize, usize)) -> Self {
        let (rows_least, rows_max) = least_and_max;
        Self { title, rows, rows_least, rows_max }
    }

    /// Lines that everything would take.
    fn wanted(&self) -> usize {
        let rows = self.rows.iter().take(self.rows_max);
        1 + rows.map(|row| 1 + row.below.len()).sum::<usize>()
    }

    /// Lines without which it is of no use.
    fn least(&self) -> usize {
        1 + self.rows.iter().take(self.rows_least).map(Row::least).sum::<usize>()
    }

    /// So many lines of it, and one more: empty, or how many rows were left out.
    fn lines(&self, room: usize) -> Vec<String> {
        let mut spare = room.saturating_sub(1);
        let mut shown = Vec::new();
        for row in self.rows.iter().take(self.rows_max) {
            let Some(left) = spare.checked_sub(row.least()) else { break };
            spare = left;
            shown.push(row);
        }
        let mut lines = vec![self.title.clone()];
        for row in &shown {
            let own = row.lines(row.least() + spare);
            spare -= own.len() - row.least();
            lines.extend(own);
        }
        let n_more = self.rows.len() - shown.len();
        lines.push(if n_more == 0 { String::new() } else { format!(" … {n_more} more") });
        lines
    }
}

/// All parts in so many lines, one below the other. The last part is the one that people look for:
/// where not even the least fits, it comes first.
pub(super) fn fit(parts: &[Part], height: usize) -> Vec<String> {
    let room = height.saturating_sub(parts.len());
    let heights = heights(parts, room);
    let shown = parts.iter().zip(heights).filter(|(_, height)| *height > 0);
    let mut lines: Vec<String> = shown.flat_map(|(part, height)| part.lines(height)).collect();
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// The least for each, and then a line for each in turn that wants more.
fn heights(parts: &[Part], room: usize) -> Vec<usize> {
    let mut spare = room;
    let mut heights = vec![0; parts.len()];
    for (height, part) in heights.iter_mut().zip(parts).rev() {
        *height = part.least().min(part.wanted()).min(spare);
        spare -= *height;
    }
    loop {
        let before = spare;
        for (height, part) in heights.iter_mut().zip(parts) {
            if spare > 0 && *height < part.wanted() {
                *height += 1;
                spare -= 1;
            }
        }
        if spare == before {
            return heights;
        }
    }
}
