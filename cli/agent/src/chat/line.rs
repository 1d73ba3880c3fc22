//! A line that a person edits, independent of any terminal: its text, the cursor, and the earlier lines.

use console::Key;
use toolcrib_base::render;

/// Result of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// The line may have changed.
    Changed,
    /// Further keys decide: text is being pasted.
    Pending,
    /// The pasted text does not fit, and nothing of it was added.
    TooLong,
    /// The line is complete.
    Complete,
    /// The person gave up the line.
    Dropped,
    /// End of the input.
    End,
    /// The screen is to be cleared.
    Clear,
}

/// Maximum length of a line, in characters.
pub(super) const MAX_LINE: usize = 65_536;
/// Beginning and end of pasted text, as a terminal marks them.
const PASTE: &str = "\u{1b}[200~";
const PASTE_END: &str = "\u{1b}[201~";

/// Start of a key sequence that further keys complete.
#[derive(Debug, Default)]
enum Incoming {
    #[default]
    None,
    /// Partial start sequence of pasted text.
    Mark(String),
    /// Pasted text so far; with `is_cut` only its last bytes.
    Paste { text: String, is_cut: bool },
}

/// A line with its cursor, and a place in the earlier lines.
#[derive(Debug, Default)]
pub(super) struct EditedLine {
    text: Vec<char>,
    cursor: usize,
    /// Place in the history; its length means the new line.
    place: usize,
    /// The new line, while an earlier one is shown.
    new: Vec<char>,
    incoming: Incoming,
}

impl EditedLine {
    /// Starts an empty line after this many earlier ones.
    pub(super) fn after(history: &[String]) -> Self {
        Self { place: history.len(), ..Self::default() }
    }

    /// Returns the text.
    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Returns the text as a terminal shows it: on one line, without control characters.
    pub(super) fn shown(&self) -> String {
        shown(&self.text)
    }

    /// Returns the text before the cursor as a terminal shows it.
    pub(super) fn shown_before_cursor(&self) -> String {
        shown(&self.text[..self.cursor])
    }

    /// Applies a key. Control characters have their usual meaning at a shell.
    pub(super) fn press(&mut self, key: &Key, history: &[String]) -> Edit {
        match (std::mem::take(&mut self.incoming), key) {
            (Incoming::Paste { text, is_cut }, key) => return self.paste(text, is_cut, key),
            (Incoming::Mark(begun), Key::Char(c)) if self.marks(format!("{begun}{c}")) => return Edit::Pending,
            (_, Key::UnknownEscSeq(sequence)) if self.marks(with_escape(sequence)) => return Edit::Pending,
            _ => {}
        }
        match key {
            Key::Enter => return Edit::Complete,
            Key::CtrlC | Key::Char('\u{3}') => return Edit::Dropped,
            Key::Char('\u{4}') if self.text.is_empty() => return Edit::End,
            Key::Char('\u{c}') => return Edit::Clear,
            Key::ArrowLeft | Key::Char('\u{2}') => self.cursor = self.cursor.saturating_sub(1),
            Key::ArrowRight | Key::Char('\u{6}') => self.cursor = self.text.len().min(self.cursor + 1),
            Key::Home | Key::Char('\u{1}') => self.cursor = 0,
            Key::End | Key::Char('\u{5}') => self.cursor = self.text.len(),
            Key::Backspace | Key::Char('\u{8}' | '\u{7f}') => self.remove(self.cursor.saturating_sub(1), self.cursor),
            Key::Del | Key::Char('\u{4}') => self.remove(self.cursor, self.text.len().min(self.cursor + 1)),
            Key::Char('\u{15}') => self.remove(0, self.cursor),
            Key::Char('\u{b}') => self.remove(self.cursor, self.text.len()),
            Key::Char('\u{17}') => self.remove(self.word_start(), self.cursor),
            Key::ArrowUp | Key::Char('\u{10}') => self.recall(history, self.place.saturating_sub(1)),
            Key::ArrowDown | Key::Char('\u{e}') => self.recall(history, self.place + 1),
            Key::UnknownEscSeq(sequence) if sequence == &['b'] => self.cursor = self.word_start(),
            Key::UnknownEscSeq(sequence) if sequence == &['f'] => self.cursor = self.word_end(),
            Key::Char(c) if !c.is_control() && self.text.len() < MAX_LINE => {
                self.text.insert(self.cursor, *c);
                self.cursor += 1;
            }
            _ => {}
        }
        Edit::Changed
    }

    /// Takes a part of the start sequence for pasted text; `false` if it is something else.
    fn marks(&mut self, begun: String) -> bool {
        match begun.as_str() {
            PASTE => self.incoming = Incoming::Paste { text: String::new(), is_cut: false },
            _ if begun.len() > 1 && PASTE.starts_with(&begun) => self.incoming = Incoming::Mark(begun),
            _ => return false,
        }
        true
    }

