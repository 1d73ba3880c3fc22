//! Registry on loopback for the tests: honest by itself, with a twist for each request where a test wants one.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use toolcrib_registry::Digest;

/// Request as received.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: Vec<u8>,
}

/// Body of a response.
#[derive(Clone)]
pub(super) enum Body {
    Bytes(Vec<u8>),
    /// Bytes with another announced length, and then the end of the connection.
    Announced(u64, Vec<u8>),
    /// Bytes of a longer body, and then silence.
    Stalled(u64, Vec<u8>),
    /// Bytes in parts with pauses.
    Slow(Vec<u8>, usize, Duration),
    /// Zeros without end.
    Endless,
}

/// Response.
#[derive(Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Body,
}

impl Reply {
    pub(super) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Bytes(Vec::new()) }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    pub(super) fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    pub(super) fn bytes(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body(Body::Bytes(bytes.into()))
    }
}

/// Content of an honest registry.
#[derive(Default)]
pub(super) struct Content {
    pub(super) blobs: HashMap<String, Vec<u8>>,
    /// Media type and bytes by tag and by digest.
    pub(super) manifests: HashMap<String, (String, Vec<u8>)>,
    uploads: HashMap<usize, Vec<u8>>,
}

/// Changes the answer of an honest registry.
type Twist = dyn Fn(&Request, Reply) -> Reply + Send + Sync;

/// Running registry.
pub(crate) struct Registry {
    pub(super) address: SocketAddr,
    pub(super) content: Arc<Mutex<Content>>,
    requests: Arc<Mutex<Vec<Request>>>,
    twist: Arc<Mutex<Arc<Twist>>>,
}

impl Registry {
    /// Starts an honest registry.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let honest: Arc<Twist> = Arc::new(|_, reply| reply);
        let registry =
            Self { address, content: Arc::default(), requests: Arc::default(), twist: Arc::new(Mutex::new(honest)) };
        let (content, requests, twist) =
            (Arc::clone(&registry.content), Arc::clone(&registry.requests), Arc::clone(&registry.twist));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (content, requests, twist) = (Arc::clone(&content), Arc::clone(&requests), Arc::clone(&twist));
                thread::spawn(move || {
                    // The client may leave at any time.
                    let _ = serve(stream, &content, &requests, &twist);
                });
            }
        });
        registry
    }

    /// Changes the answers from now on.
    pub(super) fn twist(&self, twist: impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static) {
        *self.twist.lock().unwrap() = Arc::new(twist);
    }

    /// Reference below `team`.
    pub(crate) fn reference(&self, rest: &str) -> String {
        format!("oci://{}/team/{rest}", self.address)
    }

    /// Stops the answers: from now on every request fails.
    pub(crate) fn fail(&self) {
        self.twist(|_, _| Reply::new(500));
    }

    /// Lists no tags from now on.
    pub(crate) fn without_lists(&self) {
        self.twist(|request, reply| if request.path.ends_with("/tags/list") { Reply::new(404) } else { reply });
    }

    /// Takes the requests so far.
    pub(super) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

fn serve(
    stream: TcpStream,
    content: &Mutex<Content>,
    requests: &Mutex<Vec<Request>>,
    twist: &Mutex<Arc<Twist>>,
) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request = Request { method, path, query, headers, body };
    let reply = content.lock().unwrap().answer(&request);
    requests.lock().unwrap().push(request.clone());
    let twist = Arc::clone(&twist.lock().unwrap());
    send(&mut stream, &request, twist(&request, reply))
}

