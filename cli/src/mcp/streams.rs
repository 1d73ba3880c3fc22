//! Standard streams of a server. On Linux, pipes are awaited with everything else that the program awaits; terminals, files and
//! sockets, and all streams of other systems, by a thread for each, which adds its wake-ups to the time of every call.

use tokio::io::{AsyncRead, AsyncWrite, stdin, stdout};

/// Stream from the client.
pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;
/// Stream to the client.
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens the standard streams.
pub(super) fn open() -> (Input, Output) {
    (pipes::input().unwrap_or_else(|| Box::new(stdin())), pipes::output().unwrap_or_else(|| Box::new(stdout())))
}

#[cfg(target_os = "linux")]
mod pipes {
    use tokio::net::unix::pipe;

    use super::{Input, Output};

    // The pipe is opened anew: whether reads and writes wait is a property of the open file, which other processes may share.

    pub(super) fn input() -> Option<Input> {
        Some(Box::new(pipe::OpenOptions::new().open_receiver("/proc/self/fd/0").ok()?))
    }

    pub(super) fn output() -> Option<Output> {
        Some(Box::new(pipe::OpenOptions::new().open_sender("/proc/self/fd/1").ok()?))
    }
}

#[cfg(not(target_os = "linux"))]
mod pipes {
    use super::{Input, Output};

    pub(super) fn input() -> Option<Input> {
        None
    }

    pub(super) fn output() -> Option<Output> {
        None
    }
}
