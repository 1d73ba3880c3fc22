//! Service of `toolcrib mcp`: the options, the runtime that is published, and the transport.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Map;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use toolcrib::observe::Observer;
use toolcrib::results::SharedResults;
use toolcrib::source::digest;
use toolcrib::tool::Access;
use toolcrib::{Builder, Runtime};
use toolcrib_agent::telemetry::{Root, TelemetryOptions};
use toolcrib_base::folders::state_folder;
use toolcrib_base::http_server::{Origin, ServedHost};
use toolcrib_base::interrupt;
use toolcrib_base::parse::approval_wait;
use toolcrib_base::parse::{count, delay, duration, listen_address};
use toolcrib_base::render::{self, Advice};
use toolcrib_mcp::{
    Access as ClientAccess, AgentApprover, Certificate, DeclaredTokens, Endpoint, Handler, ProgressListeners,
    Publication, Published, Seal, SharedTokens, Tokens, WatchedSources, own_address, serve_http, serve_stdio, watch,
};
use toolcrib_packages::builtin;
use toolcrib_settings::config::StoreSettings;
use toolcrib_shared_state::FileStore;
use toolcrib_sources::options::{AskOptions, ClientOptions, Effects, Sources, StageOption};

use super::limits::LimitOptions;
use super::quotas::QuotaOptions;
use super::sign_in::SignInOptions;
use super::store::OpenedStore;
use crate::commands::remote::RemoteOptions;
use crate::commands::stage;

/// Address of a server over HTTP.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8931);
/// Default number of tools above which a search finds them.
const DEFAULT_LISTED: u32 = 128;
/// Name of the folder with the keys of calls.
const KEYS: &str = "keyed-calls";
/// Heading of the server's options in the help.
const HTTP: &str = "HTTP";

/// Options of the service.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
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
    tokens: Option<PathBuf>,
    #[command(flatten)]
    sign_in: SignInOptions,
    /// Serve TLS with the certificates in this PEM file
    #[arg(long, value_name = "FILE", requires_all = ["http", "tls_key"], help_heading = HTTP)]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = HTTP)]
    tls_key: Option<PathBuf>,
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
    metrics_by_token: bool,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    quotas: QuotaOptions,

    /// Share the states of calls that wait for approval with the other servers that use this directory
    #[arg(long, value_name = "DIR", requires = "http", help_heading = HTTP)]
    state_dir: Option<PathBuf>,

    #[command(flatten)]
    ask: AskOptions,
    /// Ask about calls through clients that can ask their user, or only through `toolcrib approvals`
    #[arg(long, value_enum, value_name = "WHERE", default_value_t, help_heading = "Rules for calls")]
    ask_in: Place,
    /// Let calls of clients that cannot ask their user wait this long for `toolcrib approvals` or the console, at most `1h`
    #[arg(long, value_name = "TIME", value_parser = approval_wait, help_heading = "Rules for calls")]
    wait_approval: Option<Duration>,
    /// Offer `run_code`, which runs programs that call the tools, and a search, in place of the tools
    #[arg(long, help_heading = "Tools")]
    code: bool,
    /// List at most this many tools; with more, clients search for them [default: 128]
    #[arg(long, value_name = "N", value_parser = count::<u32, 0, 32_768>, help_heading = "Tools")]
    max_listed: Option<u32>,
    /// Time after which a call becomes a task, for clients that know tasks
    #[arg(long, value_name = "TIME", value_parser = delay, default_value = "10s", hide = true)]
    task_after: Duration,
    /// Do not compile programs ahead of their first call, which is enough for a check of the server
    #[arg(long, hide = true)]
    uncompiled: bool,
    /// Time limit of a call if neither the tool nor `limits.tool_timeout` sets one
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s", help_heading = "Limits")]
    timeout: Duration,
    /// Time limit of a call if the tool sets none [default: --timeout]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Limits")]
    tool_timeout: Option<Duration>,
    #[command(flatten)]
    stage: StageOption,
    /// The stage, once it is open, and the record: one for all clients.
    #[arg(skip)]
    opened: Option<Effects>,
    /// Database of the settings.
    #[arg(skip)]
    database: Option<StoreSettings>,
    /// Store of results for all servers of the database.
    #[arg(skip)]
    shared_results: Option<Arc<dyn SharedResults>>,
    #[command(flatten)]
    telemetry: TelemetryOptions,
    #[command(flatten)]
    remote: RemoteOptions,
    #[command(flatten)]
    sources: Sources,
}

/// Place where a person answers questions about calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Place {
    /// The client, if it can ask its user
    #[default]
    Client,
    /// `toolcrib approvals` in any terminal
    Terminal,
}

