//! Syslog receivers: messages of RFC 5424 over TCP with octet counting (RFC 6587), or over TLS (RFC 5425). Syslog acknowledges
//! nothing. Each batch has its own connection: a receiver that closes it after our end has read the batch to its end, and one that
//! ends with unread bytes resets it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::forwarding::SendFailure;
use super::record::{ForwardedRecord, RecordGrade, plain};

/// Facility of audit logs.
const FACILITY: u8 = 13;
/// Time limits of the connection with its handshake, of a batch, and of the receiver's end.
const MAX_CONNECT: Duration = Duration::from_secs(10);
const MAX_WRITE: Duration = Duration::from_secs(30);
const MAX_END: Duration = Duration::from_secs(10);
/// Minimum wait for a reset after the receiver's end.
const MIN_RESET_WAIT: Duration = Duration::from_millis(20);
const CLOSED_EARLY: &str = "the receiver closed the connection early";
/// Maximum bytes that a receiver may send.
const MAX_RECEIVED: usize = 64 << 10;

/// Receiver of messages.
pub(crate) struct SyslogReceiver {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    /// Name of the machine that sends.
    sender: String,
}

impl SyslogReceiver {
    /// Prepares connections.
    ///
    /// # Errors
    ///
    /// TLS cannot be set up, or the host is not valid in a certificate.
    pub(crate) fn new(host: String, port: u16, is_encrypted: bool, sender: &str) -> anyhow::Result<Self> {
        let tls = is_encrypted.then(|| tls(&host)).transpose()?;
        Ok(Self { host, port, tls, sender: sender.to_owned() })
    }

    /// Sends a batch over a connection of its own.
    pub(crate) async fn send(&self, batch: &[ForwardedRecord]) -> Result<(), SendFailure> {
        let mut frames = Vec::new();
        for record in batch {
            let message = message(record, &self.sender);
            frames.extend_from_slice(format!("{} {message}", message.len()).as_bytes());
        }
        let began = Instant::now();
        let connected = timeout(MAX_CONNECT, TcpStream::connect((self.host.as_str(), self.port))).await;
        let stream = connected.map_err(|_| late("no connection", MAX_CONNECT))?.map_err(failed("cannot connect"))?;
        let round_trip = began.elapsed();
        let stream = match &self.tls {
            None => deliver(stream, &frames).await?,
            Some((connector, name)) => {
                let handshake = timeout(MAX_CONNECT, connector.connect(name.clone(), stream)).await;
                let handshake = handshake.map_err(|_| late("no TLS handshake", MAX_CONNECT))?;
                deliver(handshake.map_err(failed("the TLS handshake failed"))?, &frames).await?.into_inner().0
            }
        };
        // A receiver that had closed before answers what we sent with a reset.
        tokio::time::sleep((2 * round_trip).clamp(MIN_RESET_WAIT, MAX_END)).await;
        match stream.take_error() {
            Ok(None) => Ok(()),
            Ok(Some(error)) | Err(error) => Err(failed(CLOSED_EARLY)(error)),
        }
    }
}

fn tls(host: &str) -> anyhow::Result<(TlsConnector, ServerName<'static>)> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().and_then(|builder| builder.with_platform_verifier());
    let config = builder.context("cannot set up TLS")?.with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).context("the host cannot be the name in a certificate")?;
    Ok((TlsConnector::from(Arc::new(config)), name))
}

/// Writes everything, ends the stream and waits for the receiver's end.
async fn deliver<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, frames: &[u8]) -> Result<S, SendFailure> {
    let write = async {
        stream.write_all(frames).await?;
        stream.flush().await?;
        stream.shutdown().await
    };
    let written =
        timeout(MAX_WRITE, write).await.map_err(|_| late("the receiver did not read the batch", MAX_WRITE))?;
    written.map_err(failed(CLOSED_EARLY))?;
    let (mut received, mut buffer) = (0, [0; 1024]);
    let end = async {
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) => return Ok(()),
                Ok(more) if received + more > MAX_RECEIVED => {
                    return Err(SendFailure::retry("the receiver sends data: it is not a syslog receiver".to_owned()));
                }
                Ok(more) => received += more,
                // With TLS also an end without `close_notify`, which a receiver that died, or anyone between, can cause.
                Err(error) => return Err(failed(CLOSED_EARLY)(error)),
            }
        }
    };
    timeout(MAX_END, end).await.map_err(|_| late("the receiver did not close the connection", MAX_END))??;
    Ok(stream)
}

fn late(what: &str, limit: Duration) -> SendFailure {
    SendFailure::retry(format!("{what} within {limit:?}"))
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> SendFailure {
    move |error| SendFailure::retry(format!("{what}: {error}"))
}

/// Formats a record as a message, with its line as the content.
fn message(record: &ForwardedRecord, sender: &str) -> String {
    let facts = record.facts();
    let severity = match facts.grade() {
        RecordGrade::Info => 6,
        RecordGrade::Warning => 4,
        RecordGrade::Error => 3,
    };
    let time = facts.ts.parse::<Timestamp>().map_or_else(|_| "-".to_owned(), |time| format!("{time:.3}"));
    let line = plain(&record.line);
    format!("<{}>1 {time} {sender} toolcrib - audit - {line}", FACILITY * 8 + severity)
}

#[cfg(test)]
mod tests;
