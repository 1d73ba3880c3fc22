//! Connections to the database, with all statements prepared, and the meaning of its errors.

use std::error::Error as _;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, Error, NoTls, Statement};
use tokio_util::task::AbortOnDropHandle;
use toolcrib_base::store_address::{StoreAddress, StoreEncryption, StoreHost};

use super::operation::StoreOperation;
use super::socket;
use super::stream::{PlainStream, StoreTls};
use crate::error::StoreError;

/// Settings of each connection: no statement runs longer than its server waits, and all have one isolation level.
const SETTINGS: &str = "SET statement_timeout = '2500ms'; SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '60s'; \
                        SET default_transaction_isolation = 'read committed'; SET client_min_messages = 'warning'; \
                        SET search_path = pg_catalog";
/// Maximum time to connect, with all that precedes the first statement.
const MAX_CONNECT: Duration = Duration::from_secs(3);
/// Name of this program for the database administrator.
const APPLICATION: &str = "toolcrib";

/// Way to new connections.
pub(super) struct Connector {
    address: StoreAddress,
    config: Config,
    tls: Option<StoreTls>,
}

/// Connection with prepared statements. Dropping it closes it.
pub(super) struct Connected {
    pub(super) client: Client,
    statements: Vec<Statement>,
    _work: AbortOnDropHandle<Result<(), Error>>,
}

impl Connector {
    /// Prepares connections to an address, without connecting.
    ///
    /// # Errors
    ///
    /// The certificate authority cannot be used.
    pub(super) fn new(address: StoreAddress, password: Option<&str>) -> Result<Self, StoreError> {
        let mut config = Config::new();
        config.user(&address.user).dbname(&address.database).application_name(APPLICATION);
        password.into_iter().for_each(|password| {
            config.password(password);
        });
        let tls = match (&address.encryption, &address.host) {
            (StoreEncryption::Verified(authority), StoreHost::Network(host, _)) => {
                config.ssl_mode(SslMode::Require);
                Some(StoreTls::new(host, authority.as_deref()).map_err(StoreError::Unusable)?)
            }
            _ => {
                config.ssl_mode(SslMode::Disable);
                None
            }
        };
        Ok(Self { address, config, tls })
    }

    /// Connects, and upgrades the schema.
    pub(super) async fn first(&self) -> Result<Connected, StoreError> {
        let mut opened = self.open().await?;
        super::schema::upgrade(&mut opened.client).await?;
        opened.prepared().await
    }

    /// Connects to a database with the schema of this program.
    pub(super) async fn again(&self) -> Result<Connected, StoreError> {
        let prepared = async { self.open().await?.prepared().await };
        tokio::time::timeout(MAX_CONNECT, prepared).await.unwrap_or_else(|_| Err(late("no connection")))
    }

    async fn open(&self) -> Result<Opened, StoreError> {
        tokio::time::timeout(MAX_CONNECT, self.connect()).await.unwrap_or_else(|_| Err(late("no connection")))
    }

    async fn connect(&self) -> Result<Opened, StoreError> {
        let unreachable = |error: std::io::Error| StoreError::Unavailable(format!("cannot connect: {error}"));
        let stream = match &self.address.host {
            StoreHost::Network(host, port) => {
                let stream = TcpStream::connect((host.clone(), *port)).await.map_err(unreachable)?;
                stream.set_nodelay(true).map_err(unreachable)?;
                PlainStream::new(stream)
            }
            StoreHost::Socket(folder, port) => {
                let path: PathBuf = folder.join(format!(".s.PGSQL.{port}"));
                socket::connect(&path).await.map_err(unreachable)?
            }
        };
        let opened = match &self.tls {
            None => {
                let connected = self.config.connect_raw(stream, NoTls).await;
                let (client, connection) = connected.map_err(|error| failure(&error))?;
                Opened { client, work: AbortOnDropHandle::new(tokio::spawn(connection)) }
            }
            Some(tls) => {
                let connected = self.config.connect_raw(stream, tls.clone()).await;
                let (client, connection) = connected.map_err(|error| failure(&error))?;
                Opened { client, work: AbortOnDropHandle::new(tokio::spawn(connection)) }
            }
        };
        opened.client.batch_execute(SETTINGS).await.map_err(|error| failure(&error))?;
        Ok(opened)
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the password.
        f.debug_struct("Connector").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Connection without prepared statements.
struct Opened {
    client: Client,
    work: AbortOnDropHandle<Result<(), Error>>,
}

impl Opened {
    async fn prepared(self) -> Result<Connected, StoreError> {
        let mut all = Vec::with_capacity(StoreOperation::ALL.len());
        for operation in StoreOperation::ALL {
            all.push(self.client.prepare(operation.statement()));
        }
        let statements = futures::future::try_join_all(all).await.map_err(|error| failure(&error))?;
        Ok(Connected { client: self.client, statements, _work: self.work })
    }
}

impl Connected {
    /// Returns the prepared statement of an operation.
    pub(super) fn statement(&self, operation: StoreOperation) -> &Statement {
        &self.statements[operation as usize]
    }
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").finish_non_exhaustive()
    }
}

/// Creates the failure of an operation that took too long.
pub(super) fn late(text: &str) -> StoreError {
    StoreError::Unavailable(format!("{text} within {} s", MAX_CONNECT.as_secs()))
}

/// Returns the meaning of an error.
pub(super) fn failure(error: &Error) -> StoreError {
    let Some(answer) = error.as_db_error() else {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        return StoreError::Unavailable(format!("{error}{cause}"));
    };
    let (code, text) = (answer.code().code(), answer.message());
    match code {
        "TC001" => StoreError::Full(text.to_owned()),
        // Waits for others, and conflicts.
        "57014" | "55P03" | "40001" | "40P01" => StoreError::Busy(format!("{text} ({code})")),
        // A database that only follows another, starts, stops, or has no room.
        "25006" => StoreError::Unavailable(format!("{text} ({code})")),
        _ if ["57P", "53", "08"].iter().any(|class| code.starts_with(class)) => {
            StoreError::Unavailable(format!("{text} ({code})"))
        }
        _ => StoreError::Unusable(format!("{text} ({code})")),
    }
}
