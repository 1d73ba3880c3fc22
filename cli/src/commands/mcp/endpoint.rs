//! Options of `toolcrib mcp --http`: the address, the clients that are accepted, and limits.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use toolcrib::source::digest;
use toolcrib_base::folders::state_folder;
use toolcrib_base::http_server::{Origin, ServedHost};
use toolcrib_base::parse::listen_address;
use toolcrib_base::render::{self, Advice};
use toolcrib_mcp::{Access, Certificate, DeclaredTokens, Endpoint, LiveSettings, SharedTokens, Tokens, own_address};
use toolcrib_shared_state::FileStore;

use super::limits::LimitOptions;
use super::live::ServerOptions;
use super::quotas::QuotaOptions;
use super::sign_in::SignInOptions;

/// Address of a server over HTTP.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8931);
/// Name of the folder with the keys of calls.
const KEYS: &str = "keyed-calls";
/// Heading of the options in the help.
const HTTP: &str = "HTTP";

/// Options of a server over HTTP.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct HttpOptions {
    /// Serve over HTTP instead of standard streams, at this address or that of `server.address`; a port alone is one of
    /// 127.0.0.1 [default: 127.0.0.1:8931]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, value_parser = listen_address, help_heading = HTTP)]
    http: Option<Option<SocketAddr>>,
    /// Address of `--http` without one
    #[arg(long, value_name = "ADDRESS", requires = "http", value_parser = listen_address, hide = true)]
    address: Option<SocketAddr>,
    /// Require no token; only on a loopback address, where every program of this machine can connect then
    #[arg(long, requires = "http", help_heading = HTTP)]
    no_token: bool,
    /// Accept the tokens that this file declares, in addition to those of `toolcrib mcp token`
    #[arg(long, value_name = "FILE", requires = "http", conflicts_with = "no_token", help_heading = HTTP)]
    pub(super) tokens: Option<PathBuf>,
    #[command(flatten)]
    pub(super) sign_in: SignInOptions,
    /// Serve TLS with the certificates in this PEM file
    #[arg(long, value_name = "FILE", requires_all = ["http", "tls_key"], help_heading = HTTP)]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = HTTP)]
    pub(super) tls_key: Option<PathBuf>,
    /// Accept requests for these hosts in addition to the loopback names, such as `tools.example.com`
    #[arg(long, value_name = "HOST", value_delimiter = ',', requires = "http", help_heading = HTTP)]
    host: Vec<ServedHost>,
    /// Accept requests from web pages of these origins, such as `https://app.example.com`; by default only from the
    /// server's own on a loopback address
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',', requires = "http", help_heading = HTTP)]
    origin: Vec<Origin>,
    /// Keep no conversation between requests, so that several servers can share the clients of a balancer
    #[arg(long, requires = "http", help_heading = HTTP)]
    stateless: bool,
    /// Count the calls of each token in `/metrics`
    #[arg(long, requires = "http", hide = true)]
    pub(super) metrics_by_token: bool,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    pub(super) quotas: QuotaOptions,

    /// Share the states of calls that wait for approval with the other servers that use this directory
    #[arg(long, value_name = "DIR", requires = "http", help_heading = HTTP)]
    pub(super) state_dir: Option<PathBuf>,
}

impl HttpOptions {
    /// `true` for a server over HTTP.
    pub(super) fn is_http(&self) -> bool {
        self.http.is_some()
    }

