//! Messages of cargo, passed on to standard error but for one: the warning that all tools share one copy of the SDK, by a path
//! override. Cargo has no other way to replace a dependency that is a folder: `[patch]` replaces only dependencies from
//! registries and repositories.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Read, Write};
use std::process::{Command, Stdio};

use toolcrib_base::render::{self, Tone};

/// First line of the warning.
const START: &str = "warning: path override for crate `toolcrib-guest` has altered the original list of";
/// Last line of the warning, before an empty one.
const END: &str = "https://doc.rust-lang.org/cargo/reference/overriding-dependencies.html";
/// Maximum lines of the warning: a later version of cargo may end it otherwise.
const MAX_LINES: usize = 16;
/// Bytes that are read at once.
const CHUNK: usize = 8 << 10;
/// Bytes that begin and end a sequence for a terminal.
const ESCAPE: u8 = 0x1b;

/// Lets cargo write to a pipe as it would to the terminal of this process: with colors and a progress bar.
pub(crate) fn pipe(cargo: &mut Command) {
    cargo.stderr(Stdio::piped());
    let set = |cargo: &mut Command, name: &str, value: String| {
        if env::var_os(name).is_none() {
            cargo.env(name, value);
        }
    };
    if !io::stderr().is_terminal() {
        return;
    }
    if let Cow::Owned(_) = render::paint(Tone::Quiet, "", true) {
        set(cargo, "CARGO_TERM_COLOR", "always".to_owned());
    }
    if let Some((width, _)) = terminal_size::terminal_size_of(io::stderr()).filter(|_| !render::is_plain()) {
        set(cargo, "CARGO_TERM_PROGRESS_WHEN", "always".to_owned());
        set(cargo, "CARGO_TERM_PROGRESS_WIDTH", width.0.to_string());
    }
}

/// Copies messages to their end, without the warning.
///
/// # Errors
///
/// The messages cannot be read or written.
pub(crate) fn copy(mut messages: impl Read, out: impl Write) -> io::Result<()> {
    let mut filter = Filter { out, line: Vec::new(), state: State::LineStart };
    let mut chunk = [0; CHUNK];
    loop {
        match messages.read(&mut chunk) {
            Ok(0) => return filter.flush(true),
            Ok(length) => filter.take(&chunk[..length])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Part of the messages that the next byte belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// A line with nothing written yet.
    LineStart,
    /// The rest of a line that is written.
    Written,
    /// The warning, after this many lines.
    Warning(usize),
    /// The line after the warning.
    After,
}

struct Filter<W> {
    out: W,
    /// Bytes of the current line that are not written.
    line: Vec<u8>,
    state: State,
}

impl<W: Write> Filter<W> {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            self.line.push(*byte);
            if *byte == b'\n' {
                self.end_line()?;
            }
        }
        self.flush(false)
    }

    fn end_line(&mut self) -> io::Result<()> {
        let text = plain(&self.line);
        let is_dropped = match self.state {
            State::LineStart => text.starts_with(START),
            State::Written => false,
            State::Warning(_) => true,
            State::After => text.trim().is_empty(),
        };
        self.state = match self.state {
            State::LineStart if is_dropped => State::Warning(1),
            State::Warning(_) if text.contains(END) => State::After,
            State::Warning(lines @ ..MAX_LINES) => State::Warning(lines + 1),
            _ => State::LineStart,
        };
        if !is_dropped {
            self.out.write_all(&self.line)?;
        }
        self.line.clear();
        Ok(())
    }

    /// Writes an unfinished line, such as a progress bar, unless the warning may begin with it.
    fn flush(&mut self, is_end: bool) -> io::Result<()> {
        let is_shown = match self.state {
            State::Warning(_) => false,
            State::After | State::LineStart => is_end || !START.starts_with(plain(&self.line).trim_end()),
            State::Written => true,
        };
        if is_shown && !self.line.is_empty() {
            self.out.write_all(&self.line)?;
            self.line.clear();
            self.state = State::Written;
        }
        self.out.flush()
    }
}

/// Returns a line without the sequences that set colors.
fn plain(line: &[u8]) -> String {
    let (mut text, mut is_sequence) = (Vec::with_capacity(line.len()), false);
    for byte in line {
        match byte {
            &ESCAPE => is_sequence = true,
            byte if is_sequence => is_sequence = !byte.is_ascii_alphabetic(),
            byte => text.push(*byte),
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARNING: &str = "warning: path override for crate `toolcrib-guest` has altered the original list of\n\
        dependencies; the dependency on `toolcrib-guest-macro` was either added or\n\
        modified to not match the previously resolved version\n\n\
        This is currently allowed but is known to produce buggy behavior with spurious\n\n\
        https://doc.rust-lang.org/cargo/reference/overriding-dependencies.html\n\n";

    fn filtered(messages: &str) -> String {
        let mut all = Vec::new();
        copy(messages.as_bytes(), &mut all).unwrap();
        // In parts of any size the same is left out.
        for size in [1, 7] {
            let mut filter = Filter { out: Vec::new(), line: Vec::new(), state: State::LineStart };
            messages.as_bytes().chunks(size).for_each(|chunk| filter.take(chunk).unwrap());
            filter.flush(true).unwrap();
            assert_eq!(filter.out, all, "{size}");
        }
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn exactly_one_warning_is_left_out() {
        let other = WARNING.replace("toolcrib-guest`", "serde`");
        let colored = WARNING.replacen("warning:", "\u{1b}[1m\u{1b}[33mwarning\u{1b}[0m\u{1b}[1m:\u{1b}[0m", 1);
        let more = "   Compiling greet v0.1.0 (/tmp/greet)\n\u{1b}[K    Building [=> ] 1/2\rwarning: unused\nwarn";
        for (messages, left) in [
            (format!("{WARNING}{more}"), more.to_owned()),
            (format!("a\n\n{colored}{more}"), format!("a\n\n{more}")),
            (other.clone(), other),
            (format!("{more}\n{WARNING}"), format!("{more}\n")),
            (String::new(), String::new()),
        ] {
            assert_eq!(filtered(&messages), left);
        }
        let endless = format!("{}\n{}", WARNING.lines().next().unwrap(), "line\n".repeat(40));
        assert_eq!(filtered(&endless).matches("line\n").count(), 40 - MAX_LINES);
    }
}
