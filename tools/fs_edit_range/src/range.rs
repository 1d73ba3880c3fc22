//! Ranges of lines or bytes in a text, and their replacement. Knows no files.

use std::ops::Range;

use serde::Deserialize;
use toolcrib_guest::lines as text_lines;

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Counted from 1, `end` included; `end` = `start` - 1 is the empty range before line `start`.
    #[default]
    Lines,
    /// Counted from 0, `end` not included.
    Bytes,
}

/// Byte range of `text` for `start` and `end`.
pub(crate) fn find(text: &str, unit: Unit, start: usize, end: usize) -> Result<Range<usize>, String> {
    match unit {
        Unit::Lines => lines(text, start, end),
        Unit::Bytes => bytes(text, start, end),
    }
}

fn lines(text: &str, start: usize, end: usize) -> Result<Range<usize>, String> {
    // Start of each line, and the end of the text.
    let mut starts = vec![0];
    starts.extend(text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some(*at)
    }));
    let count = starts.len() - 1;
    if start == 0 {
        return Err("start `0` is not a line; the first line is 1".into());
    }
    if end < start.saturating_sub(1) {
        return Err(format!("end `{end}` is before start `{start}`"));
    }
    if start > count + 1 {
        return Err(format!("start `{start}` is past the end: there are {count} lines"));
    }
    if end > count {
        return Err(format!("end `{end}` is past the end: there are {count} lines"));
    }
    Ok(starts[start - 1]..starts[end])
}

fn bytes(text: &str, start: usize, end: usize) -> Result<Range<usize>, String> {
    if end < start {
        return Err(format!("end `{end}` is before start `{start}`"));
    }
    if end > text.len() {
        return Err(format!("end `{end}` is past the end: there are {} bytes", text.len()));
    }
    for (name, at) in [("start", start), ("end", end)] {
        if !text.is_char_boundary(at) {
            return Err(format!("{name} `{at}` is inside a character"));
        }
    }
    Ok(start..end)
}

/// Returns `true` if a range has the expected text; for lines, their ends are ignored.
pub(crate) fn same(found: &str, expected: &str, unit: Unit) -> bool {
    match unit {
        Unit::Lines => text_lines::content(found).lines().eq(text_lines::content(expected).lines()),
        Unit::Bytes => found == expected,
    }
}

/// Replaces the range by `content`. In a range of lines, a missing line break around `content` is added, and its lines end like
/// those that they replace, or like the line above.
pub(crate) fn replace(text: &str, range: Range<usize>, content: &str, unit: Unit) -> String {
    let (before, found, after) = (&text[..range.start], &text[range.clone()], &text[range.end..]);
    if unit == Unit::Bytes || content.is_empty() {
        return [before, content, after].concat();
    }
    // A file without any line break has no end to follow.
    let replaced = found.split_inclusive('\n').next().filter(|line| line.ends_with('\n'));
    let above = before.split_inclusive('\n').next_back().filter(|line| line.ends_with('\n'));
    let model = replaced.or(above).or_else(|| after.split_inclusive('\n').next().filter(|line| line.ends_with('\n')));
    let line_break = model.map_or("\n", text_lines::line_break);
    let content: String = match model {
        Some(_) => content.split_inclusive('\n').map(|line| with_break(line, line_break)).collect(),
        None => content.to_owned(),
    };
    let broken = |part: &str| part.is_empty() || part.ends_with('\n');
    let above = if broken(before) { "" } else { line_break };
    // At the end of the file, the new last line has a line break if the old one had.
    let old_last = if found.is_empty() { before } else { found };
    let wanted = !after.is_empty() || old_last.ends_with('\n');
    let below = if wanted && !broken(&content) { line_break } else { "" };
    [before, above, &content, below, after].concat()
}

/// Gives a line, if it has a break, this one.
fn with_break(line: &str, line_break: &str) -> String {
    if line.ends_with('\n') { format!("{}{line_break}", text_lines::content(line)) } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str, start: usize, end: usize, content: &str) -> String {
        let range = find(text, Unit::Lines, start, end).expect("a range");
        replace(text, range, content, Unit::Lines)
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(edit("a\nb\nc\n", 2, 2, "B"), "a\nB\nc\n");
        assert_eq!(edit("a\nb\nc\n", 2, 2, "B\n"), "a\nB\nc\n");
        assert_eq!(edit("a\nb\nc\n", 1, 3, "B"), "B\n");
        assert_eq!(edit("a\nb", 2, 2, "B"), "a\nB");
        assert_eq!(edit("a\r\nb\r\n", 1, 1, "A"), "A\r\nb\r\n");
    }

    #[test]
    fn new_lines_end_like_the_old_ones() {
        assert_eq!(edit("a\r\nb\r\nc\r\n", 2, 2, "x\ny\n"), "a\r\nx\r\ny\r\nc\r\n");
        assert_eq!(edit("a\r\nb\n", 2, 2, "x\r\ny"), "a\r\nx\ny\n");
        assert_eq!(edit("a\r\n", 2, 1, "b\nc"), "a\r\nb\r\nc\r\n");
        assert_eq!(edit("a", 1, 1, "x\r\ny"), "x\r\ny", "no break to follow");
        assert!(same("a\r\nb\r\n", "a\nb", Unit::Lines) && !same("a\nb", "a\nc", Unit::Lines));
        assert!(!same("\r\n", "x", Unit::Lines) && !same("a\r\n", "a\n", Unit::Bytes));
    }

    #[test]
    fn an_empty_range_inserts() {
        assert_eq!(edit("a\nb\n", 1, 0, "0"), "0\na\nb\n");
        assert_eq!(edit("a\nb\n", 3, 2, "c"), "a\nb\nc\n");
        assert_eq!(edit("a\nb", 3, 2, "c"), "a\nb\nc");
        assert_eq!(edit("", 1, 0, "a"), "a");
    }

    #[test]
    fn empty_content_deletes_whole_lines() {
        assert_eq!(edit("a\nb\nc\n", 2, 3, ""), "a\n");
        assert_eq!(edit("a\nb\nc\n", 1, 3, ""), "");
    }
}