    /// Returns the address of a server over HTTP.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.http.map(|given| given.or(self.address).unwrap_or(DEFAULT_ADDRESS))
    }

    /// Returns the folder of the keys that clients state for their calls; `None` without a home directory.
    pub(super) fn keys_folder(&self) -> Option<PathBuf> {
        if let Some(folder) = &self.state_dir {
            return Some(folder.join(KEYS));
        }
        // The same key of another project is of another call.
        let project = digest(std::env::current_dir().ok()?.as_os_str().as_encoded_bytes());
        Some(state_folder(KEYS)?.join(project.trim_start_matches("sha256:")))
    }

    /// Returns the store of one server, or several that share a folder.
    pub(super) fn file_store(&self) -> FileStore {
        FileStore::new(self.keys_folder(), self.state_dir.as_deref())
    }

    /// Checks the combination of options.
    ///
    /// # Errors
    ///
    /// A usage error.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Some(address) = self.address() else { return Ok(()) };
        if let (Some(_), None) | (None, Some(_)) = (&self.tls_cert, &self.tls_key) {
            let message = "a certificate needs its private key, and a key its certificate";
            return Err(Advice::new(message, "set both `server.tls_cert` and `server.tls_key`, or neither").into());
        }
        if self.no_token && !address.ip().is_loopback() {
            let message = format!("--no-token serves everybody who reaches {address}");
            return Err(Advice::new(
                message,
                "listen on a loopback address, or create a token with `toolcrib mcp token new NAME`",
            )
            .into());
        }
        if !address.ip().is_loopback() && self.host.is_empty() && self.sign_in.host().is_none() {
            let message = format!("--http {address} needs the hosts that requests name");
            return Err(Advice::new(message, "name them, such as --host=tools.example.com").into());
        }
        self.sign_in.check(address, self.tls_cert.is_some(), &self.host)?;
        if self.no_token && (self.tokens.is_some() || self.sign_in.file().is_some()) {
            let hint = "leave out `--no-token`, or `server.tokens` and `server.sign_in`";
            return Err(Advice::new("--no-token ignores tokens", hint).into());
        }
        Ok(())
    }

    /// Warns about connections that others can read.
    pub(super) fn warn(&self) {
        let Some(address) = self.address().filter(|address| !address.ip().is_loopback()) else { return };
        if self.tls_cert.is_none() {
            render::warning(&format!(
                "tokens and results reach {address} unencrypted: pass --tls-cert and --tls-key, or let only a balancer \
                 with TLS connect"
            ));
        }
    }

    /// Checks that some client can have access.
    ///
    /// # Errors
    ///
    /// No client has a token, or the tokens cannot be read.
    pub(super) async fn check_tokens(&self, shared: Option<&SharedTokens>) -> anyhow::Result<()> {
        let is_without_stored = self.no_token || self.tokens.is_some() || self.sign_in.file().is_some();
        if !self.is_http() || is_without_stored || !Tokens::of_user()?.list()?.is_empty() {
            return Ok(());
        }
        match shared {
            Some(shared) if !shared.list().await?.is_empty() => Ok(()),
            _ => {
                let hint = "create one with `toolcrib mcp token new NAME`, or pass --no-token on a loopback address";
                Err(Advice::new("no client has a token", hint).into())
            }
        }
    }

    /// Listens at an address, and reads the certificate, the tokens and the sign-in. `settings` are the live ones.
    ///
    /// # Errors
    ///
    /// Nothing can listen there, or a file cannot be used.
    pub(super) async fn endpoint(
        &self,
        address: SocketAddr,
        shared: Option<Arc<SharedTokens>>,
        settings: watch::Receiver<LiveSettings>,
    ) -> anyhow::Result<Endpoint> {
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Certificate::read(certificate, key)?),
            _ => None,
        };
        let tokens = if self.no_token { None } else { Some(Tokens::of_user()?) };
        let listener = TcpListener::bind(address).await.map_err(|error| {
            let hint = "choose another address, or end the program that uses it";
            anyhow::Error::from(error).context(Advice::new(format!("cannot listen on {address}"), hint))
        })?;
        let own = own_address(listener.local_addr()?, tls.is_some(), &settings.borrow().hosts);
        let access = Access::new(tokens);
        let access = match &self.tokens {
            Some(path) => access.with_declared(DeclaredTokens::open(path)?),
            None => access,
        };
        let access = match shared {
            Some(shared) => access.with_shared(shared),
            None => access,
        };
        let access = match self.sign_in.open(&own).await? {
            Some(sign_in) => access.with_sign_in(sign_in),
            None => access,
        };
        Ok(Endpoint { listener, tls, access, settings, is_stateless: self.stateless })
    }

    /// Returns the options that have settings, with others of that kind.
    pub(super) fn options(&self, others: Vec<(&'static str, String)>) -> ServerOptions {
        let live = self.live_settings();
        let mut fixed = vec![
            ("address", format!("{:?}", self.address())),
            ("tls_cert", format!("{:?}", self.tls_cert)),
            ("tls_key", format!("{:?}", self.tls_key)),
            ("tokens", format!("{:?}", self.tokens)),
            ("sign_in", format!("{:?}", self.sign_in.file())),
            ("public_url", format!("{:?}", self.sign_in.host())),
            ("stateless", self.stateless.to_string()),
            ("state_dir", format!("{:?}", self.state_dir)),
            ("max_connections", live.limits.connections.to_string()),
            ("max_running", live.limits.requests.to_string()),
            ("max_sessions", live.limits.sessions.to_string()),
            ("metrics_by_token", self.metrics_by_token.to_string()),
        ];
        fixed.extend(others);
        ServerOptions { live, quotas: self.quotas.rules(), fixed }
    }

    /// Returns the host of the server's address for its clients, which never changes while it runs.
    pub(super) fn own_host(&self) -> Option<ServedHost> {
        self.sign_in.host()
    }

    /// Returns the settings that can change while the server runs.
    fn live_settings(&self) -> LiveSettings {
        let loopback = ["localhost", "127.0.0.1", "::1"].into_iter().filter_map(|host| host.parse().ok());
        let hosts = loopback.chain(self.host.iter().cloned()).collect();
        LiveSettings { hosts, origins: self.origin.clone(), limits: self.limits.limits() }
    }
}
