//! Reads the lines of a person: on a terminal with editing and history, else line by line.

use std::io::{self, BufRead, IsTerminal, Read};
use std::thread;

use console::{Term, measure_text_width};
use tokio::sync::oneshot;
use toolcrib_base::render;
use toolcrib_base::terminal_mode::TerminalMode;

use super::line::{Edit, EditedLine, MAX_LINE as MAX_TYPED};

/// Maximum length of a line that is not typed on a terminal, and of a multi-line message, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// Result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    Line(String),
    /// The person gave up the line.
    Dropped,
    End,
}

/// Reader of lines. The terminal is restored when it is dropped.
pub(super) struct Editor {
    is_terminal: bool,
    /// Earlier lines, oldest first.
    history: Vec<String>,
    _mode: Option<TerminalMode>,
}

impl Editor {
    /// Creates a reader that recalls these lines.
    pub(super) fn new(history: Vec<String>) -> Self {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        Self { is_terminal, history, _mode: is_terminal.then(TerminalMode::save).flatten() }
    }

    /// Returns `true` if a person types the lines.
    pub(super) fn is_at_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns the lines that can be recalled.
    pub(super) fn history(&self) -> &[String] {
        &self.history
    }

    /// Adds a line that can be recalled, unless it is the last one again.
    pub(super) fn remember(&mut self, line: &str) {
        if self.history.last().is_none_or(|last| last != line) {
            self.history.push(line.to_owned());
        }
    }

    /// Reads a line after a prompt. Lines that end with `\` go on.
    ///
    /// # Errors
    ///
    /// The terminal or standard input cannot be read.
    pub(super) async fn read(&self) -> io::Result<Input> {
        let (sender, receiver) = oneshot::channel();
        let (is_terminal, history) = (self.is_terminal, self.history.clone());
        // On a thread of its own: nothing can interrupt a read.
        thread::Builder::new().name("chat".to_owned()).spawn(move || {
            let read = if is_terminal { joined(|prompt| edited(prompt, &history)) } else { joined(|_| plain()) };
            // The chat may have ended.
            let _ = sender.send(read);
        })?;
        receiver.await.unwrap_or(Ok(Input::End))
    }
}

/// Joins lines that end with `\`.
fn joined(read: impl Fn(&str) -> io::Result<Input>) -> io::Result<Input> {
    let mut text = String::new();
    loop {
        match read(if text.is_empty() { "> " } else { "… " })? {
            Input::Line(line) if (text.len() + line.len()) as u64 > MAX_LINE => {
                return Err(io::Error::other(format!("a message is longer than the {MAX_LINE} bytes allowed")));
            }
            Input::Line(line) => match line.strip_suffix('\\') {
                Some(line) => text += &format!("{line}\n"),
                None => return Ok(Input::Line(text + &line)),
            },
            Input::End if !text.is_empty() => return Ok(Input::Line(text)),
            other => return Ok(other),
        }
    }
}

/// Reads a line of standard input.
fn plain() -> io::Result<Input> {
    let mut line = String::new();
    let count = io::stdin().lock().take(MAX_LINE).read_line(&mut line)?;
    match count {
        0 => Ok(Input::End),
        _ if count as u64 == MAX_LINE && !line.ends_with('\n') => {
            Err(io::Error::other(format!("a line is longer than the {MAX_LINE} bytes allowed")))
        }
        _ => Ok(Input::Line(line.trim_end_matches(['\r', '\n']).to_owned())),
    }
}

/// Lets a person edit a line on the terminal.
fn edited(prompt: &str, history: &[String]) -> io::Result<Input> {
    let _mode = TerminalMode::keys();
    let term = Term::buffered_stderr();
    let mut line = EditedLine::after(history);
    let mut screen = Screen { term: &term, prompt, row: 0 };
    screen.draw(&line)?;
    loop {
        match line.press(&term.read_key_raw()?, history) {
            Edit::Changed => screen.draw(&line)?,
            Edit::Pending => {}
            Edit::Clear => {
                term.clear_screen()?;
                screen.row = 0;
                screen.draw(&line)?;
            }
            Edit::TooLong => {
                screen.leave(&mut line, history)?;
                render::aside(&format!(
                    "error: the pasted text is longer than the {MAX_TYPED} characters allowed in a message; it was ignored"
                ));
                screen.draw(&line)?;
            }
            end => {
                screen.leave(&mut line, history)?;
                return Ok(match end {
                    Edit::Complete => Input::Line(line.text()),
                    Edit::End => Input::End,
                    _ => Input::Dropped,
                });
            }
        }
    }
}

/// Rows of the terminal that show a line.
struct Screen<'a> {
    term: &'a Term,
    prompt: &'a str,
    /// Cursor row, counted from the prompt row.
    row: usize,
}

impl Screen<'_> {
    /// Goes to the row after the line.
    fn leave(&mut self, line: &mut EditedLine, history: &[String]) -> io::Result<()> {
        line.press(&console::Key::End, history);
        self.draw(line)?;
        self.row = 0;
        self.term.write_line("")?;
        self.term.flush()
    }

    /// Draws the line anew, with the cursor in its place.
    fn draw(&mut self, line: &EditedLine) -> io::Result<()> {
        let term = self.term;
        let columns = usize::from(term.size().1).max(1);
        let width = |text: &str| measure_text_width(self.prompt) + measure_text_width(text);
        let shown = line.shown();
        let (end, cursor) = (width(&shown), width(&line.shown_before_cursor()));
        term.move_cursor_up(self.row)?;
        term.clear_line()?;
        term.clear_to_end_of_screen()?;
        term.write_str(&format!("{}{shown}", self.prompt))?;
        if end.is_multiple_of(columns) {
            // The cursor is after the last column, where it does not wrap by itself.
            term.write_line("")?;
        }
        term.move_cursor_up(end / columns - cursor / columns)?;
        term.write_str("\r")?;
        term.move_cursor_right(cursor % columns)?;
        self.row = cursor / columns;
        term.flush()
    }
}
