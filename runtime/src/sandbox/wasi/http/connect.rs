//! Connections to checked addresses, in the order of the lookup, and TLS with the requested name. The bytes before the
//! head of a response are bounded, because a server may send any number of provisional responses before it.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use std::{fmt, io};

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, crypto::ring};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

use crate::policy::Target;
use crate::tool::{Host, Scheme};

use crate::sandbox::usage::{RequestError, RequestPhase};

/// Maximum number of addresses per name that are tried.
const MAX_ADDRESSES: usize = 8;
/// Maximum duration of the lookup of a name, and of a handshake.
pub(super) const MAX_CONNECT: Duration = Duration::from_secs(10);

/// TLS configuration. It is created for the first request, because reading the system's roots takes time.
#[derive(Default)]
pub(super) struct Tls {
    /// Roots that are trusted in addition to the system's.
    roots: Vec<CertificateDer<'static>>,
    config: OnceCell<Arc<ClientConfig>>,
}

/// Plain or encrypted connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Tls {
    pub(super) fn new(roots: Vec<CertificateDer<'static>>) -> Self {
        Self { roots, config: OnceCell::new() }
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, RequestError> {
        let config = self.config.get_or_try_init(|| async {
            let roots = self.roots.clone();
            let config = tokio::task::spawn_blocking(move || configure(roots)).await;
            config
                .unwrap_or_else(|_| Err("TLS could not be set up".to_owned()))
                .map(Arc::new)
                .map_err(RequestError::Host)
        });
        config.await.cloned()
    }

    async fn handshake(
        &self,
        host: &Host,
        stream: TcpStream,
        timeout: Duration,
    ) -> Result<Box<dyn Stream>, RequestError> {
        let name = match host {
            Host::Name(name) => ServerName::try_from(name.clone()),
            Host::Address(address) => Ok(ServerName::from(*address)),
        };
        let name = name.map_err(|_| RequestError::Tls("its host is not a valid name for a certificate"))?;
        let connector = TlsConnector::from(self.config().await?);
        let handshake = tokio::time::timeout(timeout.min(MAX_CONNECT), connector.connect(name, stream)).await;
        let stream = handshake.map_err(|_| {
            RequestError::Slow(RequestPhase::Connection, "the server did not finish the TLS handshake in time")
        })?;
        let stream = stream.map_err(|error| {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            match inner {
                Some(rustls::Error::InvalidCertificate(_)) => {
                    RequestError::Untrusted("the server's certificate is not trusted for its name")
                }
                _ => RequestError::Tls("the TLS handshake failed"),
            }
        })?;
        Ok(Box::new(stream))
    }
}

fn configure(roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, String> {
    let words = |error: rustls::Error| format!("TLS could not be set up: {error}");
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(roots, provider.clone()).map_err(words)?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(words)?;
    // The verifier is the platform's own. The API calls setting any verifier `dangerous`.
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Connects to the first address that answers, within `longest` for all addresses, and within as long again for the TLS
/// handshake.
///
/// # Errors
///
/// [`RequestError::Connect`], [`RequestError::Unreachable`], [`RequestError::Tls`], [`RequestError::Untrusted`] and
/// [`RequestError::Slow`].
pub(super) async fn connect(
    tls: &Tls,
    target: &Target,
    addresses: &[IpAddr],
    timeout: Duration,
) -> Result<Box<dyn Stream>, RequestError> {
    let end = Instant::now() + timeout;
    let candidates = &addresses[..addresses.len().min(MAX_ADDRESSES)];
    let mut last = RequestError::Unreachable("its host has no address");
    for (at, address) in candidates.iter().enumerate() {
        // The remaining addresses share the remaining time, so that one that drops all packets cannot use it up.
        let share = end.saturating_duration_since(Instant::now()) / (candidates.len() - at) as u32;
        let connecting = TcpStream::connect(SocketAddr::new(*address, target.port));
        match tokio::time::timeout(share, connecting).await {
            Ok(Ok(stream)) => {
                // A request is written whole: waiting for more of it gains nothing.
                let _ = stream.set_nodelay(true);
                return match target.scheme {
                    Scheme::Http => Ok(Box::new(stream)),
                    Scheme::Https => tls.handshake(&target.host, stream, timeout).await,
                };
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                last = RequestError::Connect("the server refused the connection");
            }
            Ok(Err(_)) => last = RequestError::Unreachable("the server cannot be reached"),
            Err(_) => {
                last = RequestError::Slow(RequestPhase::Connection, "the server did not accept the connection in time")
            }
        }
    }
    Err(last)
}

/// Number of bytes that may still be received: few until the response head is complete, then enough for a framed
/// body.
#[derive(Debug, Clone)]
pub(super) struct ReadBudget(Arc<AtomicUsize>);

impl ReadBudget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Sets the number of bytes that may follow the head. The body's own limit counts its content, and frames could
    /// continue forever without any.
    pub(super) fn extend(&self, bytes: usize) {
        self.0.store(bytes, Relaxed);
    }

    fn take(&self, bytes: usize) -> io::Result<()> {
        let left = self.0.load(Relaxed);
        self.0.store(left.saturating_sub(bytes), Relaxed);
        if bytes > left { Err(io::Error::other(Overflow)) } else { Ok(()) }
    }
}

/// More bytes arrived than allowed.
#[derive(Debug)]
struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the response is larger than the limit")
    }
}

impl Error for Overflow {}

/// Returns `true` if a connection broke because more bytes arrived than allowed.
pub(super) fn overflowed(error: &hyper::Error) -> bool {
    let mut source = error.source();
    while let Some(inner) = source {
        // The inner error of an I/O error is not its source.
        let marked = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if marked.is_some_and(|marked| marked.is::<Overflow>()) {
            return true;
        }
        source = inner.source();
    }
    false
}

/// Stream that reads no more than its budget.
pub(super) struct BoundedStream {
    pub(super) stream: Box<dyn Stream>,
    pub(super) budget: ReadBudget,
}

impl AsyncRead for BoundedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        Poll::Ready(self.budget.take(buffer.filled().len() - before))
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
