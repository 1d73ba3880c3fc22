//! Tables: columns under headings, cut to the terminal where there is one.

use std::io;

use super::shortened;

/// The widest that a column but the last may be on a terminal: a digest or reference is not cut.
const MAX_WIDTH: usize = 40;

/// Rows of inert cells under their headings, for standard output.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    aligned(headings, rows, width)
}

/// Aligns the columns; where there is a width, each line is cut to it.
fn aligned<const N: usize>(
    headings: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    width: Option<usize>,
) -> String {
    let rows: Vec<_> = std::iter::once(headings.map(str::to_owned)).chain(rows).collect();
    let widest = if width.is_some() { MAX_WIDTH } else { usize::MAX };
    let columns: [usize; N] = std::array::from_fn(|column| {
        let lengths = rows.iter().map(|row| row[column].chars().count());
        lengths.max().unwrap_or(0).min(widest)
    });
    let lines = rows.iter().map(|row| {
        let mut line = String::new();
        for (cell, column) in row.iter().zip(columns).take(N - 1) {
            line += &format!("{:column$}  ", shortened(cell, column));
        }
        line += &row[N - 1];
        shortened(line.trim_end(), width.unwrap_or(usize::MAX)).into_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
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
}
