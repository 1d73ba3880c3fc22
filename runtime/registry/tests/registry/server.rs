//! Loopback HTTP server, written by hand so that it can break every rule.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::certificates;

/// Request as received.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Version of HTTP as written.
    pub(crate) version: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        url::form_urlencoded::parse(self.query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into())
    }
}

/// Body of a response.
pub(crate) enum Body {
    Bytes(Vec<u8>),
    /// Bytes without a `Content-Length`, ended by closing the connection.
    Unannounced(Vec<u8>),
    /// Bytes, and then silence with an open connection.
    ThenSilence(Vec<u8>),
    /// Zeros without end.
    Endless,
    /// One byte at a time.
    Trickle(Duration),
    /// No response at all.
    Silence,
}

/// Response.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
}

impl Reply {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Bytes(Vec::new()) }
    }

    pub(crate) fn header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    pub(crate) fn bytes(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body(Body::Bytes(bytes.into()))
    }

    pub(crate) fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }
}

/// Running server. Every request is recorded.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (handler, log) = (Arc::new(handler), Arc::clone(&requests));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (handler, log) = (Arc::clone(&handler), Arc::clone(&log));
                tokio::spawn(async move {
                    // The client may leave at any time.
                    let _ = serve(stream, &*handler, &log).await;
                });
            }
        });
        Self { address, requests, task }
    }

    /// Starts a server with TLS for `localhost`. Returns its certificate in DER form as well.
    pub(crate) async fn start_tls(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Self, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (certificate, key) = certificates::self_signed("localhost");
        let key = rustls::pki_types::PrivateKeyDer::Pkcs8(key.pkcs8().to_vec().into());
        let mut config =
            rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![certificate.clone().into()], key)
                .unwrap();
        // As most registries: a client that offered HTTP/2 would get it.
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (handler, log) = (Arc::new(handler), Arc::clone(&requests));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (handler, log, acceptor) = (Arc::clone(&handler), Arc::clone(&log), acceptor.clone());
                tokio::spawn(async move {
                    // A client that does not trust the certificate leaves during the handshake.
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let _ = serve(stream, &*handler, &log).await;
                });
            }
        });
        (Self { address, requests, task }, certificate)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests().iter().filter(|request| request.method == method).count()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// URL of a server with TLS.
    pub(crate) fn secure_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    handler: &(dyn Fn(&Request) -> Reply + Send + Sync),
    log: &Mutex<Vec<Request>>,
) -> std::io::Result<()> {
    let mut received = Vec::new();
    let end = loop {
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut received).await? == 0 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let version = first.next().unwrap_or_default().to_owned();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, v)| v.parse().unwrap());
    let mut body = received.split_off(end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Ok(());
        }
    }
    let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
    let request = Request { version, method: method.clone(), path, query, headers, body };
    log.lock().unwrap().push(request.clone());
    let reply = handler(&request);
    if matches!(reply.body, Body::Silence) {
        std::future::pending::<()>().await;
    }
    let mut text = format!("HTTP/1.1 {} Test\r\nConnection: close\r\n", reply.status);
    let announced = reply.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    for (name, value) in &reply.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if let (Body::Bytes(bytes), false) = (&reply.body, announced) {
        text.push_str(&format!("Content-Length: {}\r\n", bytes.len()));
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes()).await?;
    if method == "HEAD" {
        return stream.shutdown().await;
    }
    match reply.body {
        Body::Bytes(bytes) | Body::Unannounced(bytes) => stream.write_all(&bytes).await?,
        Body::ThenSilence(bytes) => {
            stream.write_all(&bytes).await?;
            std::future::pending::<()>().await;
        }
        Body::Endless => loop {
            stream.write_all(&[0; 64 << 10]).await?;
        },
        Body::Trickle(pause) => loop {
            stream.write_all(b"x").await?;
            tokio::time::sleep(pause).await;
        },
        Body::Silence => {}
    }
    stream.shutdown().await
}
