//! Answers of a model on standard output: laid out as Markdown on a terminal, and as they are in a pipe or as plain lines.

use std::io::{self, IsTerminal};

use crate::markdown::{self, MarkdownStream, Screen};
use crate::progress::Preview;

use super::terminal_lock::Stream;
use super::{is_plain, legible, one_line, print, terminal_width, uses_colors};

/// Columns of a terminal that does not state them.
const DEFAULT_WIDTH: usize = 80;
/// Columns beside the end of a block that is not complete.
const PREVIEW_MARGIN: usize = 4;

/// Answer that arrives in parts.
#[derive(Debug)]
pub struct AnswerStream {
    /// Layout on a terminal.
    markdown: Option<MarkdownStream>,
    /// End of the block that is not complete.
    preview: Option<Preview>,
    /// `true` if the last line has no line break yet.
    is_open: bool,
}

impl AnswerStream {
    /// Creates the stream for standard output.
    pub fn new() -> Self {
        Self { markdown: screen().map(MarkdownStream::new), preview: None, is_open: false }
    }

    /// Writes text that arrived; on a terminal, a block is shown once it is complete.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    pub fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let shown = match &mut self.markdown {
            Some(markdown) => markdown.push(text),
            None => legible(text).into_owned(),
        };
        if !shown.is_empty() {
            self.preview = None;
            self.is_open = !shown.ends_with('\n');
            self.put(&shown)?;
        }
        self.preview();
        Ok(())
    }

    /// Shows the end of the block that is not complete, until there is something else to show.
    fn preview(&mut self) {
        let Some(markdown) = &self.markdown else { return };
        let line = one_line(&markdown.pending());
        if line.is_empty() {
            return;
        }
        let room = terminal_width().unwrap_or(DEFAULT_WIDTH).saturating_sub(PREVIEW_MARGIN);
        let cut = line.char_indices().rev().nth(room).map_or(0, |(at, _)| at);
        let line = if cut == 0 { line } else { format!("…{}", &line[cut..]) };
        if self.preview.is_none() {
            self.preview = Preview::new();
        }
        self.preview.iter().for_each(|preview| preview.show(line.clone()));
    }

    /// Shows the text of a block that is not complete, and ends the line. The next text begins anew.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    pub fn close(&mut self) -> anyhow::Result<()> {
        self.preview = None;
        let rest = self.markdown.as_mut().map(MarkdownStream::finish).unwrap_or_default();
        // The terminal may have another width by then.
        self.markdown = screen().map(MarkdownStream::new);
        let end = if std::mem::take(&mut self.is_open) { "\n" } else { "" };
        if rest.is_empty() && end.is_empty() { Ok(()) } else { self.put(&format!("{rest}{end}")) }
    }

    fn put(&self, text: &str) -> anyhow::Result<()> {
        // `print` decides whether a closed output is an error.
        Stream::Out.put(text.as_bytes()).or_else(|_| print(""))
    }
}

impl Default for AnswerStream {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes a whole answer to standard output.
///
/// # Errors
///
/// Standard output cannot be written.
pub fn print_answer(text: &str) -> anyhow::Result<()> {
    match screen() {
        Some(screen) => print(markdown::laid_out(text, screen).trim_end_matches('\n')),
        None => print(legible(text).trim_end_matches('\n')),
    }
}

/// Returns the terminal at standard output, if answers are laid out for it.
fn screen() -> Option<Screen> {
    let is_able = std::env::var_os("TERM").map_or(cfg!(windows), |term| term != "dumb");
    (io::stdout().is_terminal() && !is_plain() && is_able)
        .then(|| Screen { width: terminal_width().unwrap_or(DEFAULT_WIDTH), colors: uses_colors(true) })
}
