//! HTTP server on the loopback address: its paths have answers in an order, and it keeps the requests.

use std::io::{BufRead, BufReader, Result, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

/// Request as received.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Empty if there is none.
    pub(crate) query: String,
    /// Names in lower case, and values.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body, which must be JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Reads the next request; `None` if the client has closed the connection.
    fn read(stream: &mut impl BufRead) -> Result<Option<Self>> {
        let mut first = String::new();
        if stream.read_line(&mut first)? == 0 {
            return Ok(None);
        }
        let mut words = first.split(' ');
        let (method, target) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (path, query) = (path.to_owned(), query.to_owned());
        let mut request = Self { method, path, query, headers: Vec::new(), body: Vec::new() };
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else { break };
            request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        assert_eq!(request.header("transfer-encoding"), None, "a body with its length: {request:?}");
        let length = request.header("content-length").map_or(0, |length| length.parse().expect("a length"));
        request.body.resize(length, 0);
        stream.read_exact(&mut request.body)?;
        Ok(Some(request))
    }
}

/// Answer to a request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    delay: Duration,
}

impl Answer {
    /// An answer without a body.
    pub(crate) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), delay: Duration::ZERO }
    }

    pub(crate) fn json(self, body: impl std::borrow::Borrow<Value>) -> Self {
        self.raw(body.borrow().to_string(), "application/json")
    }

    pub(crate) fn text(self, body: impl Into<String>) -> Self {
        self.raw(body.into(), "text/plain")
    }

    /// A body of this media type.
    pub(crate) fn raw(mut self, body: impl Into<Vec<u8>>, kind: &str) -> Self {
        self.body = body.into();
        self.header("content-type", kind)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same answer after a delay.
    pub(crate) fn late(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    fn write(&self, stream: &mut TcpStream) -> Result<()> {
        thread::sleep(self.delay);
        let reason = StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason());
        let mut text = format!("HTTP/1.1 {} {}\r\n", self.status, reason.unwrap_or("Other"));
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        stream.write_all(&[text.as_bytes(), &self.body].concat())
    }
}

type Reply = Box<dyn FnMut(&Request) -> Answer + Send>;

/// State that the connections of a server share.
#[derive(Default)]
struct Shared {
    /// Replies by method and path.
    replies: Mutex<Vec<(&'static str, String, Reply)>>,
    received: Mutex<Vec<Request>>,
    over: AtomicBool,
}

impl Shared {
    fn answer(&self, request: &Request) -> Answer {
        let mut replies = self.replies.lock().expect("no reply panics");
        let is_meant =
            |(method, path, _): &&mut (&str, String, Reply)| request.method == *method && request.path == *path;
        replies.iter_mut().find(is_meant).map_or_else(|| Answer::new(404), |(.., reply)| reply(request))
    }

    fn serve(&self, mut stream: TcpStream) -> Result<()> {
        // An answer is one write, which should not wait for another.
        stream.set_nodelay(true)?;
        let mut requests = BufReader::new(stream.try_clone()?);
        while let Some(request) = Request::read(&mut requests)? {
            let answer = self.answer(&request);
            self.received.lock().expect("no panic").push(request);
            answer.write(&mut stream)?;
        }
        Ok(())
    }
}

/// Server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Server {
    /// Starts a server that answers each request with 404.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = Self { address: listener.local_addr().expect("an address"), shared: Arc::default() };
        let shared = server.shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.over.load(Ordering::SeqCst) {
                    return;
                }
                let shared = shared.clone();
                // The other side may leave at any time.
                thread::spawn(move || drop(shared.serve(stream)));
            }
        });
        server
    }

    /// Answers `POST` to a path with one answer after the other, and repeats the last.
    pub(crate) fn answers(self, path: &str, answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut left: Vec<Answer> = answers.into_iter().collect();
        self.replies(path, move |_| if left.len() > 1 { left.remove(0) } else { left[0].clone() })
    }

    /// Answers `POST` to a path.
    pub(crate) fn replies(self, path: &str, reply: impl FnMut(&Request) -> Answer + Send + 'static) -> Self {
        self.on("POST", path, reply)
    }

    /// Answers requests of a method to a path.
    pub(crate) fn on(
        self,
        method: &'static str,
        path: &str,
        reply: impl FnMut(&Request) -> Answer + Send + 'static,
    ) -> Self {
        self.shared.replies.lock().expect("no reply panics").push((method, path.to_owned(), Box::new(reply)));
        self
    }

    /// `http://127.0.0.1:PORT`
    pub(crate) fn uri(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub(crate) fn received(&self) -> Vec<Request> {
        self.shared.received.lock().expect("no panic").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}
