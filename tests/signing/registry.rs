//! Registry in memory for `oci://127.0.0.1:PORT/team/tools`, with or without the referrers API, and with room for lies.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use toolcrib_bundle::{Bundle, Digest};

pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const SIGNATURE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// Content of a registry.
#[derive(Default)]
pub(super) struct Content {
    pub(super) blobs: HashMap<String, Vec<u8>>,
    /// Media type and bytes by tag and by digest.
    pub(super) manifests: BTreeMap<String, (String, Vec<u8>)>,
    /// Entries that are listed as referrers before the true ones.
    pub(super) listed: Vec<Value>,
    /// Number of requests.
    pub(super) requests: usize,
}

/// Running registry.
pub(super) struct Registry {
    pub(super) host: String,
    pub(super) content: Arc<Mutex<Content>>,
}

impl Registry {
    pub(super) fn start(has_referrers: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let content = Arc::new(Mutex::new(Content::default()));
        let shared = Arc::clone(&content);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // The client may leave at any time.
                thread::spawn(move || serve(stream, &shared, has_referrers).ok());
            }
        });
        Self { host, content }
    }

    /// Reference to a tag or, with `@` before it, to a digest.
    pub(super) fn reference(&self, version: &str) -> String {
        let separator = if version.starts_with('@') { "" } else { ":" };
        format!("oci://{}/team/tools{separator}{version}", self.host)
    }

    /// Stores the manifest of a bundle under the tag `1`, and returns its descriptor.
    pub(super) fn publish(&self, tar: &std::path::Path) -> Value {
        let bundle = Bundle::open(std::fs::File::open(tar).unwrap()).unwrap();
        self.put("1", bundle.manifest_bytes());
        json!({ "mediaType": MANIFEST, "digest": bundle.digest(), "size": bundle.manifest_bytes().len() })
    }

    /// Stores a manifest under a tag and its digest.
    pub(super) fn put(&self, tag: &str, manifest: &[u8]) {
        self.content.lock().unwrap().put(tag, MANIFEST, manifest);
    }

    /// Attaches one layer to a subject, and returns the digest of the manifest.
    pub(super) fn attach(&self, subject: &Value, media_type: &str, layer: &[u8]) -> String {
        let mut content = self.content.lock().unwrap();
        let blob = content.blob(layer);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": media_type,
            "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": Digest::of(b"{}"), "size": 2 },
            "layers": [{ "mediaType": media_type, "digest": blob, "size": layer.len() }],
            "subject": subject,
        });
        let manifest = manifest.to_string();
        let digest = Digest::of(manifest.as_bytes()).to_string();
        content.put(&digest, MANIFEST, manifest.as_bytes());
        digest
    }
}

impl Content {
    fn put(&mut self, name: &str, media_type: &str, bytes: &[u8]) {
        for name in [name.to_owned(), Digest::of(bytes).to_string()] {
            self.manifests.insert(name, (media_type.to_owned(), bytes.to_vec()));
        }
    }

    fn blob(&mut self, bytes: &[u8]) -> String {
        let digest = Digest::of(bytes).to_string();
        self.blobs.insert(digest.clone(), bytes.to_vec());
        digest
    }

    /// Answers a request: status, headers and body.
    fn answer(&mut self, request: &Request, has_referrers: bool) -> (u16, String, Vec<u8>) {
        self.requests += 1;
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let rest = path.strip_prefix("/v2/team/tools/").unwrap_or_default();
        let (kind, name) = rest.split_once('/').unwrap_or((rest, ""));
        let none = (404, String::new(), Vec::new());
        match (request.method.as_str(), kind) {
            ("GET" | "HEAD", "blobs") => match self.blobs.get(name) {
                Some(bytes) => (200, String::new(), bytes.clone()),
                None => none,
            },
            ("POST", "blobs") => (202, "Location: /v2/team/tools/blobs/uploads/1\r\n".to_owned(), Vec::new()),
            ("PUT", "blobs") => {
                let digest = self.blob(&request.body);
                assert!(query.contains(&digest.replace(':', "%3A")) || query.contains(&digest), "{query}");
                (201, String::new(), Vec::new())
            }
            ("GET" | "HEAD", "manifests") => match self.manifests.get(name) {
                Some((media_type, bytes)) => (200, format!("Content-Type: {media_type}\r\n"), bytes.clone()),
                None => none,
            },
            ("PUT", "manifests") => {
                let value: Value = serde_json::from_slice(&request.body).unwrap();
                let media_type = value["mediaType"].as_str().unwrap().to_owned();
                self.put(name, &media_type, &request.body);
                match value["subject"]["digest"].as_str().filter(|_| has_referrers) {
                    Some(subject) => (201, format!("OCI-Subject: {subject}\r\n"), Vec::new()),
                    None => (201, String::new(), Vec::new()),
                }
            }
            ("GET", "referrers") if has_referrers => {
                let entries: Vec<Value> = self.listed.iter().cloned().chain(self.referrers(name)).collect();
                let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": entries });
                (200, format!("Content-Type: {INDEX}\r\n"), index.to_string().into_bytes())
            }
            _ => none,
        }
    }

    fn referrers(&self, subject: &str) -> Vec<Value> {
        let manifests = self.manifests.iter().filter(|(name, _)| name.contains(':'));
        let entries = manifests.filter_map(|(digest, (media_type, bytes))| {
            let value: Value = serde_json::from_slice(bytes).ok()?;
            let entry = json!({ "mediaType": media_type, "digest": digest, "size": bytes.len(), "artifactType": value["artifactType"] });
            (value["subject"]["digest"] == subject).then_some(entry)
        });
        entries.collect()
    }
}

/// Request as received.
struct Request {
    method: String,
    target: String,
    body: Vec<u8>,
}

fn serve(stream: TcpStream, content: &Mutex<Content>, has_referrers: bool) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut first = line.split(' ').map(str::to_owned);
    let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? <= 2 {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request = Request { method, target, body };
    let (status, headers, body) = content.lock().unwrap().answer(&request, has_referrers);
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status} Test\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len())?;
    if request.method != "HEAD" {
        stream.write_all(&body)?;
    }
    stream.flush()
}
