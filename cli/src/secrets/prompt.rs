//! Prompt for a line of input that the terminal does not echo. `main` restores the terminal when the program ends.

use std::io::{self, Write};

use zeroize::Zeroizing;

pub(crate) use system::restore;

use system::hidden_line;

/// Reads a line from the terminal without echo; `None` at the end of input.
///
/// # Errors
///
/// If the echo of the terminal cannot be turned off.
pub(crate) fn ask(prompt: &str) -> io::Result<Option<Zeroizing<String>>> {
    let show = |text: &str| io::stderr().write_all(text.as_bytes());
    // The prompt appears once the echo is off, because a user may type as soon as it is visible.
    let line = hidden_line(|| show(prompt))?;
    // The line break that was typed had no echo either.
    show("\n")?;
    Ok(line)
}

#[cfg(unix)]
mod system {
    use std::io::{self, BufRead};
    use std::sync::{Mutex, PoisonError};

    use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
    use zeroize::Zeroizing;

    /// Maximum length of a line.
    const MAX_LEN: usize = 8192;

    /// Settings of the terminal to be restored, while the echo is off.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    /// Reads a line without echo; `ask` is called once the echo is off.
    pub(super) fn hidden_line(ask: impl FnOnce() -> io::Result<()>) -> io::Result<Option<Zeroizing<String>>> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        // Input typed before is discarded, because it was visible.
        let changed = tcsetattr(&stdin, OptionalActions::Flush, &hidden).and_then(|()| tcgetattr(&stdin));
        let read = match changed {
            Ok(now) if !now.local_modes.contains(LocalModes::ECHO) => ask().and_then(|()| line(&stdin)),
            Ok(_) => Err(io::Error::other("cannot turn off the echo of this terminal")),
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

    /// Restores the settings of the terminal.
    pub(crate) fn restore() {
        if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Fails if standard input is no longer a terminal.
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
        Err(io::Error::other("cannot turn off the echo of this terminal; pipe the value instead"))
    }

    /// Does nothing, because no setting was changed.
    pub(crate) fn restore() {}
}
