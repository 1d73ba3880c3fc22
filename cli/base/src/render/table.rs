//! Tables with headings that fit the terminal, or its width in `COLUMNS`: as columns if all of them have room, else as one record
//! of named values per row. Anywhere else nothing is cut: programs read it.

use std::io::{self, IsTerminal};

use super::{filled, shortened};

/// Variable with the width of the terminal.
const WIDTH_VARIABLE: &str = "COLUMNS";
/// Maximum width of a column on a terminal, except the last: fits digests and references.
const MAX_WIDTH: usize = 40;
/// Minimum width of a column that is cut: less says nothing. It fits the words of a state, such as `interrupted`.
const MIN_WIDTH: usize = 11;
/// Minimum width of the last column, which says most in words.
const MIN_LAST: usize = 12;
/// Width of the last column for which the others are cut.
const WANTED_LAST: usize = 24;
/// Maximum width of a column with equally long numbers, such as times, which are useless if they are cut.
const MAX_EQUAL: usize = 20;
/// Gap between two columns.
const GAP: usize = 2;
/// Maximum characters of a value in a record.
const MAX_VALUE: usize = 400;
/// Minimum width of a terminal whose texts follow their labels on the same line, in columns.
const MIN_WIDE: usize = 60;
/// Cells without a value, which a record leaves out.
const EMPTY: [&str; 3] = ["", "-", "nothing"];

/// Formats rows of inert cells under headings for standard output.
pub fn table<const N: usize>(headings: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let width = if io::stdout().is_terminal() { terminal_width() } else { None };
    let rows: Vec<_> = rows.collect();
    match width {
        Some(width) if rows.is_empty() => none(&headings.join("  "), width),
        Some(width) => fitting(headings, &rows, width).unwrap_or_else(|| records(headings, &rows, width)),
        None => aligned(headings, &rows, [usize::MAX; N], usize::MAX),
    }
}

/// Formats a table without rows: a heading without room says nothing more.
fn none(headings: &str, width: usize) -> String {
    if headings.len() > width { "(none)".to_owned() } else { format!("{headings}\n(none)") }
}

/// Returns `true` if standard output is a terminal with so few columns that a text beside a label has no room.
pub fn is_narrow() -> bool {
    io::stdout().is_terminal() && terminal_width().is_some_and(|width| width < MIN_WIDE)
}

/// Returns the columns of the terminal at standard output.
pub(super) fn terminal_width() -> Option<usize> {
    stated_width().or_else(|| terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0)))
}

/// Returns the columns of the terminal at standard error.
pub(super) fn message_width() -> Option<usize> {
    stated_width().or_else(|| terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0)))
}

fn stated_width() -> Option<usize> {
    std::env::var(WIDTH_VARIABLE).ok()?.trim().parse::<usize>().ok().filter(|width| *width > 0)
}

/// Formats rows as columns within `width`, and cuts the widest ones; `None` if a column would say too little.
fn fitting<const N: usize>(headings: [&str; N], rows: &[[String; N]], width: usize) -> Option<String> {
    let length = |at: usize| rows.iter().map(move |row| row[at].chars().count());
    let full = |at: usize| length(at).chain([headings[at].len()]).max().unwrap_or(0);
    let last = N.checked_sub(1)?;
    let mut columns: [usize; N] = std::array::from_fn(|at| if at == last { full(at) } else { full(at).min(MAX_WIDTH) });
    // The first column names the row.
    let least: [usize; N] = std::array::from_fn(|at| {
        let is_number = rows.iter().all(|row| row[at].starts_with(|c: char| c.is_ascii_digit()));
        let is_equal = is_number && length(at).max() == length(at).min() && full(at) <= MAX_EQUAL;
        match at {
            _ if at == last => full(at).min(MIN_LAST),
            0 => columns[at],
            _ if is_equal => full(at),
            _ => full(at).min(MIN_WIDTH),
        }
    });
    let gaps = GAP * last;
    if least.iter().sum::<usize>() + gaps > width {
        return None;
    }
    // A narrow terminal has room for whole values below each other.
    if width < MIN_WIDE && (0..N).map(full).sum::<usize>() + gaps > width {
        return None;
    }
    let wanted = full(last).min(WANTED_LAST);
    while columns[..last].iter().sum::<usize>() + wanted + gaps > width {
        let cut = (1..last).filter(|at| columns[*at] > least[*at]).max_by_key(|at| columns[*at]);
        let Some(at) = cut else { break };
        columns[at] -= 1;
    }
    Some(aligned(headings, rows, columns, width))
}