pub(super) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    args.check()?;
    args.sources = args.sources.offering_code(args.code);
    args.sources.rules.mode = args.ask.server_rule();
    args.sources.rules.asks_about_flows = true;
    args.sources.fetch().await?;
    args.remote.open().await?;
    args.opened = Some(Effects::open(&args.stage, "mcp", None, args.sources.rules.config_file())?);
    if args.is_http() {
        args.database = args.sources.rules.config(&args.sources.trust.trusted()?, false)?.store;
    }
    let opened = OpenedStore::open(args.database.as_ref(), args.file_store()).await?;
    args.shared_results = opened.results();
    let tokens = opened.tokens();
    args.check_tokens(tokens.as_deref()).await?;
    let telemetry = args.telemetry.start(Root::Server)?;
    let observer = telemetry.observer();
    // The built-in tools do not change, but other processes record that they use the copy.
    let sources = args.sources.paths()?.into_iter().filter(|path| !builtin::holds(path)).collect();
    let watched = WatchedSources::of(sources);
    let first = args.publish(observer.clone(), &[], None)?;
    args.sources.hint_untrusted(first.runtime(), None);
    for (name, own) in first.renamed() {
        render::hint(&format!("clients see `{}` as `{name}`", render::one_line(own)));
    }
    if !args.uncompiled {
        args.prepare(first.runtime()).await?;
    }
    let again = args.clone();
    let publication =
        Publication::new(first, move |options, shared| again.publish_again(observer.clone(), options, shared));
    tokio::spawn(watch(publication.clone(), watched));
    let store = opened.store.clone();
    let seal = match args.state_dir.is_some() || opened.is_database() {
        true => Seal::shared(store.clone()).await?,
        false => Seal::new()?,
    };
    let handler = Handler::new(publication, seal, args.ask_in == Place::Client);
    let mut handler = handler.with_tasks_after(args.task_after);
    if opened.is_database() || args.keys_folder().is_some() {
        handler = handler.with_keys_in(store.clone());
    }
    if args.metrics_by_token {
        handler = handler.counting_tokens();
    }
    if let Some(limits) = args.quotas.limits() {
        handler = handler.with_quotas(limits, store.clone());
    }
    handler = opened.attach(handler);
    // Until the last spans are sent.
    let _guard = interrupt::server();
    let end = match args.address() {
        None => {
            if io::stdin().is_terminal() {
                render::hint("waiting for a client on standard input; `toolcrib mcp config CLIENT` connects one");
            }
            serve_stdio(handler).await
        }
        Some(address) => serve_http(handler, args.endpoint(address, tokens).await?).await,
    };
    store.close().await;
    telemetry.finish().await;
    let staged = stage::close(args.opened, false).await;
    let end = end?;
    staged.map(|()| end)
}

impl Args {
    /// `true` for a server over HTTP.
    pub(super) fn is_http(&self) -> bool {
        self.http.is_some()
    }

    /// Returns the address of a server over HTTP.
    fn address(&self) -> Option<SocketAddr> {
        self.http.map(|given| given.or(self.address).unwrap_or(DEFAULT_ADDRESS))
    }

    /// Returns the folder of the keys that clients state for their calls; `None` without a home directory.
    fn keys_folder(&self) -> Option<PathBuf> {
        if let Some(folder) = &self.state_dir {
            return Some(folder.join(KEYS));
        }
        // The same key of another project is of another call.
        let project = digest(std::env::current_dir().ok()?.as_os_str().as_encoded_bytes());
        Some(state_folder(KEYS)?.join(project.trim_start_matches("sha256:")))
    }

    /// Returns the store of one server, or several that share a folder.
    fn file_store(&self) -> FileStore {
        FileStore::new(self.keys_folder(), self.state_dir.as_deref())
    }

    /// Checks the combination of options.
    ///
    /// # Errors
    ///
    /// A usage error.
    fn check(&self) -> anyhow::Result<()> {
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
        if !address.ip().is_loopback() && self.tls_cert.is_none() {
            render::warning(&format!(
                "tokens and results reach {address} unencrypted: pass --tls-cert and --tls-key, or let only a balancer \
                 with TLS connect"
            ));
        }
        self.sign_in.check(address, self.tls_cert.is_some(), &self.host)?;
        if self.no_token && (self.tokens.is_some() || self.sign_in.file().is_some()) {
            let hint = "leave out `--no-token`, or `server.tokens` and `server.sign_in`";
            return Err(Advice::new("--no-token ignores tokens", hint).into());
        }
        Ok(())
    }

