//! Service of `toolcrib mcp`: the options, the runtime that is published, and the transport.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Map;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::mcp::{
    Access, AgentApprover, Endpoint, Handler, Limits, PartListeners, Publication, Published, serve_http, serve_stdio,
    watch,
};
use crate::options::{Sources, count, duration, mcp_tokens, size};
use crate::render::{self, Advice};

/// Default number of tools above which a search finds them.
const DEFAULT_LISTED: u32 = 128;
/// Heading of the options of the server in the help.
const HTTP: &str = "HTTP";

/// Options of the service.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
    /// Serve over HTTP at this address instead of standard streams, such as `127.0.0.1:8931`
    #[arg(long, value_name = "ADDRESS", help_heading = HTTP)]
    http: Option<SocketAddr>,
    /// Require no token; only on a loopback address, where every program of this machine can connect then
    #[arg(long, requires = "http", help_heading = HTTP)]
    no_token: bool,
    /// Serve TLS with the certificates in this PEM file
    #[arg(long, value_name = "FILE", requires_all = ["http", "tls_key"], help_heading = HTTP)]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = HTTP)]
    tls_key: Option<PathBuf>,
    /// Accept requests for these hosts besides the loopback names, such as `tools.example.com`
    #[arg(long, value_name = "HOST", value_delimiter = ',', requires = "http", help_heading = HTTP)]
    host: Vec<String>,
    /// Accept requests from web pages of these origins, such as `https://app.example.com:443`; by default only from the
    /// server's own on a loopback address
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',', requires = "http", help_heading = HTTP)]
    origin: Vec<String>,
    /// Keep no conversation between requests, so that several servers can share the clients of a balancer
    #[arg(long, requires = "http", help_heading = HTTP)]
    stateless: bool,
    /// Maximum connections at once
    #[arg(long, value_name = "N", requires = "http", value_parser = count::<u32, 1, 65_536>, help_heading = HTTP)]
    max_connections: Option<u32>,
    /// Maximum requests at once
    #[arg(long, value_name = "N", requires = "http", value_parser = count::<u32, 1, 65_536>, help_heading = HTTP)]
    max_running: Option<u32>,
    /// Maximum size of a request, such as `4MiB`
    #[arg(long, value_name = "SIZE", requires = "http", value_parser = size, help_heading = HTTP)]
    max_body: Option<usize>,
    /// Maximum requests of a token in one second; twice as many can come at once
    #[arg(long, value_name = "N", requires = "http", value_parser = count::<u32, 1, 1_000_000>, help_heading = HTTP)]
    max_rate: Option<u32>,

    /// List at most this many tools; with more, clients search for them [default: 128]
    #[arg(long, value_name = "N", value_parser = count::<u32, 0, 32_768>, help_heading = "Tools")]
    max_listed: Option<u32>,
    /// Compile no program ahead of its first call, as a check of the server needs it
    #[arg(long, hide = true)]
    uncompiled: bool,
    /// Time limit of a call if the tool sets none
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s", help_heading = "Limits")]
    timeout: Duration,
    #[command(flatten)]
    sources: Sources,
}

pub(super) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    args.check()?;
    args.sources.fetch().await?;
    let first = args.publish()?;
    args.sources.trust.hint(first.runtime(), None);
    for (name, own) in first.renamed() {
        render::hint(&format!("clients see `{}` as `{name}`", render::one_line(own)));
    }
    let (sources, runtime) = (args.sources.clone(), first.runtime().clone());
    // Clients wait only seconds for a server: programs are compiled while it answers, and a call waits for its own program.
    let prepare = async move { sources.prepare(&runtime).await };
    match args.sources.strict {
        _ if args.uncompiled => {}
        true => prepare.await?,
        false => {
            tokio::spawn(async move {
                if let Err(error) = prepare.await {
                    render::warning(&render::message(&error));
                }
            });
        }
    }
    let publication = Publication::new(first);
    let sources = args.sources.paths()?;
    let again = args.clone();
    tokio::spawn(watch(publication.clone(), sources, move || again.publish()));
    let handler = Handler::new(publication)?;
    match args.http {
        None => {
            if io::stdin().is_terminal() {
                render::hint("waiting for a client on standard input; `toolcrib mcp config CLIENT` connects one");
            }
            serve_stdio(handler).await
        }
        Some(address) => serve_http(handler, args.endpoint(address).await?).await,
    }
}

