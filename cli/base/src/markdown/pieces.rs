//! Division of a text that arrives in parts into blocks, by its lines alone: a block is complete at an empty line, or where
//! the next line begins another one. What a block contains is known only to the parser.

/// Maximum bytes of a block that is parsed; a longer one is shown as it was written.
pub(super) const MAX_BLOCK: usize = 64 << 10;

/// Maximum characters of an incomplete block that are shown ahead: its end.
const MAX_TAIL: usize = 400;

/// Part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Block for the parser.
    Block {
        text: String,
        /// `true` for an item that follows the item before it.
        continues: bool,
        /// `true` for such an item without an empty line between both.
        is_tight: bool,
    },
    /// First line of a code block.
    Fence(String),
    /// Line of a code block.
    Code(String),
    /// Last line of a code block.
    FenceEnd(String),
    /// Text of a block that is too long.
    Plain {
        text: String,
        /// `true` for its beginning.
        is_first: bool,
    },
}

impl Piece {
    /// Returns `true` if an empty line separates the piece from the one before.
    pub(super) fn is_apart(&self) -> bool {
        match self {
            Self::Block { is_tight, .. } => !is_tight,
            Self::Fence(_) => true,
            Self::Code(_) | Self::FenceEnd(_) => false,
            Self::Plain { is_first, .. } => *is_first,
        }
    }
}

/// Place in the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Block,
    /// In a code block that ends with at least as many marks.
    Code { mark: char, count: usize },
    /// In a block that is too long.
    TooLong,
}

/// Text that arrives in parts.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    state: State,
    /// Line that is not complete.
    line: String,
    block: String,
    /// `true` if the block is an item of a list.
    is_item: bool,
    /// `true` after an empty line that may belong to the item.
    is_after_blank: bool,
    /// `true` if the block continues a list, and `true` if no empty line is before it.
    continues: (bool, bool),
    complete: Vec<Piece>,
}

impl Pieces {
    /// Adds text, and returns the pieces that are complete.
    pub(super) fn push(&mut self, text: &str) -> Vec<Piece> {
        for part in text.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.take_line(line);
            } else if self.line.len() > MAX_BLOCK {
                let text = std::mem::take(&mut self.line);
                self.give_up(text);
            }
        }
        std::mem::take(&mut self.complete)
    }

    /// Returns the end of the text that is not complete.
    pub(super) fn tail(&self) -> String {
        let tail: Vec<char> = self.line.chars().rev().chain(self.block.chars().rev()).take(MAX_TAIL).collect();
        tail.into_iter().rev().collect()
    }

    /// Returns the rest, and begins anew.
    pub(super) fn finish(&mut self) -> Vec<Piece> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(line + "\n");
        } else if self.state == State::TooLong
            && let Some(Piece::Plain { text, .. }) = self.complete.last_mut()
            && !text.ends_with('\n')
        {
            text.push('\n');
        }
        self.end_block();
        let complete = std::mem::take(&mut self.complete);
        *self = Self::default();
        complete
    }

    fn take_line(&mut self, line: String) {
        match self.state {
            State::Code { mark, count } if is_fence_end(&line, mark, count) => {
                self.state = State::Block;
                self.complete.push(Piece::FenceEnd(line));
            }
            State::Code { .. } => self.complete.push(Piece::Code(line)),
            State::TooLong if line.trim().is_empty() => {
                self.state = State::Block;
                self.complete.push(Piece::Plain { text: line, is_first: false });
            }
            State::TooLong => self.complete.push(Piece::Plain { text: line, is_first: false }),
            State::Block => self.take_block_line(line),
        }
    }

    fn take_block_line(&mut self, line: String) {
        if line.trim().is_empty() {
            if self.is_item {
                self.is_after_blank = true;
                return self.add(&line);
            }
            return self.end_block();
        }
        let is_indented = line.starts_with([' ', '\t']);
        let is_item = is_item(&line);
        if self.is_item && (is_item || (self.is_after_blank && !is_indented)) {
            let is_after_blank = self.is_after_blank;
            self.end_block();
            self.continues = (is_item, is_item && !is_after_blank);
        }
        if let Some((mark, count)) = fence(&line) {
            self.end_block();
            self.state = State::Code { mark, count };
            return self.complete.push(Piece::Fence(line));
        }
        let is_heading = is_heading(&line);
        if is_heading || (is_item && !self.is_item) {
            let continues = self.continues;
            self.end_block();
            self.continues = continues;
        }
        self.is_item |= self.block.is_empty() && is_item;
        self.is_after_blank = false;
        self.add(&line);
        if is_heading {
            self.end_block();
        }
    }

    fn add(&mut self, line: &str) {
        self.block.push_str(line);
        if self.block.len() > MAX_BLOCK {
            let text = std::mem::take(&mut self.block);
            self.give_up(text);
        }
    }

    /// Shows the block that is too long as it was written, up to its end.
    fn give_up(&mut self, text: String) {
        let block = std::mem::take(&mut self.block);
        let is_first = self.state == State::Block;
        match self.state {
            State::Code { .. } => self.complete.push(Piece::Code(text)),
            State::Block | State::TooLong => {
                self.complete.push(Piece::Plain { text: block + &text, is_first });
                self.state = State::TooLong;
            }
        }
        (self.is_item, self.is_after_blank, self.continues) = (false, false, (false, false));
    }

    fn end_block(&mut self) {
        let (continues, is_tight) = std::mem::take(&mut self.continues);
        (self.is_item, self.is_after_blank) = (false, false);
        let text = std::mem::take(&mut self.block);
        if !text.trim().is_empty() {
            self.complete.push(Piece::Block { text, continues, is_tight });
        }
    }
}

