//! Tables: columns that fit the terminal, with cells of several lines, or one line a cell where the terminal is too narrow.

use pulldown_cmark::Alignment;

use super::spans::{Line, Span, Style, wrapped};

/// Minimum columns of a cell that is made narrower.
const MIN_CELL: usize = 5;
/// Text between two cells, and below the headings.
const GAP: &str = " │ ";
const CROSS: &str = "─┼─";
const GAP_WIDTH: usize = 3;

/// Text of a cell.
pub(super) type Cell = Vec<Span>;

/// A table; the first row has the headings.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Lays the table out in lines of at most `most` columns.
    pub(super) fn lines(mut self, most: usize, colors: bool) -> Vec<String> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        self.rows.iter_mut().for_each(|row| row.resize_with(count, Vec::new));
        self.rows.iter_mut().take(1).flatten().flatten().for_each(|span| span.style.is_heading = true);
        let natural: Vec<usize> = (0..count)
            .map(|column| self.rows.iter().map(|row| longest(&row[column], most)).max().unwrap_or_default().max(1))
            .collect();
        let room = most.saturating_sub(GAP_WIDTH * count.saturating_sub(1));
        match narrowed(natural, room) {
            Some(widths) => self.columns(&widths, colors),
            None => self.records(most, colors),
        }
    }

    fn columns(&self, widths: &[usize], colors: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Line>> =
                row.iter().zip(widths).map(|(cell, width)| wrapped(cell, *width, true)).collect();
            for at in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
                let parts = cells.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
                    let alignment = self.alignments.get(column).copied().unwrap_or(Alignment::None);
                    padded(cell.get(at), *width, alignment, colors)
                });
                lines.push(parts.collect::<Vec<_>>().join(GAP).trim_end().to_owned());
            }
            if number == 0 {
                let parts: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(parts.join(CROSS));
            }
        }
        lines
    }

    /// Lays out each row as lines with a heading and a cell.
    fn records(&self, most: usize, colors: bool) -> Vec<String> {
        let Some((headings, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                lines.push(String::new());
            }
            for (heading, cell) in headings.iter().zip(row) {
                let colon = Span { text: ": ".to_owned(), style: Style::default() };
                let spans: Vec<Span> = heading.iter().chain([&colon]).chain(cell).cloned().collect();
                lines.extend(wrapped(&spans, most, false).iter().map(|line| line.painted(colors)));
            }
        }
        if rows.is_empty() {
            lines.extend(headings.iter().flat_map(|cell| wrapped(cell, most, false)).map(|line| line.painted(colors)));
        }
        lines
    }
}

/// Returns the width of a cell's longest line, at most `most`.
fn longest(cell: &Cell, most: usize) -> usize {
    wrapped(cell, most, true).iter().map(|line| line.width).max().unwrap_or_default()
}

/// Makes the widest columns narrower until all fit `room`; `None` if they cannot.
fn narrowed(mut widths: Vec<usize>, room: usize) -> Option<Vec<usize>> {
    let mut sum: usize = widths.iter().sum();
    while sum > room {
        let widest = widths.iter_mut().max().filter(|width| **width > MIN_CELL)?;
        *widest -= 1;
        sum -= 1;
    }
    Some(widths)
}

fn padded(line: Option<&Line>, width: usize, alignment: Alignment, colors: bool) -> String {
    let (text, used) = line.map_or((String::new(), 0), |line| (line.painted(colors), line.width));
    let free = width.saturating_sub(used);
    let before = match alignment {
        Alignment::Right => free,
        Alignment::Center => free / 2,
        Alignment::None | Alignment::Left => 0,
    };
    format!("{}{text}{}", " ".repeat(before), " ".repeat(free - before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_columns_become_narrower() {
        assert_eq!(narrowed(vec![4, 30, 20], 40), Some(vec![4, 18, 18]));
        assert_eq!(narrowed(vec![4, 30], 34), Some(vec![4, 30]));
        assert_eq!(narrowed(vec![6, 6, 6], 14), None);
    }
}
