//! Servers on the loopback address with scripted responses, valid or not. They count connections, and end with the
//! test, or half a minute after a connection began.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Maximum duration of a connection.
const MAX_TIME: Duration = Duration::from_secs(30);
/// Pause between two bytes of a trickle.
const PAUSE: Duration = Duration::from_millis(100);

/// Observations of a server.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    open: AtomicUsize,
    max_open: AtomicUsize,
    sent: AtomicU64,
    heads: Mutex<Vec<String>>,
    over: AtomicBool,
}

/// Server that runs until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
}

impl Server {
    /// Serves plain HTTP: reads the head of each request, and leaves the rest to `serve`.
    pub(crate) fn http(serve: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::raw(move |peer| {
            peer.hear()?;
            serve(peer)
        })
    }

    /// The same within TLS.
    pub(crate) fn https(
        config: Arc<ServerConfig>,
        serve: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::begin(move |socket, seen| {
            let connection = ServerConnection::new(config.clone()).expect("a configuration of TLS");
            let mut peer = Peer::new(Box::new(StreamOwned::new(connection, socket)), seen);
            peer.hear()?;
            serve(&mut peer)
        })
    }

    /// Answers every request with this text and status 200.
    pub(crate) fn plain(text: &'static str) -> Self {
        Self::http(move |peer| peer.answer(text))
    }

