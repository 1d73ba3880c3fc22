//! Standard streams of a server. On Linux, pipes and sockets are awaited with everything else that the program awaits; terminals
//! and files, and all streams of other systems, by a thread for each, which adds its wake-ups to the time of every call.

use tokio::io::{AsyncRead, AsyncWrite, stdin, stdout};

/// Stream from the client.
pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;
/// Stream to the client.
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens the standard streams.
pub(super) fn open() -> (Input, Output) {
    #[cfg(target_os = "linux")]
    let (input, output) = (awaited::input(), awaited::output());
    #[cfg(not(target_os = "linux"))]
    let (input, output): (Option<Input>, Option<Output>) = (None, None);
    (input.unwrap_or_else(|| Box::new(stdin())), output.unwrap_or_else(|| Box::new(stdout())))
}

/// Waits until nobody can read standard output any more. On systems other than Linux, and for files, it waits forever.
pub(super) async fn reader_left() {
    #[cfg(target_os = "linux")]
    if let Some(output) = awaited::watched(std::io::stdout()) {
        return awaited::reader_left(output).await;
    }
    std::future::pending().await
}

/// Streams without a thread. Whether reads and writes block is a property of the open file, which other processes may share, so
/// it stays as it is: a pipe is opened anew, and a socket is asked not to block by each read and write.
#[cfg(target_os = "linux")]
mod awaited {
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use rustix::net::{RecvFlags, SendFlags, recv, send};
    use tokio::io::unix::AsyncFd;
    use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
    use tokio::net::unix::pipe;

    use super::{Input, Output};

    pub(super) fn input() -> Option<Input> {
        match pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
            Ok(pipe) => Some(Box::new(pipe)),
            Err(_) => Some(Box::new(Socket::new(io::stdin())?)),
        }
    }

    pub(super) fn output() -> Option<Output> {
        match pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
            Ok(pipe) => Some(Box::new(pipe)),
            Err(_) => Some(Box::new(Socket::new(io::stdout())?)),
        }
    }

    /// Registers an open file without reads or writes; `None` if the system cannot await it.
    pub(super) fn watched(stream: impl AsFd) -> Option<AsyncFd<OwnedFd>> {
        registered(stream.as_fd().try_clone_to_owned().ok()?, Interest::WRITABLE)
    }

    fn registered(own: OwnedFd, interest: Interest) -> Option<AsyncFd<OwnedFd>> {
        // SAFETY: the descriptor is owned, so it is the same open one until the registration has ended.
        #[expect(unsafe_code, reason = "registering a descriptor needs it")]
        let registered = unsafe { AsyncFd::register_with_interest(own, interest) };
        registered.ok()
    }

    /// Waits until the other end of a pipe or a socket is closed.
    pub(super) async fn reader_left(output: AsyncFd<OwnedFd>) {
        while let Ok(mut ready) = output.ready(Interest::WRITABLE).await {
            if ready.ready().is_write_closed() {
                return;
            }
            ready.clear_ready_matching(Ready::WRITABLE);
        }
        std::future::pending().await
    }

    /// Byte stream socket, such as the sockets that Node.js starts a program with.
    struct Socket(AsyncFd<OwnedFd>);

    impl Socket {
        fn new(stream: impl AsFd) -> Option<Self> {
            let is_stream =
                rustix::net::sockopt::socket_type(&stream).is_ok_and(|kind| kind == rustix::net::SocketType::STREAM);
            let own = is_stream.then(|| stream.as_fd().try_clone_to_owned().ok()).flatten()?;
            registered(own, Interest::READABLE | Interest::WRITABLE).map(Self)
        }
    }

    impl AsyncRead for Socket {
        fn poll_read(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            loop {
                let mut ready = ready!(self.0.poll_read_ready(context))?;
                let read = ready.try_io(|socket| {
                    let (read, _) = recv(socket, buffer.initialize_unfilled(), RecvFlags::DONTWAIT)?;
                    Ok(read)
                });
                match read {
                    Ok(read) => {
                        buffer.advance(read?);
                        return Poll::Ready(Ok(()));
                    }
                    Err(_would_block) => {}
                }
            }
        }
    }

    impl AsyncWrite for Socket {
        fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            loop {
                let mut ready = ready!(self.0.poll_write_ready(context))?;
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                if let Ok(written) = ready.try_io(|socket| Ok(send(socket, bytes, flags)?)) {
                    return Poll::Ready(written);
                }
            }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[cfg(test)]
    mod tests {
        use std::os::unix::net::UnixStream;

        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        use super::*;

        #[tokio::test]
        async fn a_socket_is_awaited_and_blocks_for_others_as_before() {
            let (own, client) = UnixStream::pair().unwrap();
            let (mut input, mut output) = (Socket::new(&own).unwrap(), Socket::new(&own).unwrap());
            let long = vec![b'x'; 4 << 20];
            let sent = long.clone();
            let reading = std::thread::spawn(move || {
                let mut all = vec![0; sent.len()];
                std::io::Read::read_exact(&mut &client, &mut all).unwrap();
                assert!(all == sent);
                std::io::Write::write_all(&mut &client, b"yes").unwrap();
            });
            output.write_all(&long).await.unwrap();
            let mut answer = Vec::new();
            input.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, b"yes", "up to the end of the client");
            reading.join().unwrap();
            let flags = rustix::fs::fcntl_getfl(&own).unwrap();
            assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
        }

        #[test]
        fn a_file_is_no_socket() {
            assert!(Socket::new(std::fs::File::open("/dev/null").unwrap()).is_none());
        }
    }
}
