//! Connection to a NATS server, which is made again whenever it is lost.

use std::fs::File;
use std::future::ready;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};
use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::address::NatsAddress;
use crate::message::{MAX_MESSAGE, MAX_REASON};

/// Maximum time to connect.
const MAX_CONNECT: Duration = Duration::from_secs(5);
/// Time between two pings of the server.
const PING: Duration = Duration::from_secs(10);
/// Pauses before connections are tried again: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Maximum number of messages that wait in one subscription.
const MAX_WAITING: usize = 1024;
/// Maximum bytes of a credentials file.
const MAX_CREDENTIALS: u64 = 64 << 10;

/// Change of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// The connection is made again.
    Connected,
    /// The connection is lost.
    Lost,
    /// The server reports a problem, such as a subject that the user may not use.
    Problem(String),
}

/// Credentials file: a JWT and the seed of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials(pub PathBuf);

/// Failure to connect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// The server is not reached, or does not speak NATS.
    #[error("cannot connect to {address}: {reason}")]
    Unreachable {
        /// Address without its password.
        address: String,
        /// Reason.
        reason: String,
    },
    /// The server refuses the user, the password or the credentials.
    #[error("{address} refuses the user, the password or the credentials file")]
    Refused {
        /// Address without its password.
        address: String,
    },
    /// The credentials file cannot be used.
    #[error("cannot use the credentials of `{}`: {reason}", path.display())]
    Credentials {
        /// File.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The server takes only shorter messages than the protocol has.
    #[error("{address} takes messages of at most {max} bytes, and {needed} are needed")]
    SmallPayload {
        /// Address without its password.
        address: String,
        /// Setting `max_payload` of the server.
        max: usize,
        /// Bytes of the longest message.
        needed: usize,
    },
    /// TLS is not available.
    #[error("cannot use TLS: {0}")]
    Tls(String),
}

/// Connection to a NATS server. Clones share it.
#[derive(Clone)]
pub struct Connection {
    pub(crate) client: Client,
    address: NatsAddress,
}

impl Connection {
    /// Connects. Later the connection is made again by itself; `changed` learns of it.
    ///
    /// # Errors
    ///
    /// The first connection failed.
    pub async fn open(
        address: NatsAddress,
        credentials: Option<&Credentials>,
        changed: impl Fn(ConnectionEvent) + Send + Sync + 'static,
    ) -> Result<Self, ConnectFailure> {
        let mut options = ConnectOptions::new()
            .name("toolcrib")
            .connection_timeout(MAX_CONNECT)
            .ping_interval(PING)
            .subscription_capacity(MAX_WAITING)
            // Only the named server gets the password.
            .ignore_discovered_servers()
            .reconnect_delay_callback(pause)
            .event_callback(move |event| {
                match event {
                    Event::Connected => changed(ConnectionEvent::Connected),
                    Event::Disconnected => changed(ConnectionEvent::Lost),
                    Event::ServerError(error) => {
                        changed(ConnectionEvent::Problem(error.to_string().chars().take(MAX_REASON).collect()));
                    }
                    _ => {}
                }
                ready(())
            })
            .require_tls(address.is_encrypted());
        if address.is_encrypted() {
            options = options.tls_client_config(tls()?);
        }
        if let Some((user, password)) = address.user() {
            options = match password.is_empty() {
                true => options.token(user.clone()),
                false => options.user_and_password(user.clone(), password.clone()),
            };
        }
        if let Some(Credentials(path)) = credentials {
            let wrong =
                |error: io::Error| ConnectFailure::Credentials { path: path.clone(), reason: error.to_string() };
            options = options.credentials(&credentials_text(path).map_err(wrong)?).map_err(wrong)?;
        }
        let client = options.connect(address.server()).await.map_err(|error| match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                ConnectFailure::Refused { address: address.to_string() }
            }
            _ => ConnectFailure::Unreachable { address: address.to_string(), reason: error.to_string() },
        })?;
        let (max, needed) = (client.server_info().max_payload, MAX_MESSAGE);
        if max < needed {
            return Err(ConnectFailure::SmallPayload { address: address.to_string(), max, needed });
        }
        Ok(Self { client, address })
    }

    /// Returns the address of the server.
    pub fn address(&self) -> &NatsAddress {
        &self.address
    }

    /// `true` while the server is connected.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }
}

/// Returns the pause before an attempt to connect again.
fn pause(attempts: usize) -> Duration {
    let doubled = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
    (PAUSE.0 * 2u32.pow(doubled)).min(PAUSE.1)
}

/// Returns TLS with the authorities of the system.
fn tls() -> Result<ClientConfig, ConnectFailure> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let verified = builder.and_then(|builder| builder.with_platform_verifier());
    verified.map(|builder| builder.with_no_client_auth()).map_err(|error| ConnectFailure::Tls(error.to_string()))
}

/// Reads a credentials file within its limit.
fn credentials_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_CREDENTIALS + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_CREDENTIALS {
        true => Err(io::Error::other(format!("more than {MAX_CREDENTIALS} bytes"))),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_grow_to_a_bound() {
        assert_eq!(pause(0), PAUSE.0);
        assert_eq!(pause(1), PAUSE.0);
        assert_eq!(pause(2), PAUSE.0 * 2);
        assert_eq!(pause(usize::MAX), PAUSE.1);
    }

    #[test]
    fn a_credentials_file_has_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("user.creds");
        let size = usize::try_from(MAX_CREDENTIALS).unwrap();
        std::fs::write(&file, "a".repeat(size)).unwrap();
        assert!(credentials_text(&file).is_ok());
        std::fs::write(&file, "a".repeat(size + 1)).unwrap();
        assert!(credentials_text(&file).unwrap_err().to_string().contains("more than"));
        assert!(credentials_text(&folder.path().join("none")).is_err());
    }
}
