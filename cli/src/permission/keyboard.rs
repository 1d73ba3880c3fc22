//! Lines that a person types from now on. What was typed before anybody was asked is dropped: it answers nothing.

use std::io::{self, BufRead};
use std::thread;

use tokio::sync::oneshot::{self, Receiver, error::TryRecvError};

/// The terminal that standard input is. It is read by threads of its own, and left as it is: Ctrl-C stays the system's.
#[derive(Debug, Default)]
pub(super) struct Keyboard {
    /// A read that has not ended. One whose question went away is waited for by the next.
    reading: Option<Receiver<Option<String>>>,
}

impl Keyboard {
    /// Drops what was typed so far.
    pub(super) fn forget(&mut self) {
        let ended = |reading: &mut Receiver<_>| !matches!(reading.try_recv(), Err(TryRecvError::Empty));
        if self.reading.as_mut().is_some_and(ended) {
            self.reading = None;
        }
        system::forget();
    }

    /// The next line; `None` where there is no more, because the person or the system has ended the input.
    pub(super) async fn line(&mut self) -> Option<String> {
        let line = self.reading.get_or_insert_with(read).await;
        self.reading = None;
        line.ok().flatten()
    }
}

fn read() -> Receiver<Option<String>> {
    let (typed, reading) = oneshot::channel();
    // Without a thread nothing is sent, which is the end of the input.
    let _ = thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
        let mut line = Vec::new();
        let read = io::stdin().lock().read_until(b'\n', &mut line);
        let some = read.is_ok_and(|bytes| bytes > 0);
        // Nobody may be waiting any more.
        let _ = typed.send(some.then(|| String::from_utf8_lossy(&line).trim().to_owned()));
    });
    reading
}

#[cfg(unix)]
mod system {
    use rustix::termios::{QueueSelector, tcflush};

    pub(super) fn forget() {
        // What is no terminal is not asked.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }
}

#[cfg(not(unix))]
mod system {
    /// Elsewhere a line that was typed ahead is the person's own risk.
    pub(super) fn forget() {}
}
