//! A line that a person types without seeing it. The terminal is put back as it was however the program ends: `main` asks
//! for that last.

use std::io::{self, Write};

use zeroize::Zeroizing;

pub(crate) use system::restore;

use system::hidden_line;

/// Reads a line on the terminal without showing it; `None` where the person ends the input instead.
///
/// # Errors
///
/// Where the terminal would show it.
pub(crate) fn ask(question: &str) -> io::Result<Option<Zeroizing<String>>> {
    let show = |text: &str| io::stderr().write_all(text.as_bytes());
    // Whoever is quick types as soon as they see the question: by then nothing may be shown any more.
    let line = hidden_line(|| show(question))?;
    // The line break that was typed was not shown either.
    show("\n")?;
    Ok(line)
}

#[cfg(unix)]
mod system {
    use std::io::{self, BufRead};
    use std::sync::{Mutex, PoisonError};

    use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
    use zeroize::Zeroizing;

    /// The longest line that is read.
    const MAX_LEN: usize = 8192;

    /// How the terminal was, while it is otherwise.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    /// A line that is not shown; `ask` is called when the terminal shows nothing any more.
    pub(super) fn hidden_line(ask: impl FnOnce() -> io::Result<()>) -> io::Result<Option<Zeroizing<String>>> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        // What was typed before it was hidden is dropped: it was seen.
        let quiet = tcsetattr(&stdin, OptionalActions::Flush, &hidden).and_then(|()| tcgetattr(&stdin));
        let read = match quiet {
            Ok(now) if !now.local_modes.contains(LocalModes::ECHO) => ask().and_then(|()| line(&stdin)),
            Ok(_) => Err(io::Error::other("this terminal shows what is typed")),
            Err(error) => Err(error.into()),
        };
        restore();
        read
    }

    fn line(stdin: &io::Stdin) -> io::Result<Option<Zeroizing<String>>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_LEN));
        let mut input = stdin.lock();
        loop {
            let part = input.fill_buf()?;
            let end = part.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(part.len(), |end| end + 1);
            if bytes.len() + taken > MAX_LEN {
                return Err(io::Error::other("the line is too long"));
            }
            bytes.extend_from_slice(&part[..taken]);
            input.consume(taken);
            if end.is_some() || taken == 0 {
                break;
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| io::Error::other("the line is not UTF-8"))?;
        Ok(Some(Zeroizing::new(text.trim_end_matches(['\n', '\r']).to_owned())))
    }

    /// Puts the terminal back as it was.
    pub(crate) fn restore() {
        if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // What is no terminal any more needs nothing.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
            let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;

    use zeroize::Zeroizing;

    pub(super) fn hidden_line(_: impl FnOnce() -> io::Result<()>) -> io::Result<Option<Zeroizing<String>>> {
        Err(io::Error::other("this terminal shows what is typed: pipe the value in instead"))
    }

    /// Nothing was changed.
    pub(crate) fn restore() {}
}