    /// Checks that some client can have access.
    ///
    /// # Errors
    ///
    /// No client has a token, or the tokens cannot be read.
    async fn check_tokens(&self, shared: Option<&SharedTokens>) -> anyhow::Result<()> {
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

    /// Builds the runtime for clients with these options, and publishes its tools. The observer outlives the runtime.
    fn publish(
        &self,
        observer: Option<Arc<dyn Observer>>,
        options: &[String],
        shared: Option<&Runtime>,
    ) -> anyhow::Result<Published> {
        let sources = match options {
            [] => Cow::Borrowed(&self.sources),
            options => Cow::Owned(self.sources.for_client(ClientOptions::parse(options)?)),
        };
        let parts = Arc::new(ProgressListeners::default());
        let kept = &sources.rules.kept;
        let approver = Arc::new(AgentApprover::new(
            kept.pending(),
            kept.file(),
            self.wait_approval,
            self.ask_in == Place::Terminal,
        ));
        let results = sources.results()?;
        let results = self.shared_results.iter().fold(results, |results, shared| results.shared_in(shared.clone()));
        let runtime = sources.runtime_with(self.tool_timeout.unwrap_or(self.timeout), [], |builder| {
            let own = [
                ("states of waiting calls", self.state_dir.clone()),
                ("key of the server", self.tls_key.clone()),
                ("results of calls with a key", self.keys_folder()),
            ];
            let own = own.into_iter().filter_map(|(label, path)| Some((label, path?)));
            let builder = shared.into_iter().fold(builder, Builder::share_with);
            let builder = own.fold(builder, |builder, (label, path)| builder.reserve(label, path, Access::Read));
            let builder = builder.results(results.clone());
            let builder = self.remote.attach(builder);
            let builder = builder.approver(approver).observer(parts.clone()).application("mcp", Map::new());
            let builder = self.tokens.as_deref().into_iter().chain(self.sign_in.file()).fold(builder, Builder::protect);
            let files = self.database.iter().flat_map(StoreSettings::files);
            let builder = files.fold(builder, Builder::protect);
            let builder = self.opened.iter().fold(builder, |builder, effects| effects.attach(builder));
            observer.into_iter().fold(builder, Builder::observer)
        })?;
        let max_listed = self.max_listed.unwrap_or(DEFAULT_LISTED) as usize;
        Ok(Published::new(runtime, parts, results, sources.deny_flags(), max_listed))
    }

    /// Publishes the tools for clients with these options while the server runs. This blocks.
    fn publish_again(
        &self,
        observer: Option<Arc<dyn Observer>>,
        options: &[String],
        shared: &Runtime,
    ) -> anyhow::Result<Published> {
        let published = self.publish(observer, options, Some(shared))?;
        // A changed source is no longer trusted.
        if options.is_empty() {
            self.sources.hint_untrusted(published.runtime(), None);
        }
        Handle::current().block_on(self.prepare(published.runtime()))?;
        Ok(published)
    }

    /// Compiles the tools while the server answers: clients wait only seconds for it, and a call waits for its own program.
    ///
    /// # Errors
    ///
    /// With `--strict`, a tool cannot be compiled; all are compiled before this returns.
    async fn prepare(&self, runtime: &Runtime) -> anyhow::Result<()> {
        let (sources, runtime) = (self.sources.clone(), runtime.clone());
        let prepare = async move { sources.prepare(&runtime, false).await };
        if self.sources.strict {
            return prepare.await;
        }
        tokio::spawn(async move {
            if let Err(error) = prepare.await {
                render::warning(&render::message(&error));
            }
        });
        Ok(())
    }

    async fn endpoint(&self, address: SocketAddr, shared: Option<Arc<SharedTokens>>) -> anyhow::Result<Endpoint> {
        let limits = self.limits.limits();
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Certificate::read(certificate, key)?),
            _ => None,
        };
        let tokens = if self.no_token { None } else { Some(Tokens::of_user()?) };
        let listener = TcpListener::bind(address).await.map_err(|error| {
            let hint = "choose another address, or end the program that uses it";
            anyhow::Error::from(error).context(Advice::new(format!("cannot listen on {address}"), hint))
        })?;
        let loopback = ["localhost", "127.0.0.1", "::1"].into_iter().filter_map(|host| host.parse().ok());
        let hosts: Vec<_> = loopback.chain(self.host.iter().cloned()).chain(self.sign_in.host()).collect();
        let own = own_address(listener.local_addr()?, tls.is_some(), &hosts);
        let access = ClientAccess::new(tokens, limits.rate);
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
        Ok(Endpoint {
            listener,
            tls,
            access,
            limits,
            hosts,
            origins: self.origin.clone(),
            is_stateless: self.stateless,
        })
    }
}
