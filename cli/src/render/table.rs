//! Tables for people: aligned columns, of which the last takes what room is left.

use super::shortened;

/// The widest that a column but the last may be on a terminal.
const WIDEST: usize = 32;

/// Aligns the columns under their headings; where there is a width, that of a terminal, each line is cut to it.
pub(crate) fn table<const N: usize>(
    headings: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    width: Option<usize>,
) -> String {
    let rows: Vec<_> = std::iter::once(headings.map(str::to_owned)).chain(rows).collect();
    let widest = if width.is_some() { WIDEST } else { usize::MAX };
    let columns: Vec<usize> = (0..N.saturating_sub(1))
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).min(widest))
        .collect();
    let lines = rows.iter().map(|row| {
        let mut line = String::new();
        for (cell, column) in row.iter().zip(&columns) {
            line += &format!("{:column$}  ", shortened(cell, *column));
        }
        line += row.last().map_or("", String::as_str);
        shortened(line.trim_end(), width.unwrap_or(usize::MAX)).into_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_table_fits_its_terminal_and_is_whole_in_a_pipe() {
        let table = |width| {
            let row = ["get_time", "nothing", "./tools.json", "Get the current time for an IANA timezone"];
            super::table(["NAME", "MAY USE", "SOURCE", "DESCRIPTION"], std::iter::once(row.map(str::to_owned)), width)
        };
        let narrow = table(Some(50));
        assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
        assert_eq!(
            table(None).lines().last(),
            Some("get_time  nothing  ./tools.json  Get the current time for an IANA timezone")
        );
    }
}