/// Returns the mark of a line that begins a code block, and how often it stands there.
fn fence(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let count = line.len() - rest.len();
    (count >= 3 && !(mark == '`' && rest.contains('`'))).then_some((mark, count))
}

fn is_fence_end(line: &str, mark: char, count: usize) -> bool {
    let line = line.trim_end();
    let marks = line.trim_start_matches(' ');
    line.len() - marks.len() < 4 && marks.len() >= count && marks.chars().all(|c| c == mark)
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - rest.len())) && rest.starts_with([' ', '\t', '\n', '\r'])
}

/// Returns `true` if an item of a list begins at the first column.
fn is_item(line: &str) -> bool {
    marker(line).is_some_and(|len| !line[len..].trim().is_empty()) && !is_rule(line)
}

/// Returns `true` for a rule such as `* * *`, which is no item.
fn is_rule(line: &str) -> bool {
    let marks = || line.chars().filter(|c| !c.is_whitespace());
    marks().next().is_some_and(|first| marks().all(|c| c == first) && marks().nth(2).is_some())
}

/// Returns the length of an item's mark with the space after it, in bytes.
pub(super) fn marker(line: &str) -> Option<usize> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line.as_bytes()[digits..];
    let is_mark = match rest.first() {
        Some(b'-' | b'*' | b'+') => digits == 0,
        Some(b'.' | b')') => (1..=9).contains(&digits),
        _ => false,
    };
    (is_mark && matches!(rest.get(1), Some(b' ' | b'\t'))).then_some(digits + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<Piece> {
        let mut pieces = Pieces::default();
        let mut found = pieces.push(text);
        found.extend(pieces.finish());
        found
    }

    fn block(text: &str, continues: bool, is_tight: bool) -> Piece {
        Piece::Block { text: text.to_owned(), continues, is_tight }
    }

    #[test]
    fn the_parts_in_which_a_text_arrives_change_nothing() {
        let text =
            "# Title\nHere:\n- a\n  - b\n\n  more\n- c\n\n1. x\n\ntext\n===\n```rust\n\nfn\n```\n> q\n\n~~~\nopen\n";
        let whole = pieces(text);
        for size in 1..8 {
            let mut stream = Pieces::default();
            let bytes: Vec<&str> = text.as_bytes().chunks(size).map(|part| str::from_utf8(part).unwrap()).collect();
            let mut found: Vec<Piece> = bytes.iter().flat_map(|part| stream.push(part)).collect();
            found.extend(stream.finish());
            assert_eq!(found, whole);
        }
        let code = |line: &str| Piece::Code(line.to_owned());
        let wanted = [
            block("# Title\n", false, false),
            block("Here:\n", false, false),
            block("- a\n  - b\n\n  more\n", false, false),
            block("- c\n\n", true, true),
            block("1. x\n\n", true, false),
            block("text\n===\n", false, false),
            Piece::Fence("```rust\n".to_owned()),
            code("\n"),
            code("fn\n"),
            Piece::FenceEnd("```\n".to_owned()),
            block("> q\n", false, false),
            Piece::Fence("~~~\n".to_owned()),
            code("open\n"),
        ];
        assert_eq!(whole, wanted);
    }

    #[test]
    fn a_block_that_is_too_long_is_shown_as_it_is_and_nothing_is_lost() {
        let long = "a ".repeat(MAX_BLOCK / 2);
        for text in [format!("{long}b\n\nnext"), format!("x\n{long}\nb\n\nnext"), format!("{long}\n{long}\n\nnext")] {
            let found = pieces(&text);
            assert!(matches!(&found[0], Piece::Plain { is_first: true, .. }), "{:?}", found.len());
            assert_eq!(found.last(), Some(&block("next\n", false, false)));
            let shown: String = found
                .iter()
                .filter_map(|piece| match piece {
                    Piece::Plain { text, .. } => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(format!("{shown}next"), text);
        }
        let fits = "a ".repeat(MAX_BLOCK / 2 - 1);
        assert!(matches!(&pieces(&fits)[..], [Piece::Block { .. }]));
    }

    #[test]
    fn a_rule_is_no_item_and_a_long_number_none() {
        for (line, wanted) in
            [("- a", true), ("* * *", false), ("- ", false), ("-a", false), ("12. a", true), ("1234567890. a", false)]
        {
            assert_eq!(is_item(line), wanted, "{line}");
        }
    }
}
