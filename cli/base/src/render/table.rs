//! Tables with headings that fit the terminal, or its width in `COLUMNS`. Anywhere else nothing is cut: programs read it.

use std::io::{self, IsTerminal};

use super::shortened;

/// Variable with the width of the terminal.
const WIDTH_VARIABLE: &str = "COLUMNS";
/// Maximum width of a column on a terminal, except the last: fits digests and references.
const MAX_WIDTH: usize = 40;
/// Minimum width of a column that is cut: less says nothing.
const MIN_WIDTH: usize = 8;
/// Gap between two columns.
const GAP: usize = 2;

/// Formats rows of inert cells under headings for standard output.
pub fn table<const N: usize>(headings: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let width = if io::stdout().is_terminal() { terminal_width() } else { None };
    aligned(headings, rows, width)
}

/// Returns the columns of the terminal at standard output.
pub(super) fn terminal_width() -> Option<usize> {
    let variable = || std::env::var(WIDTH_VARIABLE).ok()?.trim().parse::<usize>().ok().filter(|width| *width > 0);
    variable().or_else(|| terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0)))
}

/// Aligns the columns and cuts each line to `width`, if given: the widest columns first, and the first column, which names the
/// row, last. Columns at the end without room are left out, and a line under the table names them.
fn aligned<const N: usize>(
    headings: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    width: Option<usize>,
) -> String {
    let rows: Vec<_> = std::iter::once(headings.map(str::to_owned)).chain(rows).collect();
    let widest = if width.is_some() { MAX_WIDTH } else { usize::MAX };
    let length = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut columns: [usize; N] = std::array::from_fn(|column| length(column).min(widest));
    let mut shown = N;
    if let Some(width) = width {
        shown = fitting(&columns, width);
        if let Some(last) = shown.checked_sub(1) {
            let kept = columns[last].min(MIN_WIDTH) + GAP * last;
            narrow(&mut columns[..last], width.saturating_sub(kept));
        }
    }
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let mut line = String::new();
            for (at, (cell, column)) in row.iter().zip(columns).enumerate().take(shown) {
                line += &if at + 1 == shown { cell.clone() } else { format!("{:column$}  ", shortened(cell, column)) };
            }
            shortened(line.trim_end(), width.unwrap_or(usize::MAX)).into_owned()
        })
        .collect();
    if shown < N {
        lines.push(format!("(no room for {})", headings[shown..].join(", ")));
    }
    lines.join("\n")
}

/// Number of columns with room for the first one and something of each other one.
fn fitting(columns: &[usize], width: usize) -> usize {
    let room = |shown: &usize| {
        let cut: usize = columns[1..*shown].iter().map(|column| (*column).min(MIN_WIDTH)).sum();
        columns[0] + cut + GAP * (shown - 1) <= width
    };
    (2..=columns.len()).rev().find(room).unwrap_or(columns.len().min(1))
}

/// Cuts columns until they are together at most `most` wide, or all are as narrow as possible.
fn narrow(columns: &mut [usize], most: usize) {
    while columns.iter().sum::<usize>() > most {
        let Some((first, others)) = columns.split_first_mut() else { return };
        let widest = others.iter_mut().max().filter(|column| **column > MIN_WIDTH);
        match widest {
            Some(column) => *column -= 1,
            None if *first > MIN_WIDTH => *first -= 1,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_its_terminal_and_is_whole_in_a_pipe() {
        let headings = ["NAME", "MAY USE", "SOURCE", "DESCRIPTION"];
        let row =
            || ["get_time", "nothing", "./tools.json", "Get the current time for an IANA timezone"].map(str::to_owned);
        let narrow = aligned(headings, [row()].into_iter(), Some(50));
        assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
        let whole = aligned(headings, [row()].into_iter(), None);
        assert_eq!(
            whole.lines().last(),
            Some("get_time  nothing  ./tools.json  Get the current time for an IANA timezone")
        );
    }

    #[test]
    fn a_narrow_table_keeps_its_first_column_and_leaves_out_the_last_ones_without_room() {
        let headings = ["ID", "TOOL", "CLIENT", "ASKED", "STATE", "RULE"];
        let row = [
            "7k3md-x0q9a",
            "fs_write_file",
            "a run: process 4711, 0123456789abcdef",
            "2026-03-01T12:00:00Z",
            "waiting",
            "ask fs_* (--ask-tool)",
        ];
        let table = aligned(headings, [row.map(str::to_owned)].into_iter(), Some(60));
        let line = table.lines().last().unwrap();
        assert_eq!(line.chars().count(), 60, "{table}");
        assert!(line.starts_with("7k3md-x0q9a  fs_wri"), "{table}");
        assert!(line.contains("  waiting  ask fs") && line.ends_with('…'), "{table}");
        let small = aligned(headings, [row.map(str::to_owned)].into_iter(), Some(40));
        let lines: Vec<&str> = small.lines().collect();
        assert_eq!(lines[1..], ["7k3md-x0q9a  fs_write_file  a run: proc…", "(no room for ASKED, STATE, RULE)"]);
        let tiny = aligned(headings, [row.map(str::to_owned)].into_iter(), Some(10));
        assert_eq!(tiny.lines().nth(1), Some("7k3md-x0q…"), "{tiny}");
        assert_eq!(aligned(["NAME"], std::iter::empty(), Some(4)), "NAME");
    }
}
