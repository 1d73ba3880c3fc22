//! Writing while a question stands on the terminal: what would run into it waits until it is answered.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What waits, in its order; `None` while no question stands.
type Waiting = Option<Vec<(Stream, Vec<u8>)>>;

static WAITING: Mutex<Waiting> = Mutex::new(None);

/// A standard stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stream {
    Out,
    Err,
}

/// Nothing else is written to the terminal until this is dropped.
#[derive(Debug)]
pub(crate) struct Hold(());

/// Keeps the terminal for a question.
pub(crate) fn hold() -> Hold {
    *waiting() = Some(Vec::new());
    Hold(())
}

impl Drop for Hold {
    fn drop(&mut self) {
        for (stream, text) in waiting().take().into_iter().flatten() {
            // It was told as written when it came.
            let _ = stream.write(&text);
        }
    }
}

impl Stream {
    /// Writes a text, or keeps it until the question is answered that stands on the same terminal.
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
