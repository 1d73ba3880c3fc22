//! Tables with headings, cut to the width of the terminal.

use std::io;

use super::shortened;

/// Maximum width of a column on a terminal, except the last: fits digests and references.
const MAX_WIDTH: usize = 40;

/// Formats rows of inert cells under headings for standard output.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    aligned(headings, rows, width)
}

/// Aligns the columns and cuts each line to `width`, if given.
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
