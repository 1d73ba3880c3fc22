//! Rows of a text with separated values (RFC 4180), as far as a text can only be that.

/// Separators, the most common one first.
const SEPARATORS: [char; 3] = [',', '\t', ';'];
/// Maximum number of columns.
const MAX_COLUMNS: usize = 40;
/// Maximum characters of a name in the first row.
const MAX_NAME: usize = 80;

/// Returns the rows of a text, all equally long, with distinct names in the first one. A text that may be prose
/// has none.
pub(super) fn rows(text: &str) -> Option<Vec<Vec<String>>> {
    SEPARATORS.into_iter().find_map(|separator| read(text, separator).filter(|rows| is_table(rows)))
}

fn is_table(rows: &[Vec<String>]) -> bool {
    let Some(names) = rows.first() else { return false };
    let has_names = names
        .iter()
        .enumerate()
        .all(|(at, name)| !name.trim().is_empty() && name.chars().count() <= MAX_NAME && !names[..at].contains(name));
    // Two lines of prose may have one comma each.
    let is_long = rows.len() >= 3 || (rows.len() == 2 && names.len() >= 3);
    let is_even = rows.iter().all(|row| row.len() == names.len());
    (2..=MAX_COLUMNS).contains(&names.len()) && has_names && is_long && is_even
}

/// Reads the rows of a text; `None` if a quoted value is not closed, or is followed by more text.
fn read(text: &str, separator: char) -> Option<Vec<Vec<String>>> {
    let mut rows = vec![vec![String::new()]];
    let mut chars = text.trim_end_matches(['\r', '\n']).chars().peekable();
    while let Some(c) = chars.next() {
        let row = rows.last_mut()?;
        let is_full = row.len() > MAX_COLUMNS;
        let value = row.last_mut()?;
        match c {
            '"' if value.is_empty() => {
                loop {
                    match (chars.next()?, chars.peek()) {
                        ('"', Some('"')) => {
                            value.push('"');
                            chars.next();
                        }
                        ('"', _) => break,
                        (quoted, _) => value.push(quoted),
                    }
                }
                if chars.peek().is_some_and(|next| *next != separator && !['\r', '\n'].contains(next)) {
                    return None;
                }
            }
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' => rows.push(vec![String::new()]),
            c if c == separator && is_full => return None,
            c if c == separator => row.push(String::new()),
            c => value.push(c),
        }
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_quoted_values_and_other_separators() {
        let found = rows("job,hours\r\n\"windows, \"\"big\"\"\",40.25\r\n\"two\nlines\",3\r\n").unwrap();
        assert_eq!(found, [["job", "hours"], ["windows, \"big\"", "40.25"], ["two\nlines", "3"]]);
        assert_eq!(rows("a\tb\tc\n1\t2\t3").unwrap()[1], ["1", "2", "3"]);
        assert_eq!(rows("a;b\n1,5;2\n2;3").unwrap()[1], ["1,5", "2"]);
    }

    #[test]
    fn prose_and_broken_tables_are_texts() {
        let many = format!("{}\n{}\n{}", ",".repeat(100), ",".repeat(100), ",".repeat(100));
        for text in [
            "",
            "one line, with a comma",
            "Dear Ada, hello\nthe roof, is done",
            "a,b\n1,2\n3",
            "a,a\n1,2\n3,4",
            "a,\n1,2\n3,4",
            "a,b\n\"1,2\n3,4",
            "a,b\n\"1\"x,2\n3,4",
            &many,
        ] {
            assert_eq!(rows(text), None, "{text}");
        }
    }
}
