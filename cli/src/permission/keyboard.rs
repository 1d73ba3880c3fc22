//! Reads lines from the terminal. Input typed before a prompt was shown is discarded and never answers it.

use std::io::{self, BufRead};
use std::thread;

use tokio::sync::oneshot::{self, Receiver, error::TryRecvError};

/// Standard input as a terminal. It is read on separate threads, and its mode is not changed: Ctrl-C keeps its effect.
#[derive(Debug, Default)]
pub(super) struct Keyboard {
    /// A pending read. If its prompt was dropped, the next prompt awaits it.
    reading: Option<Receiver<Option<String>>>,
}

impl Keyboard {
    /// Discards all input typed so far.
    pub(super) fn discard(&mut self) {
        let ended = |reading: &mut Receiver<_>| !matches!(reading.try_recv(), Err(TryRecvError::Empty));
        if self.reading.as_mut().is_some_and(ended) {
            self.reading = None;
        }
        system::discard();
    }

    /// Reads the next line; `None` at the end of input.
    pub(super) async fn line(&mut self) -> Option<String> {
        let line = self.reading.get_or_insert_with(read).await;
        self.reading = None;
        line.ok().flatten()
    }
}

fn read() -> Receiver<Option<String>> {
    let (typed, reading) = oneshot::channel();
    // Without a thread nothing is sent, which reads as the end of input.
    let _ = thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
        let mut line = Vec::new();
        let read = io::stdin().lock().read_until(b'\n', &mut line);
        let some = read.is_ok_and(|bytes| bytes > 0);
        // The prompt may be gone.
        let _ = typed.send(some.then(|| String::from_utf8_lossy(&line).trim().to_owned()));
    });
    reading
}

#[cfg(unix)]
mod system {
    use rustix::termios::{QueueSelector, tcflush};

    pub(super) fn discard() {
        // Fails only if standard input is not a terminal, and then there is no prompt.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }
}

#[cfg(not(unix))]
mod system {
    /// Not supported: a line typed ahead answers the prompt.
    pub(super) fn discard() {}
}