    /// Takes a key of pasted text. At its end, the text is added with its line breaks and tabs, and without other control
    /// characters.
    fn paste(&mut self, mut text: String, mut is_cut: bool, key: &Key) -> Edit {
        match key {
            // The end may have been lost.
            Key::CtrlC | Key::Char('\u{3}') => return Edit::Dropped,
            Key::Char(c) => text.push(*c),
            Key::Enter => text.push('\n'),
            Key::Tab => text.push('\t'),
            Key::Escape => text.push('\u{1b}'),
            Key::UnknownEscSeq(sequence) => text += &with_escape(sequence),
            _ => {}
        }
        let Some(pasted) = text.strip_suffix(PASTE_END) else {
            if text.len() > MAX_LINE * char::MAX_LEN_UTF8 + PASTE_END.len() {
                text.drain(..text.floor_char_boundary(text.len() - PASTE_END.len()));
                is_cut = true;
            }
            self.incoming = Incoming::Paste { text, is_cut };
            return Edit::Pending;
        };
        let pasted: Vec<char> = pasted.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        if is_cut || self.text.len() + pasted.len() > MAX_LINE {
            return Edit::TooLong;
        }
        let end = self.cursor + pasted.len();
        self.text.splice(self.cursor..self.cursor, pasted);
        self.cursor = end;
        Edit::Changed
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.drain(from..to);
        self.cursor = from;
    }

    fn word_start(&self) -> usize {
        let before = &self.text[..self.cursor];
        let end = before.iter().rposition(|c| !c.is_whitespace()).map_or(0, |at| at + 1);
        before[..end].iter().rposition(|c| c.is_whitespace()).map_or(0, |at| at + 1)
    }

    fn word_end(&self) -> usize {
        let after = &self.text[self.cursor..];
        let start = after.iter().position(|c| !c.is_whitespace()).unwrap_or(after.len());
        let end = after[start..].iter().position(|c| c.is_whitespace()).unwrap_or(after.len() - start);
        self.cursor + start + end
    }

    /// Shows an earlier line, or the new one.
    fn recall(&mut self, history: &[String], place: usize) {
        let place = place.min(history.len());
        if self.place == history.len() && place < history.len() {
            self.new = std::mem::take(&mut self.text);
        }
        if place != self.place {
            let earlier = history.get(place).map(|line| line.replace("\r\n", "\n").chars().collect());
            self.text = earlier.unwrap_or_else(|| std::mem::take(&mut self.new));
            self.cursor = self.text.len();
            self.place = place;
        }
    }
}

/// Returns a text as a terminal shows it: on one line, without control characters.
fn shown(text: &[char]) -> String {
    let text: String = text.iter().collect();
    let line_break = if render::is_plain() { "\\n" } else { "↵" };
    render::legible(&text).replace('\n', line_break).replace('\t', "\\t")
}