fn send(stream: &mut TcpStream, request: &Request, reply: Reply) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Test\r\nConnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = match &reply.body {
        Body::Bytes(bytes) | Body::Slow(bytes, ..) => Some(bytes.len() as u64),
        Body::Announced(length, _) | Body::Stalled(length, _) => Some(*length),
        Body::Endless => None,
    };
    if let Some(length) = length {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    if request.method == "HEAD" {
        return Ok(());
    }
    match reply.body {
        Body::Bytes(bytes) | Body::Announced(_, bytes) => stream.write_all(&bytes),
        Body::Stalled(_, bytes) => {
            stream.write_all(&bytes)?;
            // Until the client leaves.
            stream.read(&mut [0]).map(|_| ())
        }
        Body::Slow(bytes, part, pause) => {
            for part in bytes.chunks(part) {
                stream.write_all(part)?;
                thread::sleep(pause);
            }
            Ok(())
        }
        Body::Endless => loop {
            stream.write_all(&[0; 64 << 10])?;
        },
    }
}

impl Content {
    fn answer(&mut self, request: &Request) -> Reply {
        let rest = request.path.strip_prefix("/v2/").unwrap_or_default();
        if rest.is_empty() {
            return Reply::new(200);
        }
        if rest.ends_with("/tags/list") {
            let mut tags: Vec<_> = self.manifests.keys().filter(|name| !name.contains(':')).collect();
            tags.sort();
            return Reply::new(200).bytes(serde_json::json!({ "name": "team", "tags": tags }).to_string());
        }
        let place = ["/blobs/uploads/", "/blobs/", "/manifests/", "/referrers/"];
        let Some((kind, name)) = place.iter().find_map(|kind| rest.split_once(kind).map(|(_, name)| (*kind, name)))
        else {
            return Reply::new(404);
        };
        match (request.method.as_str(), kind) {
            ("GET" | "HEAD", "/blobs/") => self.blob(request, name),
            ("GET" | "HEAD", "/manifests/") => match self.manifests.get(name) {
                Some((media_type, bytes)) => Reply::new(200)
                    .header("Content-Type", media_type)
                    .header("Docker-Content-Digest", Digest::of(bytes))
                    .bytes(bytes.clone()),
                None => Reply::new(404),
            },
            ("PUT", "/manifests/") => {
                self.put_manifest(name, &request.headers["content-type"], &request.body);
                Reply::new(201).header("Docker-Content-Digest", Digest::of(&request.body))
            }
            (_, "/blobs/uploads/") => self.upload(request, name),
            _ => Reply::new(404),
        }
    }

    pub(super) fn put_manifest(&mut self, tag: &str, media_type: &str, bytes: &[u8]) {
        for name in [tag.to_owned(), Digest::of(bytes).to_string()] {
            self.manifests.insert(name, (media_type.to_owned(), bytes.to_vec()));
        }
    }

    fn blob(&self, request: &Request, name: &str) -> Reply {
        let Some(bytes) = self.blobs.get(name) else { return Reply::new(404) };
        let range = request.headers.get("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-'));
        match range.map(|start| start.parse::<usize>().unwrap()) {
            Some(start) => Reply::new(206)
                .header("Content-Range", format!("bytes {start}-{}/{}", bytes.len() - 1, bytes.len()))
                .bytes(&bytes[start..]),
            None => Reply::new(200).bytes(bytes.clone()),
        }
    }

    fn upload(&mut self, request: &Request, name: &str) -> Reply {
        let (path, next) = (&request.path, self.uploads.len());
        match request.method.as_str() {
            "POST" => {
                self.uploads.insert(next, Vec::new());
                Reply::new(202).header("Location", format!("{path}{next}"))
            }
            "PATCH" => {
                self.uploads.get_mut(&name.parse().unwrap()).unwrap().extend(&request.body);
                Reply::new(202).header("Location", path)
            }
            _ => {
                let mut bytes = self.uploads[&name.parse().unwrap()].clone();
                bytes.extend(&request.body);
                let digest = Digest::of(&bytes).to_string();
                if !request.query.replace("%3A", ":").ends_with(&digest) {
                    return Reply::new(400);
                }
                self.blobs.insert(digest, bytes);
                Reply::new(201)
            }
        }
    }
}
