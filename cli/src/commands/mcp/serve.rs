//! Service of `toolcrib mcp`: the options, the runtime that is published, and the transport.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Map;
use tokio::runtime::Handle;
use toolcrib::observe::Observer;
use toolcrib::results::SharedResults;
use toolcrib::tool::Access;
use toolcrib::{Builder, Runtime};
use toolcrib_agent::telemetry::{Root, TelemetryOptions};
use toolcrib_base::interrupt;
use toolcrib_base::parse::approval_wait;
use toolcrib_base::parse::{count, delay, duration};
use toolcrib_base::render;
use toolcrib_mcp::{
    AgentApprover, Handler, ProgressListeners, Publication, Published, Quotas, Seal, WatchedSources, serve_http,
    serve_stdio, watch,
};
use toolcrib_packages::builtin;
use toolcrib_settings::config::StoreSettings;
use toolcrib_sources::options::{AskOptions, ClientOptions, Effects, Sources, StageOption};

use super::endpoint::HttpOptions;
use super::live::{self, ServerOptions};
use super::store::OpenedStore;
use crate::commands::remote::RemoteOptions;
use crate::commands::stage;

/// Default number of tools above which a search finds them.
const DEFAULT_LISTED: u32 = 128;

/// Options of the service.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    http: HttpOptions,
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
    /// Quotas of a server over HTTP.
    #[arg(skip)]
    counted: Option<Arc<Quotas>>,
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
    args.http.check()?;
    args.http.warn();
    args.sources = args.sources.offering_code(args.code);
    args.sources.rules.mode = args.ask.server_rule();
    args.sources.rules.asks_about_flows = true;
    args.sources.fetch().await?;
    args.remote.open(&args.stage).await?;
    args.opened = Some(Effects::open(&args.stage, "mcp", None, args.sources.rules.config_file())?);
    if args.http.is_http() {
        args.database = args.sources.rules.config(&args.sources.trust.trusted()?, false)?.store;
    }
    let opened = OpenedStore::open(args.database.as_ref(), args.http.file_store()).await?;
    args.shared_results = opened.results();
    let store = opened.store.clone();
    args.counted = args.http.is_http().then(|| Arc::new(Quotas::new(args.http.quotas.rules(), store.clone())));
    opened.share(&mut args.sources);
    let tokens = opened.tokens();
    args.http.check_tokens(tokens.as_deref()).await?;
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
    let noted = if opened.is_database() { opened.note_log(&args.sources.log.folder()?) } else { None };
    let seal = match args.http.state_dir.is_some() || opened.is_database() {
        true => Seal::shared(store.clone()).await?,
        false => Seal::new()?,
    };
    let handler = Handler::new(publication, seal, args.ask_in == Place::Client);
    let mut handler = handler.with_tasks_after(args.task_after);
    if opened.is_database() || args.http.keys_folder().is_some() {
        handler = handler.with_keys_in(store.clone());
    }
    if args.http.metrics_by_token {
        handler = handler.counting_tokens();
    }
    if let Some(quotas) = &args.counted {
        handler = handler.with_quotas(quotas.clone());
    }
    handler = opened.attach(handler);
    // Until the last spans are sent.
    let _guard = interrupt::server();
    let end = match args.http.address() {
        None => {
            if io::stdin().is_terminal() {
                render::hint("waiting for a client on standard input; `toolcrib mcp config CLIENT` connects one");
            }
            serve_stdio(handler).await
        }
        Some(address) => {
            let settings = live::follow(
                args.sources.rules.config_file(),
                args.options(false)?,
                args.http.own_host(),
                args.counted.clone(),
            );
            serve_http(handler, args.http.endpoint(address, tokens, settings).await?).await
        }
    };
    if let Some(noted) = noted {
        noted.finish().await;
    }
    store.close().await;
    telemetry.finish().await;
    let staged = stage::close(args.opened, false).await;
    let end = end?;
    staged.map(|()| end)
}

impl Args {
    /// `true` for a server over HTTP.
    pub(super) fn is_http(&self) -> bool {
        self.http.is_http()
    }

    /// Checks the options, and returns those that have settings.
    ///
    /// # Errors
    ///
    /// A usage error, or a mistake in a settings file.
    pub(super) fn checked(&self) -> anyhow::Result<ServerOptions> {
        self.http.check()?;
        // These layers count as used: the next runtime reads its own.
        self.options(true)
    }

    fn options(&self, is_reread: bool) -> anyhow::Result<ServerOptions> {
        let store = self.sources.rules.config(&self.sources.trust.trusted()?, is_reread)?.store;
        let others = vec![("store", format!("{store:?}")), ("task_after", format!("{:?}", self.task_after))];
        Ok(self.http.options(others))
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
                ("states of waiting calls", self.http.state_dir.clone()),
                ("key of the server", self.http.tls_key.clone()),
                ("results of calls with a key", self.http.keys_folder()),
            ];
            let own = own.into_iter().filter_map(|(label, path)| Some((label, path?)));
            let builder = shared.into_iter().fold(builder, Builder::share_with);
            let builder = own.fold(builder, |builder, (label, path)| builder.reserve(label, path, Access::Read));
            let builder = builder.results(results.clone());
            let builder = self.counted.iter().fold(builder, |builder, quotas| builder.hook(quotas.clone()));
            let builder = self.remote.attach(builder);
            let builder = builder.approver(approver).observer(parts.clone()).application("mcp", Map::new());
            let builder =
                self.http.tokens.as_deref().into_iter().chain(self.http.sign_in.file()).fold(builder, Builder::protect);
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
}