fn with_escape(sequence: &[char]) -> String {
    std::iter::once(&'\u{1b}').chain(sequence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[Key], history: &[&str]) -> (String, usize) {
        let history: Vec<String> = history.iter().map(|line| (*line).to_owned()).collect();
        let mut line = EditedLine::after(&history);
        keys.iter().for_each(|key| assert_eq!(line.press(key, &history), Edit::Changed));
        (line.text(), line.cursor)
    }

    fn text(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn a_line_is_edited_as_at_a_shell() {
        let with = |before: &str, keys: &[Key]| typed(&[text(before), keys.to_vec()].concat(), &[]);
        assert_eq!(with("žlutý", &[]), ("žlutý".to_owned(), 5));
        assert_eq!(with("ab", &[Key::ArrowLeft, Key::Char('x')]), ("axb".to_owned(), 2));
        assert_eq!(with("ab", &[Key::Home, Key::Del, Key::End, Key::Backspace]), (String::new(), 0));
        assert_eq!(with("one two  ", &[Key::Char('\u{17}')]), ("one ".to_owned(), 4));
        assert_eq!(with("one two", &[Key::ArrowLeft, Key::Char('\u{15}')]), ("o".to_owned(), 0));
        assert_eq!(with("one two", &[Key::UnknownEscSeq(vec!['b']), Key::Char('\u{b}')]), ("one ".to_owned(), 4));
        assert_eq!(with("one two", &[Key::Home, Key::UnknownEscSeq(vec!['f'])]), ("one two".to_owned(), 3));
        assert_eq!(with("", &[Key::Backspace, Key::ArrowLeft, Key::Del, Key::Char('\u{0}')]), (String::new(), 0));
    }

    #[test]
    fn earlier_lines_are_recalled_and_the_new_one_comes_back() {
        let history = ["first", "second"];
        let up = |count| [text("new"), vec![Key::ArrowUp; count]].concat();
        assert_eq!(typed(&up(1), &history).0, "second");
        assert_eq!(typed(&up(5), &history).0, "first");
        assert_eq!(typed(&[up(2), vec![Key::ArrowDown; 5]].concat(), &history).0, "new");
    }

    #[test]
    fn enter_ends_a_line_and_an_empty_one_ends_the_input() {
        let mut line = EditedLine::default();
        assert_eq!(line.press(&Key::Char('\u{4}'), &[]), Edit::End);
        line.press(&Key::Char('a'), &[]);
        assert_eq!(line.press(&Key::Char('\u{4}'), &[]), Edit::Changed, "with a text it deletes");
        assert_eq!(line.press(&Key::CtrlC, &[]), Edit::Dropped);
        assert_eq!((line.press(&Key::Enter, &[]), line.text().as_str()), (Edit::Complete, "a"));
    }

    /// Presses the keys as which the terminal's bytes arrive, and returns the last result.
    fn arrive(line: &mut EditedLine, parts: &[Vec<Key>]) -> Edit {
        parts.concat().iter().map(|key| line.press(key, &[])).last().expect("a key")
    }

    fn sequence(text: &str) -> Vec<Key> {
        vec![Key::UnknownEscSeq(text.chars().collect())]
    }

    #[test]
    fn pasted_lines_are_added_at_the_cursor_in_whatever_parts_their_marks_arrive() {
        let begin = [sequence("[20"), text("0~")].concat();
        let end = [sequence("[20"), text("1~")].concat();
        for begin in [begin.clone(), [sequence("[2"), text("00~")].concat(), [sequence("["), text("200~")].concat()] {
            for end in
                [end.clone(), [vec![Key::Escape], text("[201~")].concat(), [sequence("["), text("201~")].concat()]
            {
                let mut line = EditedLine::default();
                arrive(&mut line, &[text("<>"), vec![Key::ArrowLeft]]);
                let pasted =
                    [text("one"), vec![Key::Enter, Key::Tab, Key::ArrowUp, Key::Char('\u{1}')], text("two")].concat();
                assert_eq!(arrive(&mut line, &[begin.clone(), pasted]), Edit::Pending);
                assert_eq!(arrive(&mut line, &[end]), Edit::Changed);
                assert_eq!((line.text().as_str(), line.shown().as_str()), ("<one\n\ttwo>", "<one↵\\ttwo>"));
                assert_eq!(line.shown_before_cursor(), "<one↵\\ttwo");
                assert_eq!(line.press(&Key::Enter, &[]), Edit::Complete);
            }
        }
        let mut line = EditedLine::default();
        assert_eq!(arrive(&mut line, &[sequence("[20"), text("x")]), Edit::Changed);
        assert_eq!(line.text(), "x", "another sequence");
        assert_eq!(arrive(&mut line, &[begin, text("a"), vec![Key::CtrlC]]), Edit::Dropped, "the end was lost");
    }

    #[test]
    fn a_line_takes_no_more_than_its_limit() {
        let (begin, end) = ([sequence("[20"), text("0~")].concat(), [sequence("[20"), text("1~")].concat());
        let paste =
            |line: &mut EditedLine, count| arrive(line, &[begin.clone(), text(&"x".repeat(count)), end.clone()]);
        let mut line = EditedLine::default();
        line.press(&Key::Char('a'), &[]);
        assert_eq!(paste(&mut line, MAX_LINE), Edit::TooLong);
        assert_eq!(line.text(), "a");
        assert_eq!(paste(&mut line, MAX_LINE * 5), Edit::TooLong, "longer than what is held");
        assert_eq!(line.text(), "a");
        assert_eq!(paste(&mut line, MAX_LINE - 2), Edit::Changed);
        line.press(&Key::Char('b'), &[]);
        line.press(&Key::Char('c'), &[]);
        let text = line.text();
        assert!(text.len() == MAX_LINE && text.ends_with("xb"), "one character too many: {}", text.len());
    }

    #[test]
    fn an_earlier_line_is_shown_without_control_characters() {
        let history = ["a\u{1b}[2J\r\nb\u{9b}c\u{202e}".to_owned()];
        let mut line = EditedLine::after(&history);
        line.press(&Key::ArrowUp, &history);
        assert_eq!(line.shown(), r"a\u{1b}[2J↵b\u{9b}c\u{202e}");
        assert_eq!(line.text(), "a\u{1b}[2J\nb\u{9b}c\u{202e}");
    }
}
