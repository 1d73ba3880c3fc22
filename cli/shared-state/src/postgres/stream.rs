//! Bytes to and from the database, with TLS or without, in the forms that its client library expects.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as RustlsStream;

/// Maximum size of the file with an authority in bytes.
const MAX_AUTHORITY: u64 = 1 << 20;

/// Network connection or socket.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// TLS to one host.
#[derive(Clone)]
pub(super) struct StoreTls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// Stream without TLS.
pub(super) struct PlainStream(Box<dyn Duplex>);

/// Stream with TLS.
pub(super) struct TlsSession(RustlsStream<PlainStream>);

impl PlainStream {
    /// Wraps a connection.
    pub(super) fn new(stream: impl Duplex + 'static) -> Self {
        Self(Box::new(stream))
    }
}

impl StoreTls {
    /// Creates TLS for a host, with the system's authorities or a PEM file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or has no certificate, or the host has no name for certificates.
    pub(super) fn new(host: &str, authority: Option<&Path>) -> Result<Self, String> {
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let config = match authority {
            None => builder.with_platform_verifier().map_err(|error| error.to_string())?.with_no_client_auth(),
            Some(path) => {
                let failed = |error: String| format!("cannot use the certificates of `{}`: {error}", path.display());
                let mut roots = rustls::RootCertStore::empty();
                let text = authority_text(path).map_err(|error| failed(error.to_string()))?;
                for certificate in CertificateDer::pem_slice_iter(&text) {
                    let certificate = certificate.map_err(|error| failed(error.to_string()))?;
                    roots.add(certificate).map_err(|error| failed(error.to_string()))?;
                }
                if roots.is_empty() {
                    return Err(failed("it has none".to_owned()));
                }
                builder.with_root_certificates(roots).with_no_client_auth()
            }
        };
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| format!("`{host}` cannot be the name in a certificate"))?;
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }
}

/// Reads a whole file within the limit.
fn authority_text(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(MAX_AUTHORITY + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_AUTHORITY {
        return Err(io::Error::other(format!("more than {MAX_AUTHORITY} bytes")));
    }
    Ok(text)
}

impl TlsConnect<PlainStream> for StoreTls {
    type Stream = TlsSession;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TlsSession>>;

    fn connect(self, stream: PlainStream) -> Self::Future {
        async move { self.connector.connect(self.name, stream).await.map(TlsSession) }.boxed()
    }
}

impl TlsStream for TlsSession {
    /// The certificate is verified for the host, so the password is not bound to the channel too.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

/// Implements a stream by its only field.
macro_rules! passed_on {
    ($name:ident) => {
        impl AsyncRead for $name {
            fn poll_read(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut self.0).poll_read(context, buffer)
            }
        }

        impl AsyncWrite for $name {
            fn poll_write(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.0).poll_write(context, bytes)
            }

            fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut self.0).poll_flush(context)
            }

            fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut self.0).poll_shutdown(context)
            }
        }
    };
}

passed_on!(PlainStream);
passed_on!(TlsSession);