/// Aligns columns, each cut to its width, in lines of at most `width` characters.
fn aligned<const N: usize>(headings: [&str; N], rows: &[[String; N]], widths: [usize; N], width: usize) -> String {
    let headings = headings.map(str::to_owned);
    let rows: Vec<&[String; N]> = std::iter::once(&headings).chain(rows).collect();
    let widths: [usize; N] =
        std::array::from_fn(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0).min(widths[at]));
    let lines = rows.into_iter().map(|row| {
        let mut line = String::new();
        for (at, (cell, column)) in row.iter().zip(widths).enumerate() {
            let room = width.saturating_sub(line.chars().count()).min(column);
            line += &if at + 1 == N { cut(cell, room) } else { format!("{:column$}  ", cut(cell, column)) };
        }
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Cuts a cell to `most` characters: a path in front, since its end tells it from others, and any other text at its end.
fn cut(cell: &str, most: usize) -> String {
    let scheme = cell.split_once(":/").map_or("", |(scheme, _)| scheme);
    let is_path = cell.starts_with('/') || !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphabetic());
    let kept = if scheme.is_empty() { 0 } else { scheme.len() + 1 };
    let length = cell.chars().count();
    if !is_path || cell.contains([' ', ',', '"']) || length <= most || most < kept + MIN_WIDTH {
        return shortened(cell, most).into_owned();
    }
    let end: String = cell.chars().skip(length - (most - kept - 1)).collect();
    format!("{}…{end}", &cell[..kept])
}

/// Formats each row as a record: its first cell, and below it the other ones that have a value, each behind its name.
fn records<const N: usize>(headings: [&str; N], rows: &[[String; N]], width: usize) -> String {
    let [_, names @ ..] = headings.as_slice() else { return String::new() };
    let column = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let record = |row: &[String; N]| {
        let [title, values @ ..] = row.as_slice() else { return String::new() };
        let values = names.iter().zip(values).filter(|(_, value)| !EMPTY.contains(&value.as_str()));
        let lines = values.map(|(name, value)| {
            let line = format!("  {:column$}  {}", name.to_lowercase(), shortened(value, MAX_VALUE));
            filled(&line, width)
        });
        std::iter::once(filled(title, width)).chain(lines).collect::<Vec<_>>().join("\n")
    };
    rows.iter().map(record).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows<const N: usize>(row: [&str; N]) -> [[String; N]; 1] {
        [row.map(str::to_owned)]
    }

    #[test]
    fn a_table_fits_its_terminal_and_is_whole_in_a_pipe() {
        let headings = ["NAME", "NEEDS", "SOURCE", "DESCRIPTION"];
        let row =
            rows(["get_time", "nothing", "a/long/folder/tools.json", "Get the current time for an IANA timezone"]);
        let narrow = fitting(headings, &row, 60).unwrap();
        assert_eq!(narrow.lines().last(), Some("get_time  nothing  a/long/folder/…  Get the current time fo…"));
        let whole = table(headings, row.into_iter());
        let line = "get_time  nothing  a/long/folder/tools.json  Get the current time for an IANA timezone";
        assert_eq!(whole.lines().last(), Some(line));
    }

    #[test]
    fn a_path_that_is_cut_keeps_its_end() {
        assert_eq!(cut("read:/home/ada/projects/workshop", 20), "read:…jects/workshop");
        assert_eq!(cut("/home/ada/.config/toolcrib/config.toml:2:8", 20), "…rib/config.toml:2:8");
        assert_eq!(cut("oci://127.0.0.1:5000/acme/tools:1.0.0", 20), "oci:…cme/tools:1.0.0");
        assert_eq!(cut("/a/b", 20), "/a/b");
        // Lists, JSON and sentences begin with what matters.
        for text in ["read:/home/ada/one, read:/home/ada/two", r#"{"path":"/home/ada/a"}"#, "see /home/ada/projects/a"]
        {
            assert_eq!(cut(text, 20), shortened(text, 20));
        }
        assert_eq!(cut("read:/home/ada/projects", 12), "read:/home/…", "too narrow for its end");
    }

    #[test]
    fn an_empty_table_fits_too() {
        assert_eq!(none("NAME  STATE", 11), "NAME  STATE\n(none)");
        assert_eq!(none("NAME  STATE", 10), "(none)");
    }

    #[test]
    fn times_are_never_cut_and_the_last_column_keeps_some_words() {
        let headings = ["ID", "CREATED", "STATE", "PROMPT"];
        let row = rows(["7k3md-x0q9a", "2026-03-01T12:00:00Z", "answer", "Which of the jobs can start now?"]);
        let table = fitting(headings, &row, 60).unwrap();
        assert_eq!(table.lines().last(), Some("7k3md-x0q9a  2026-03-01T12:00:00Z  answer  Which of the job…"));
        assert_eq!(fitting(headings, &row, 54), None);
        let row = rows(["a", "b", "c", "d"]);
        assert!(fitting(headings, &row, 40).is_some(), "a narrow terminal shows a table without cut values");
    }

    #[test]
    fn a_table_without_room_becomes_records_of_named_values() {
        let headings = ["TOOL", "CLIENT", "ASKED", "RULE"];
        let row = rows(["fs_write_file", "-", "2026-03-01T12:00:00Z", "ask fs_* when the path is below out"]);
        assert_eq!(fitting(headings, &row, 40), None);
        let record =
            "fs_write_file\n  asked   2026-03-01T12:00:00Z\n  rule    ask fs_* when the path is\n          below out";
        assert_eq!(records(headings, &row, 40), record);
        assert_eq!(records(["NAME"], &rows(["a"]), 4), "a");
    }
}
