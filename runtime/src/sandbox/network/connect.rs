//! A connection to addresses that were checked, in the order in which they were found, and TLS on it with the name that
//! was asked for. What comes in before the head of a response is bounded here: a far side may put any number of
//! provisional responses before it.

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

use super::fault::{Fault, Phase};

/// The most addresses of one name that are tried.
const MAX_TRIED: usize = 8;
/// The longest that a handshake may take.
pub(super) const MAX_HANDSHAKE: Duration = Duration::from_secs(10);

/// What TLS is spoken with; made when the first request needs it, for reading the system's roots takes a while.
#[derive(Default)]
pub(super) struct Tls {
    /// Roots that are trusted beside the system's.
    roots: Vec<CertificateDer<'static>>,
    config: OnceCell<Arc<ClientConfig>>,
}

/// A connection, in the clear or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Tls {
    pub(super) fn new(roots: Vec<CertificateDer<'static>>) -> Self {
        Self { roots, config: OnceCell::new() }
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, Fault> {
        let made = self.config.get_or_try_init(|| async {
            let roots = self.roots.clone();
            let made = tokio::task::spawn_blocking(move || configure(roots)).await;
            made.unwrap_or_else(|_| Err("TLS could not be set up".to_owned())).map(Arc::new).map_err(Fault::Host)
        });
        made.await.cloned()
    }

    async fn shake_hands(&self, host: &Host, stream: TcpStream, longest: Duration) -> Result<Box<dyn Stream>, Fault> {
        let name = match host {
            Host::Name(name) => ServerName::try_from(name.clone()),
            Host::Address(address) => Ok(ServerName::from(*address)),
        };
        let name = name.map_err(|_| Fault::Tls("no certificate can be for such a host"))?;
        let connector = TlsConnector::from(self.config().await?);
        let shaken = tokio::time::timeout(longest.min(MAX_HANDSHAKE), connector.connect(name, stream)).await;
        let stream = shaken
            .map_err(|_| Fault::Slow(Phase::Connection, "the server did not finish the TLS handshake in time"))?;
        let stream = stream.map_err(|error| {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            match inner {
                Some(rustls::Error::InvalidCertificate(_)) => {
                    Fault::Untrusted("the server's certificate is not trusted for its name")
                }
                _ => Fault::Tls("the TLS handshake failed"),
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
    // The verifier is the platform's own; `dangerous` is the name of the way to set one.
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// A stream to the first of the addresses that answers, within `longest` for all of them together, and within as long
/// again for TLS on it.
///
/// # Errors
///
/// [`Fault::Connect`], [`Fault::Unreachable`], [`Fault::Tls`], [`Fault::Untrusted`] and [`Fault::Slow`].
pub(super) async fn connect(
    tls: &Tls,
    target: &Target,
    addresses: &[IpAddr],
    longest: Duration,
) -> Result<Box<dyn Stream>, Fault> {
    let end = Instant::now() + longest;
    let tried = &addresses[..addresses.len().min(MAX_TRIED)];
    let mut fault = Fault::Unreachable("its host has no address");
    for (at, address) in tried.iter().enumerate() {
        // Those that are left share the time that is left: an address that drops everything must not use it up.
        let share = end.saturating_duration_since(Instant::now()) / (tried.len() - at) as u32;
        let connecting = TcpStream::connect(SocketAddr::new(*address, target.port));
        match tokio::time::timeout(share, connecting).await {
            Ok(Ok(stream)) => {
                // A request is written whole, and nothing is gained by waiting for more of it.
                let _ = stream.set_nodelay(true);
                return match target.scheme {
                    Scheme::Http => Ok(Box::new(stream)),
                    Scheme::Https => tls.shake_hands(&target.host, stream, longest).await,
                };
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fault = Fault::Connect("the server refused the connection");
            }
            Ok(Err(_)) => fault = Fault::Unreachable("the server cannot be reached"),
            Err(_) => fault = Fault::Slow(Phase::Connection, "the server did not accept the connection in time"),
        }
    }
    Err(fault)
}

/// How many bytes may still come in: few until the head of the response is whole, and then those of a body in frames.
#[derive(Debug, Clone)]
pub(super) struct Allowance(Arc<AtomicUsize>);

impl Allowance {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// The head is whole: from here on so many bytes may come. What is counted of a body is what it holds, and its frames
    /// could go on without ever holding anything.
    pub(super) fn grant(&self, bytes: usize) {
        self.0.store(bytes, Relaxed);
    }

    fn take(&self, bytes: usize) -> io::Result<()> {
        let left = self.0.load(Relaxed);
        self.0.store(left.saturating_sub(bytes), Relaxed);
        if bytes > left { Err(io::Error::other(Overflow)) } else { Ok(()) }
    }
}

/// More came in than was allowed.
#[derive(Debug)]
struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server sent more than a response may hold")
    }
}

impl Error for Overflow {}

/// Whether a connection broke because more came in than was allowed.
pub(super) fn overflowed(error: &hyper::Error) -> bool {
    let mut source = error.source();
    while let Some(inner) = source {
        // What stands in an error of input is not its source.
        let marked = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if marked.is_some_and(|marked| marked.is::<Overflow>()) {
            return true;
        }
        source = inner.source();
    }
    false
}

/// A stream of which no more is read than is allowed.
pub(super) struct Bounded {
    pub(super) stream: Box<dyn Stream>,
    pub(super) allowance: Allowance,
}

impl AsyncRead for Bounded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        Poll::Ready(self.allowance.take(buffer.filled().len() - before))
    }
}

impl AsyncWrite for Bounded {
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
