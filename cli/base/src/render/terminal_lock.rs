//! Delays terminal output while a prompt is shown, until the prompt is answered.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Delayed output in order; `None` while no prompt is shown.
type Waiting = Option<Vec<(Stream, Vec<u8>)>>;

static WAITING: Mutex<Waiting> = Mutex::new(None);

/// A standard stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stream {
    Out,
    Err,
}

/// Delays all other terminal output until it is dropped.
#[derive(Debug)]
pub struct TerminalLock(());

/// Reserves the terminal for a prompt.
pub fn lock_terminal() -> TerminalLock {
    *waiting() = Some(Vec::new());
    TerminalLock(())
}

impl Drop for TerminalLock {
    fn drop(&mut self) {
        for (stream, text) in waiting().take().into_iter().flatten() {
            // Success was already reported when the text arrived.
            let _ = stream.write(&text);
        }
    }
}

impl Stream {
    /// Writes a text, or delays it while a prompt is shown on the same terminal.
    pub(super) fn put(self, text: &[u8]) -> io::Result<()> {
        let mut waiting = waiting();
        match &mut *waiting {
            Some(waiting) if self.is_terminal() => {
                waiting.push((self, text.to_vec()));
                Ok(())
            }
            _ => {
                drop(waiting);
                self.write(text)
            }
        }
    }

    fn is_terminal(self) -> bool {
        match self {
            Stream::Out => io::stdout().is_terminal(),
            Stream::Err => io::stderr().is_terminal(),
        }
    }

    fn write(self, text: &[u8]) -> io::Result<()> {
        let write = |out: &mut dyn Write| out.write_all(text).and_then(|()| out.flush());
        match self {
            Stream::Out => write(&mut io::stdout().lock()),
            Stream::Err => write(&mut io::stderr().lock()),
        }
    }
}

fn waiting() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}
