//! Markdown of a model as text for a terminal: blocks are laid out as soon as they are complete, and every character that
//! could control the terminal is escaped. A block beyond a bound is shown as it was written.

mod layout;
mod pieces;
mod spans;
mod table;

use crate::render::legible;

pub use layout::is_excessive;

use layout::Layout;
use pieces::{Piece, Pieces};
use spans::{Style, painted};

/// Maximum columns of prose: longer lines are hard to read.
pub(crate) const MAX_PROSE: usize = 100;
/// Minimum columns that text gets, however narrow the terminal is.
const MIN_WIDTH: usize = 16;

/// Terminal that text is laid out for.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Columns of a line.
    pub width: usize,
    /// `true` to use colors; without, the marks of the Markdown stay.
    pub colors: bool,
}

/// Layout of a Markdown text that arrives in parts.
#[derive(Debug)]
pub struct MarkdownStream {
    screen: Screen,
    pieces: Pieces,
    is_begun: bool,
    /// Last number of the list that continues.
    number: Option<u64>,
}

impl MarkdownStream {
    /// Creates a layout for a terminal.
    pub fn new(screen: Screen) -> Self {
        let screen = Screen { width: screen.width.max(MIN_WIDTH), ..screen };
        Self { screen, pieces: Pieces::default(), is_begun: false, number: None }
    }

    /// Adds text, and returns the lines of the blocks that are complete with it.
    pub fn push(&mut self, text: &str) -> String {
        let pieces = self.pieces.push(text);
        self.lines(pieces)
    }

    /// Returns the lines of the text that was not shown yet. The next text begins anew.
    pub fn finish(&mut self) -> String {
        let pieces = self.pieces.finish();
        let lines = self.lines(pieces);
        (self.is_begun, self.number) = (false, None);
        lines
    }

    /// Returns the end of the text that was not shown yet.
    pub fn pending(&self) -> String {
        self.pieces.tail()
    }

    fn lines(&mut self, pieces: Vec<Piece>) -> String {
        let mut out = String::new();
        for piece in pieces {
            let lines = self.piece(&piece);
            let is_apart = piece.is_apart() && self.is_begun && !lines.is_empty();
            self.is_begun |= !lines.is_empty();
            if is_apart {
                out.push('\n');
            }
            out += &lines;
        }
        out
    }

    fn piece(&mut self, piece: &Piece) -> String {
        let (text, style) = match piece {
            Piece::Block { text, continues, .. } => {
                let number = self.number.take().filter(|_| *continues).map(|number| number.saturating_add(1));
                let (lines, last) = Layout::new(self.screen).block(text, number);
                self.number = last;
                return lines;
            }
            Piece::Fence(line) | Piece::FenceEnd(line) => (line, Style { is_quiet: true, ..Style::default() }),
            Piece::Code(line) => (line, Style { is_code: true, ..Style::default() }),
            Piece::Plain { text, .. } => (text, Style::default()),
        };
        self.number = None;
        // A line that is not complete comes as a whole in the end, or is longer than a block may be.
        let (line, end) = text.strip_suffix('\n').map_or((text.as_str(), ""), |line| (line, "\n"));
        let line = legible(line.strip_suffix('\r').unwrap_or(line)).into_owned();
        if matches!(piece, Piece::Plain { .. }) || line.is_empty() {
            return line + end;
        }
        painted(&line, style, self.screen.colors) + end
    }
}

/// Lays out a whole text.
pub fn laid_out(text: &str, screen: Screen) -> String {
    let mut stream = MarkdownStream::new(screen);
    let lines = stream.push(text);
    lines + &stream.finish()
}

#[cfg(test)]
mod tests;