    /// Redirects every request.
    pub(crate) fn redirect(to: impl Into<String>) -> Self {
        let to = to.into();
        Self::http(move |peer| {
            peer.say(format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"))
        })
    }

    /// Sends these bytes to every connection, and closes it.
    pub(crate) fn says(text: impl Into<Vec<u8>>) -> Self {
        let text = text.into();
        Self::http(move |peer| peer.say(&text))
    }

    /// Passes each connection to `serve` without reading.
    pub(crate) fn raw(serve: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::begin(move |socket, seen| serve(&mut Peer::new(Box::new(socket), seen)))
    }

    /// The same as [`Server::plain`] at another address and a port that may be taken.
    pub(crate) fn plain_at(address: Ipv4Addr, port: u16, text: &'static str) -> Option<Self> {
        let listener = TcpListener::bind((address, port)).ok()?;
        Some(Self::on(listener, move |socket, seen| {
            let mut peer = Peer::new(Box::new(socket), seen);
            peer.hear()?;
            peer.answer(text)
        }))
    }

    fn begin(serve: impl Fn(TcpStream, Arc<Seen>) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of the loopback address"), serve)
    }

    fn on(
        listener: TcpListener,
        serve: impl Fn(TcpStream, Arc<Seen>) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let server = Self { address: listener.local_addr().expect("an address"), seen: Arc::default() };
        let (seen, serve) = (server.seen.clone(), Arc::new(serve));
        thread::spawn(move || {
            for socket in listener.incoming() {
                if seen.over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(socket) = socket else { continue };
                seen.connections.fetch_add(1, Ordering::SeqCst);
                let open = seen.open.fetch_add(1, Ordering::SeqCst) + 1;
                seen.max_open.fetch_max(open, Ordering::SeqCst);
                let _ = socket.set_read_timeout(Some(PAUSE));
                let _ = socket.set_write_timeout(Some(MAX_TIME));
                let (seen, serve) = (seen.clone(), serve.clone());
                thread::spawn(move || {
                    // An error here means that the other side closed the connection, as it may.
                    let _ = serve(socket, seen.clone());
                    seen.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        server
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// `127.0.0.1:PORT`
    pub(crate) fn authority(&self) -> String {
        self.address.to_string()
    }

    /// `http://127.0.0.1:PORT/`
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// Maximum number of connections that were open at once.
    pub(crate) fn max_open(&self) -> usize {
        self.seen.max_open.load(Ordering::SeqCst)
    }

    /// Number of bytes that it could send.
    pub(crate) fn sent(&self) -> u64 {
        self.seen.sent.load(Ordering::SeqCst)
    }

    /// Heads of the requests, unchanged.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().unwrap().clone()
    }

    /// Waits until every connection is closed by the other side or served.
    pub(crate) fn is_left_alone(&self) -> bool {
        let begun = Instant::now();
        while self.seen.open.load(Ordering::SeqCst) > 0 {
            if begun.elapsed() > Duration::from_secs(10) {
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
        true
    }

    /// Waits until this many connections were made.
    pub(crate) fn is_asked(&self, times: usize) -> bool {
        let begun = Instant::now();
        while self.connections() < times {
            if begun.elapsed() > Duration::from_secs(20) {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.seen.over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// One connection, on the server's side.
pub(crate) struct Peer {
    stream: Box<dyn Stream>,
    seen: Arc<Seen>,
    begun: Instant,
    /// Head of the request, if it was read.
    pub(crate) head: String,
}

impl Peer {
    fn new(stream: Box<dyn Stream>, seen: Arc<Seen>) -> Self {
        Self { stream, seen, begun: Instant::now(), head: String::new() }
    }

    fn is_over(&self) -> bool {
        self.seen.over.load(Ordering::SeqCst) || self.begun.elapsed() > MAX_TIME
    }

    /// Waits until this many connections were open at once.
    pub(crate) fn until_open(&self, connections: usize) -> io::Result<()> {
        while self.seen.max_open.load(Ordering::SeqCst) < connections {
            if self.is_over() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Reads up to the end of the request's head.
    fn hear(&mut self) -> io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") && head.len() < 1 << 20 {
            let mut byte = [0];
            match self.stream.read(&mut byte) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => head.push(byte[0]),
                Err(error) if is_pause(&error) && !self.is_over() => {}
                Err(error) => return Err(error),
            }
        }
        self.head = String::from_utf8_lossy(&head).into_owned();
        self.seen.heads.lock().unwrap().push(self.head.clone());
        Ok(())
    }

    /// Reads the body of the request: by its length, or in chunks without their frames.
    pub(crate) fn rest(&mut self) -> io::Result<String> {
        let head = self.head.to_lowercase();
        let length =
            head.split("\r\ncontent-length: ").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
        if let Some(length) = length {
            return self.take(length);
        }
        let mut text = String::new();
        while head.contains("\r\ntransfer-encoding: chunked\r\n") {
            let mut size = String::new();
            while !size.ends_with("\r\n") {
                size += &self.take(1)?;
            }
            let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            text += &self.take(size)?;
            self.take(2)?;
            if size == 0 {
                break;
            }
        }
        Ok(text)
    }

    fn take(&mut self, length: usize) -> io::Result<String> {
        let (mut bytes, mut done) = (vec![0; length], 0);
        while done < length {
            match self.stream.read(&mut bytes[done..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => done += more,
                Err(error) if is_pause(&error) && !self.is_over() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Sends a complete response with this text.
    pub(crate) fn answer(&mut self, text: &str) -> io::Result<()> {
        let length = text.len();
        self.say(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"))
    }

    pub(crate) fn say(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())?;
        self.stream.flush()?;
        self.seen.sent.fetch_add(bytes.as_ref().len() as u64, Ordering::SeqCst);
        Ok(())
    }

    /// Sends these bytes one by one, each after a pause, repeatedly.
    pub(crate) fn trickle(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes.iter().cycle() {
            if self.is_over() {
                return Ok(());
            }
            self.say([*byte])?;
            thread::sleep(PAUSE);
        }
        self.wait()
    }

    /// Sends these bytes as long as the other side accepts them.
    pub(crate) fn flood(&mut self, bytes: &[u8]) -> io::Result<()> {
        while !self.is_over() {
            self.say(bytes)?;
        }
        Ok(())
    }

    /// Neither sends nor reads anything, for as long as a connection is served.
    pub(crate) fn idle(&mut self) -> io::Result<()> {
        while !self.is_over() {
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Sends nothing more until the other side closes the connection.
    pub(crate) fn wait(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        while !self.is_over() {
            match self.stream.read(&mut bytes) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
