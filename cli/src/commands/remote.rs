//! Options for calls at workers, for every command that calls tools.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib::Builder;
use toolcrib_base::headings::TOOLS;
use toolcrib_base::parse::duration;
use toolcrib_base::render::Advice;
use toolcrib_workers::{ConnectFailure, Connection, ConnectionEvent, Credentials, NatsAddress, NatsWorkers};

/// Options for calls at workers.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RemoteOptions {
    /// Run tools that only read at workers, through this NATS server: `nats://HOST`
    #[arg(long, value_name = "URL", help_heading = TOOLS)]
    remote: Option<NatsAddress>,
    /// Credentials file for the NATS server of --remote
    #[arg(long, value_name = "FILE", requires = "remote", hide = true, help_heading = TOOLS)]
    remote_creds: Option<PathBuf>,
    /// Time without a sign of life after which a worker counts as lost
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "remote", hide = true, default_value = "5s")]
    remote_silence: Duration,
    #[arg(skip)]
    opened: OpenedWorkers,
}

/// Connection to the workers, once it is made.
#[derive(Debug, Clone, Default)]
struct OpenedWorkers(Option<Arc<NatsWorkers>>);

impl RemoteOptions {
    /// Connects, if a server is named.
    ///
    /// # Errors
    ///
    /// The server is not reached, or refuses the credentials.
    pub(crate) async fn open(&mut self) -> anyhow::Result<()> {
        if let Some(address) = self.remote.clone() {
            let connection = connect(address, self.remote_creds.clone(), |_| {}).await?;
            self.opened = OpenedWorkers(Some(Arc::new(NatsWorkers::new(connection).silence(self.remote_silence))));
        }
        Ok(())
    }

    /// Passes the calls of a runtime to the workers, if there are any.
    pub(crate) fn attach(&self, builder: Builder) -> Builder {
        match &self.opened.0 {
            Some(workers) => builder.workers(workers.clone()),
            None => builder,
        }
    }
}

/// Connects to a NATS server, with advice for a failure.
///
/// # Errors
///
/// The server is not reached, or refuses the credentials.
pub(super) async fn connect(
    address: NatsAddress,
    credentials: Option<PathBuf>,
    changed: impl Fn(ConnectionEvent) + Send + Sync + 'static,
) -> anyhow::Result<Connection> {
    let credentials = credentials.map(Credentials);
    Connection::open(address, credentials.as_ref(), changed).await.map_err(|failure| {
        let hint = match &failure {
            ConnectFailure::Refused { .. } => {
                "name the user in the URL as `nats://USER:PASSWORD@HOST`, or pass a credentials file"
            }
            ConnectFailure::Credentials { .. } => "pass the file that `nsc generate creds` writes",
            _ => "start a NATS server there, for example with `nats-server`, or name another; `tls://` requires TLS",
        };
        Advice::new(failure.to_string(), hint).into()
    })
}
