//! Lines of a text with their ends, for tools that edit. A line break may have a carriage return, and a file may begin with a
//! byte order mark; an edit keeps both.

/// Byte order mark of UTF-8 text.
const MARK: &str = "\u{feff}";

/// Splits a text into its byte order mark, which is empty for a text without one, and its lines with their ends.
pub fn split(text: &str) -> (&str, Vec<&str>) {
    let (mark, text) = split_mark(text);
    (mark, text.split_inclusive('\n').collect())
}

/// Splits a text into its byte order mark, which is empty for a text without one, and the text after it.
pub fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with(MARK) { MARK.len() } else { 0 })
}

/// Returns a line without its end.
pub fn content(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Returns the line break of a line: `\n` for a line without one.
pub fn line_break(line: &str) -> &'static str {
    if line.ends_with("\r\n") { "\r\n" } else { "\n" }
}

/// Returns the line break for a new line before the line with this index: that of the nearest line above with one, or else of
/// the first line.
pub fn line_break_at(lines: &[&str], index: usize) -> &'static str {
    let above = lines[..index.min(lines.len())].iter().rfind(|line| line.ends_with('\n')).or_else(|| lines.first());
    above.map_or("\n", |line| line_break(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_its_mark_and_its_lines() {
        assert_eq!(split("\u{feff}a\r\nb\nc"), ("\u{feff}", vec!["a\r\n", "b\n", "c"]));
        assert_eq!(split(""), ("", vec![]));
        assert_eq!(["a\r\n", "b\n", "c", "\r\n"].map(content), ["a", "b", "c", ""]);
    }

    #[test]
    fn a_new_line_ends_like_the_one_above() {
        let lines = ["a\r\n", "b\n", "c"];
        assert_eq!([0, 1, 2, 3].map(|index| line_break_at(&lines, index)), ["\r\n", "\r\n", "\n", "\n"]);
        assert_eq!(line_break_at(&[], 0), "\n");
    }
}
