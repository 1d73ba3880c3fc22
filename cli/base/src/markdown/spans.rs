//! Text with styles, and its division into lines of a width.

use unicode_width::UnicodeWidthChar;

/// Character that joins two characters into one sign.
const JOINER: char = '\u{200d}';

/// Appearance of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) is_bold: bool,
    pub(super) is_italic: bool,
    pub(super) is_struck: bool,
    pub(super) is_code: bool,
    pub(super) is_link: bool,
    pub(super) is_heading: bool,
    pub(super) is_quiet: bool,
}

impl Style {
    /// Returns the codes of the style for a terminal, separated by `;`.
    fn codes(self) -> String {
        let codes = [
            (self.is_bold || self.is_heading, "1"),
            (self.is_quiet, "2"),
            (self.is_italic, "3"),
            (self.is_link, "4"),
            (self.is_struck, "9"),
            (self.is_code, "36"),
        ];
        codes.iter().filter(|(is_set, _)| *is_set).map(|(_, code)| *code).collect::<Vec<_>>().join(";")
    }
}

/// Text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) style: Style,
}

/// Adds a text to the last span if that has the same style.
pub(super) fn push(spans: &mut Vec<Span>, text: &str, style: Style) {
    match spans.last_mut() {
        Some(last) if last.style == style => last.text.push_str(text),
        _ => spans.push(Span { text: text.to_owned(), style }),
    }
}

/// Returns a text with the codes of its style.
pub(super) fn painted(text: &str, style: Style, colors: bool) -> String {
    if !colors || style == Style::default() {
        return text.to_owned();
    }
    format!("\u{1b}[{}m{text}\u{1b}[0m", style.codes())
}

/// Returns the columns of a character.
fn columns(c: char) -> usize {
    c.width().unwrap_or_default()
}

/// Returns the columns of a text.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Line of a paragraph.
#[derive(Debug, Default, Clone)]
pub(super) struct Line {
    pub(super) spans: Vec<Span>,
    pub(super) width: usize,
}

impl Line {
    /// Returns the line with the codes of its styles.
    pub(super) fn painted(&self, colors: bool) -> String {
        self.spans.iter().map(|Span { text, style }| painted(text, *style, colors)).collect()
    }
}

/// Lines that are filled word by word.
struct Filling {
    most: usize,
    /// `true` to divide words that are too long for a line.
    divides: bool,
    lines: Vec<Line>,
    line: Line,
    word: Line,
    /// Style of the space before the word, if there is one.
    space: Option<Style>,
}

impl Filling {
    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if word.spans.is_empty() {
            return;
        }
        let space = self.space.take().filter(|_| self.line.width > 0);
        if self.line.width > 0 && self.line.width + usize::from(space.is_some()) + word.width > self.most {
            self.end_line();
        } else if let Some(style) = space {
            push(&mut self.line.spans, " ", style);
            self.line.width += 1;
        }
        for Span { text, style } in word.spans {
            push(&mut self.line.spans, &text, style);
        }
        self.line.width += word.width;
    }

    fn end_line(&mut self) {
        self.space = None;
        self.lines.push(std::mem::take(&mut self.line));
    }

    fn add(&mut self, c: char, style: Style) {
        let wide = columns(c);
        if self.divides && self.word.width + wide > self.most {
            self.end_word();
        }
        push(&mut self.word.spans, c.encode_utf8(&mut [0; 4]), style);
        self.word.width += wide;
    }
}

/// Fills lines with at most `most` columns. A longer word is divided, or has a line of its own, which the terminal divides.
pub(super) fn wrapped(spans: &[Span], most: usize, divides: bool) -> Vec<Line> {
    let (line, word) = (Line::default(), Line::default());
    let mut filling = Filling { most: most.max(1), divides, lines: Vec::new(), line, word, space: None };
    let mut before = None;
    for Span { text, style } in spans {
        for c in text.chars() {
            match c {
                '\n' => {
                    filling.end_word();
                    filling.end_line();
                }
                ' ' | '\t' => {
                    filling.end_word();
                    filling.space = Some(*style);
                }
                // A line may end between signs that are two columns wide, which languages without spaces use.
                _ if columns(c) == 2 && before != Some(JOINER) => {
                    filling.end_word();
                    filling.add(c, *style);
                }
                _ => {
                    if before.is_some_and(|before| columns(before) == 2) && c.is_alphanumeric() {
                        filling.end_word();
                    }
                    filling.add(c, *style);
                }
            }
            before = Some(c);
        }
    }
    filling.end_word();
    if !filling.line.spans.is_empty() || filling.lines.is_empty() {
        filling.end_line();
    }
    filling.lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, most: usize, divides: bool) -> Vec<String> {
        let spans = [Span { text: text.to_owned(), style: Style::default() }];
        let lines = wrapped(&spans, most, divides);
        lines
            .iter()
            .inspect(|line| assert!(line.width == width(&line.painted(false))))
            .map(|line| line.painted(true))
            .collect()
    }

    #[test]
    fn lines_end_between_words_and_between_wide_signs() {
        assert_eq!(lines("one two  three\nfour", 8, false), ["one two", "three", "four"]);
        assert_eq!(lines("a longword b", 4, false), ["a", "longword", "b"]);
        assert_eq!(lines("a longword b", 4, true), ["a", "long", "word", "b"]);
        assert_eq!(lines("漢字漢字", 5, false), ["漢字", "漢字"]);
        assert_eq!(lines("x 👩\u{200d}💻 y", 20, false), ["x 👩\u{200d}💻 y"]);
        assert_eq!(lines("", 5, false), [""]);
    }

    #[test]
    fn a_style_ends_with_its_text() {
        let bold = Style { is_bold: true, ..Style::default() };
        let spans = [Span { text: "a ".into(), style: Style::default() }, Span { text: "b c".into(), style: bold }];
        let shown: Vec<String> = wrapped(&spans, 3, false).iter().map(|line| line.painted(true)).collect();
        assert_eq!(shown, ["a \u{1b}[1mb\u{1b}[0m", "\u{1b}[1mc\u{1b}[0m"]);
    }
}