impl Args {
    /// `true` for a server over HTTP.
    pub(super) fn is_http(&self) -> bool {
        self.http.is_some()
    }

    /// Checks the combination of options.
    ///
    /// # Errors
    ///
    /// A usage error.
    fn check(&self) -> anyhow::Result<()> {
        let Some(address) = self.http else { return Ok(()) };
        if self.no_token && !address.ip().is_loopback() {
            let message = format!("--no-token serves everybody who reaches {address}");
            return Err(Advice::new(
                message,
                "listen on a loopback address, or create a token with `toolcrib mcp token new NAME`",
            )
            .into());
        }
        if !address.ip().is_loopback() && self.host.is_empty() {
            let message = format!("--http {address} needs the hosts that requests name");
            return Err(Advice::new(message, "name them, such as --host=tools.example.com").into());
        }
        if !self.no_token && mcp_tokens()?.list()?.is_empty() {
            let hint = "create one with `toolcrib mcp token new NAME`, or pass --no-token on a loopback address";
            return Err(Advice::new("no client has a token", hint).into());
        }
        Ok(())
    }

    /// Builds the runtime and publishes its tools.
    fn publish(&self) -> anyhow::Result<Published> {
        let parts = Arc::new(PartListeners::default());
        let kept = &self.sources.rules.kept;
        let approver = Arc::new(AgentApprover::new(kept.pending(), kept.file()));
        let runtime = self.sources.runtime_with(self.timeout, [], |builder| {
            builder.approver(approver).observer(parts.clone()).application("mcp", Map::new())
        })?;
        let results = self.sources.results()?;
        let max_listed = self.max_listed.unwrap_or(DEFAULT_LISTED) as usize;
        Ok(Published::new(runtime, parts, results, self.sources.deny_flags(), max_listed))
    }

    async fn endpoint(&self, address: SocketAddr) -> anyhow::Result<Endpoint> {
        let default = Limits::default();
        let number = |given: Option<u32>, default: usize| given.map_or(default, |given| given as usize);
        let limits = Limits {
            connections: number(self.max_connections, default.connections),
            requests: number(self.max_running, default.requests),
            body: self.max_body.unwrap_or(default.body),
            rate: self.max_rate.unwrap_or(default.rate),
            ..default
        };
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(tls(certificate, key)?),
            _ => None,
        };
        let tokens = if self.no_token { None } else { Some(mcp_tokens()?) };
        let listener = TcpListener::bind(address).await.map_err(|error| {
            let hint = "choose another address, or end the program that uses it";
            anyhow::Error::from(error).context(Advice::new(format!("cannot listen on {address}"), hint))
        })?;
        let loopback = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        Ok(Endpoint {
            listener,
            tls,
            access: Access::new(tokens, limits.rate),
            limits,
            hosts: loopback.into_iter().chain(self.host.iter().cloned()).collect(),
            origins: self.origin.clone(),
            is_stateless: self.stateless,
        })
    }
}

/// Reads a certificate and its key.
fn tls(certificate: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let unreadable = |path: &Path| {
        Advice::new(format!("cannot use `{}`", path.display()), "name a file with certificates or a key in PEM")
    };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(certificate).with_context(|| unreadable(certificate))?.collect();
    let chain = chain.with_context(|| unreadable(certificate))?;
    let secret = PrivateKeyDer::from_pem_file(key).with_context(|| unreadable(key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .with_context(|| unreadable(certificate))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
