//! Prompt for a line of input that the terminal does not echo. `main` restores the terminal when the program ends.

use std::io::{self, BufRead, Write};
use std::sync::{Mutex, PoisonError};

use zeroize::Zeroizing;

/// Maximum length of a line.
const MAX_LEN: usize = 8192;

/// Settings of the terminal to be restored, while the echo is off.
static BEFORE: Mutex<Option<system::Settings>> = Mutex::new(None);

/// Reads a line from the terminal without echo; `None` at the end of input.
///
/// # Errors
///
/// If the echo of the terminal cannot be turned off.
pub fn ask(prompt: &str) -> io::Result<Option<Zeroizing<String>>> {
    let show = |text: &str| io::stderr().write_all(text.as_bytes());
    // The prompt appears once the echo is off, because a user may type as soon as it is visible.
    let line = hidden_line(|| show(prompt))?;
    // The line break that was typed had no echo either.
    show("\n")?;
    Ok(line)
}

/// Reads a line without echo; `ask` is called once the echo is off.
fn hidden_line(ask: impl FnOnce() -> io::Result<()>) -> io::Result<Option<Zeroizing<String>>> {
    let stdin = io::stdin();
    let before = system::settings(&stdin)?;
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before.clone());
    let read = match system::hide(&stdin, &before) {
        Ok(true) => ask().and_then(|()| line(&stdin)),
        Ok(false) => Err(io::Error::other("cannot turn off the echo of this terminal")),
        Err(error) => Err(error),
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
pub fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        system::restore(&io::stdin(), &before);
    }
}

#[cfg(unix)]
mod system {
    use std::io;

    use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};

    pub(super) type Settings = Termios;

    pub(super) fn settings(stdin: &io::Stdin) -> io::Result<Settings> {
        Ok(tcgetattr(stdin)?)
    }

    /// Turns off the echo, and discards input typed before, because it was visible. `false` if the echo stays.
    pub(super) fn hide(stdin: &io::Stdin, before: &Settings) -> io::Result<bool> {
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        tcsetattr(stdin, OptionalActions::Flush, &hidden)?;
        Ok(!tcgetattr(stdin)?.local_modes.contains(LocalModes::ECHO))
    }

    pub(super) fn restore(stdin: &io::Stdin, before: &Settings) {
        // Fails if standard input is no longer a terminal.
        let _ = tcsetattr(stdin, OptionalActions::Now, before);
        let _ = tcflush(stdin, QueueSelector::IFlush);
    }
}

#[cfg(windows)]
mod system {
    use std::io;
    use std::os::windows::io::AsHandle;

    use toolcrib_base::windows::console::{self, Mode};

    pub(super) type Settings = Mode;

    pub(super) fn settings(stdin: &io::Stdin) -> io::Result<Settings> {
        let no_console = |error| io::Error::other(format!("this terminal is not a Windows console: {error}"));
        console::mode(stdin.as_handle()).map_err(no_console)
    }

    /// Turns off the echo, and discards input typed before, because it was visible. `false` if the echo stays.
    pub(super) fn hide(stdin: &io::Stdin, before: &Settings) -> io::Result<bool> {
        let console = stdin.as_handle();
        console::set_mode(console, before.without_echo())?;
        console::discard_input(console)?;
        Ok(!console::mode(console)?.has_echo())
    }

    pub(super) fn restore(stdin: &io::Stdin, before: &Settings) {
        // Fails if standard input is no longer a console.
        let _ = console::set_mode(stdin.as_handle(), *before);
        let _ = console::discard_input(stdin.as_handle());
    }
}
