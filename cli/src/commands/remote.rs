//! Options for calls at workers, for every command that calls tools.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use anyhow::anyhow;
use toolcrib::Builder;
use toolcrib_base::headings::TOOLS;
use toolcrib_base::parse::duration;
use toolcrib_base::render::{self, Advice};
use toolcrib_sources::options::StageOption;
use toolcrib_workers::{ConnectFailure, Connection, ConnectionEvent, Credentials, NatsAddress, NatsWorkers};

/// Maximum number of problems of a server that are shown.
const MAX_PROBLEMS: usize = 5;

/// Options for calls at workers.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RemoteOptions {
    /// Run tools that only read at workers, through this NATS server: `nats://HOST`
    #[arg(long, value_name = "URL", help_heading = TOOLS)]
    remote: Option<NatsUrl>,
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
    /// Returns `true` if tools run at workers.
    pub(crate) fn is_named(&self) -> bool {
        self.remote.is_some()
    }

    /// Connects, if a server is named.
    ///
    /// # Errors
    ///
    /// The server is not reached, or refuses the credentials; a usage error with a stage, which holds back nothing of a worker.
    pub(crate) async fn open(&mut self, stage: &StageOption) -> anyhow::Result<()> {
        if let Some(address) = self.remote.clone() {
            if stage.is_given() {
                let message = "--remote and --stage exclude each other: workers run only tools that only read, and nothing of \
                               them is held back; leave out one of the two";
                return Err(render::usage_error(message));
            }
            let connection = connect(&address, self.remote_creds.clone()).await?;
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

/// Address of a NATS server as it was given. Errors of the option parser print values, and this one may hold a password, so it is
/// parsed later.
#[derive(Clone)]
pub(crate) struct NatsUrl(String);

impl FromStr for NatsUrl {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for NatsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NatsUrl(…)")
    }
}

impl NatsUrl {
    /// Parses the address.
    ///
    /// # Errors
    ///
    /// It is no address of a NATS server.
    pub(super) fn parse(&self) -> anyhow::Result<NatsAddress> {
        self.0.parse().map_err(|why: String| anyhow!("the address of the NATS server cannot be used: {why}"))
    }
}

/// Connects to a NATS server, with advice for a failure. A lost connection is a warning.
///
/// # Errors
///
/// The address is wrong, or the server is not reached or refuses the credentials.
pub(super) async fn connect(url: &NatsUrl, credentials: Option<PathBuf>) -> anyhow::Result<Connection> {
    let address = url.parse()?;
    let (shown, is_lost, problems) = (address.to_string(), AtomicBool::default(), AtomicUsize::default());
    let changed = move |event| match event {
        ConnectionEvent::Lost => {
            is_lost.store(true, SeqCst);
            render::warning(&format!("the connection to {shown} is lost; trying again"));
        }
        ConnectionEvent::Connected if is_lost.swap(false, SeqCst) => {
            render::aside(&format!("connected to {shown} again"));
        }
        ConnectionEvent::Connected => {}
        ConnectionEvent::Problem(problem) => {
            if problems.fetch_add(1, SeqCst) < MAX_PROBLEMS {
                render::warning(&format!("{shown}: {}", render::one_line(&problem)));
            }
        }
    };
    let credentials = credentials.map(Credentials);
    Connection::open(address, credentials.as_ref(), changed).await.map_err(|failure| {
        let hint = match &failure {
            ConnectFailure::Refused { .. } => {
                "name the user in the URL as `nats://USER:PASSWORD@HOST`, or pass a credentials file"
            }
            ConnectFailure::Credentials { .. } => "pass the file that `nsc generate creds` writes",
            ConnectFailure::SmallPayload { .. } => "raise `max_payload` of the server",
            ConnectFailure::Tls(_) => "install the system's CA certificates, or name a file of them in SSL_CERT_FILE",
            _ => "start a NATS server there, for example with `nats-server`, or name another; a server without TLS needs `nats://`",
        };
        Advice::new(failure.to_string(), hint).into()
    })
}
