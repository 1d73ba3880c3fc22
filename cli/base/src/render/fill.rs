//! Lines that end between words, for messages and screens on a terminal, which would divide words. A text in backticks, such as
//! a command to copy, stays on one line if a line has room for it. Messages end at the width that a text is read at.

use std::io::{self, IsTerminal};

use unicode_width::UnicodeWidthChar;

use super::table::{message_width, terminal_width};
use crate::markdown::MAX_PROSE;

/// Indentation of the further lines of a text, in columns.
const INDENT: usize = 2;
/// Width below which lines are left to the terminal.
const MIN_WIDTH: usize = 20;

/// Fills the lines of a text for standard output, if that is a terminal.
pub(super) fn for_output(text: &str) -> String {
    let width = if io::stdout().is_terminal() { terminal_width() } else { None };
    width.map_or_else(|| text.to_owned(), |width| filled(text, width))
}

/// Fills the lines of a text for standard error, if that is a terminal; the first line begins after `used` columns.
pub(super) fn for_messages(text: &str, used: usize) -> String {
    let width = if io::stderr().is_terminal() { message_width() } else { None };
    width.map_or_else(|| text.to_owned(), |width| filled_after(text, used, width.min(MAX_PROSE)))
}

/// Fills the lines of a question, with a space for the answer at its end.
pub fn question(text: &str) -> String {
    format!("{} ", for_messages(text.trim_end(), 0))
}

/// Fills lines up to `width` columns. Continued lines are indented like the text behind the line's last gap with two spaces
/// in its first half, if there is one and each word has room there, else two columns more than the line itself.
pub fn filled(text: &str, width: usize) -> String {
    filled_after(text, 0, width)
}

fn filled_after(text: &str, used: usize, width: usize) -> String {
    if width < MIN_WIDTH {
        return text.to_owned();
    }
    let used = std::iter::once(used).chain(std::iter::repeat(0));
    text.split('\n').zip(used).map(|(line, used)| filled_line(line, used, width)).collect::<Vec<_>>().join("\n")
}

fn filled_line(line: &str, used: usize, width: usize) -> String {
    if used + columns(line) <= width {
        return line.to_owned();
    }
    let start = line.len() - line.trim_start_matches(' ').len();
    let words = words(&line[start..], width - INDENT);
    let widest = words.iter().map(|word| columns(word.trim_end())).max().unwrap_or_default();
    // Below a label, long words such as digests begin further left, and so does everything below them.
    let indents = hanging(line, width).filter(|_| used == 0).into_iter().chain([start + INDENT]);
    let indent = indents.map(|indent| indent.min(width / 2)).find(|indent| indent + widest <= width);
    let indent = indent.unwrap_or(INDENT);
    let (mut filled, mut at, mut is_empty) = (line[..start].to_owned(), used + start, true);
    for word in words {
        let wide = columns(word.trim_end());
        if !is_empty && at + wide > width {
            filled.truncate(filled.trim_end_matches(' ').len());
            filled.push('\n');
            at = indent;
            filled.extend(std::iter::repeat_n(' ', at));
        }
        filled += word;
        at += columns(word);
        is_empty = false;
    }
    filled.truncate(filled.trim_end_matches(' ').len());
    filled
}

/// Returns the column after the last gap with two spaces or more, if it is in the first half of `width`.
fn hanging(line: &str, width: usize) -> Option<usize> {
    let (mut found, mut at, mut spaces, mut is_code) = (None, 0, 0, false);
    for c in line.trim_start_matches(' ').chars() {
        match c {
            '\u{1b}' => is_code = true,
            _ if is_code => is_code = !c.is_ascii_alphabetic(),
            ' ' => {
                spaces += 1;
                at += 1;
            }
            c => {
                if spaces > 1 {
                    found = Some(at);
                }
                spaces = 0;
                at += c.width().unwrap_or_default();
            }
        }
    }
    found.map(|column| column + line.len() - line.trim_start_matches(' ').len()).filter(|column| *column <= width / 2)
}

/// Divides a line into words, each with the spaces behind it. A text in backticks of at most `room` columns is one word.
fn words(line: &str, room: usize) -> Vec<&str> {
    let (mut words, mut start, mut code_end, mut before) = (Vec::new(), 0, 0, ' ');
    for (at, c) in line.char_indices() {
        if before == ' ' && c != ' ' && at >= code_end && at > start {
            words.push(&line[start..at]);
            start = at;
        }
        if c == '`' && at >= code_end {
            let rest = &line[at + 1..];
            // Without room for it, the text is divided like others.
            let end = rest.find('`').map_or(at, |length| at + length + 2);
            code_end = if columns(&line[start..end]) > room { code_end } else { end };
        }
        before = c;
    }
    words.push(&line[start..]);
    words
}

/// Returns a text's columns, without its color codes.
fn columns(text: &str) -> usize {
    let (mut columns, mut is_code) = (0, false);
    for c in text.chars() {
        match c {
            '\u{1b}' => is_code = true,
            _ if is_code => is_code = !c.is_ascii_alphabetic(),
            c => columns += c.width().unwrap_or_default(),
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_and_commands_stay_whole() {
        let text = "hint: run saved; continue: `toolcrib run --resume x` (repeat your options)";
        let lines = "hint: run saved; continue:\n  `toolcrib run --resume x`\n  (repeat your options)";
        assert_eq!(filled(text, 30), lines);
        assert_eq!(filled(text, 200), text);
        assert_eq!(filled("one two\n\n  three four five six seven", 20), "one two\n\n  three four five\n    six seven");
        // A word without room is left to the terminal; so is an open backtick.
        let long = "x".repeat(50);
        assert_eq!(filled(&format!("a {long} b"), 20), format!("a\n  {long}\n  b"));
        let digest = "x".repeat(25);
        assert_eq!(filled(&format!("  digest    {digest}"), 30), format!("  digest\n    {digest}"));
        assert_eq!(filled("an `open one of some words", 20), "an `open one of some\n  words");
        // A text in backticks without room for it is divided between its words.
        assert_eq!(filled("say `one two three four five`, `a b`", 20), "say `one two three\n  four five`, `a b`");
    }

    #[test]
    fn a_long_word_below_a_label_does_not_leave_its_column() {
        let text = "  uses    aaaa bbbb cccccccccccccccc dddd";
        assert_eq!(filled(text, 22), "  uses    aaaa bbbb\n    cccccccccccccccc\n    dddd");
        let long = "x".repeat(30);
        assert_eq!(filled(&format!("  digest  {long}, 7 b"), 22), format!("  digest\n  {long},\n  7 b"));
    }

    #[test]
    fn a_second_column_goes_on_below_itself_and_colors_take_no_room() {
        let text = "ok   cache  one two three four five six";
        assert_eq!(filled(text, 30), "ok   cache  one two three four\n            five six");
        let text = "  \u{1b}[32mname\u{1b}[0m  one two three four";
        assert_eq!(filled(text, 20), "  \u{1b}[32mname\u{1b}[0m  one two\n        three four");
        assert_eq!(filled("漢字漢字 漢字漢字 漢字漢字", 20), "漢字漢字 漢字漢字\n  漢字漢字");
    }
}
