//! Options shared by all commands that load tools: sources, permissions, limits, records. They are turned into a runtime
//! here and nowhere else.

mod ahead;
mod ask_mode;
mod audit_log;
mod checking;
mod client;
mod compiling;
mod denials;
mod effects;
mod hooks;
mod network;
mod own_files;
mod patterns;
mod permissions;
mod records;
mod results;
mod rules;
mod secrets;
mod services;
mod skills;
mod sources;
mod stage;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::FalseyValueParser;
use toolcrib::policy::{Policy, Rule, StoredApproval};
use toolcrib::tool::{Access, Body, LimitRequest, Limits};
use toolcrib::{Audit, Builder, KeyValue, Results, Runtime, SharedEntries, Tool};
use toolcrib_base::headings::{LIMITS, RECORDS, TOOLS};
use toolcrib_base::parse::{MAX_COUNT, count, duration, size};
use toolcrib_base::render;
use toolcrib_packages::registries::{HeldBundles, SourceRegistries, localize};
use toolcrib_packages::servers::ServerClient;
use toolcrib_settings::config::{Config, Mask, project_of};
use toolcrib_settings::permission::{DenyFlags, TerminalApprover};
use toolcrib_settings::secrets::{PASSPHRASE, SECRETS};
use toolcrib_settings::trust_options::TrustOptions;

pub use ask_mode::AskOptions;
pub use audit_log::AuditLog;
use checking::with_place;
pub use checking::{DeadRule, RuleCheck, check_permissions, check_rules};
pub use client::ClientOptions;
pub use compiling::{Compiling, ProgramUse};
use denials::{denials, given_denials};
pub use effects::{ClosedStage, Effects, header, history, required_history, warn_about_record};
use own_files::keep_apart;
use permissions::{Permissions, refuse_unmatched, warn_about_assigned};
pub use records::{Recording, RecordsFolder};
pub use results::ResultsFolder;
pub use rules::{Kept, RULES, Rules};
pub use secrets::KeptSecrets;
pub use sources::{default_source, project_file, sources_beside};
pub use stage::{StageOption, refused, stages};

/// Tools for programs. A call of one needs no `--code`.
pub const CODE_TOOLS: [&str; 3] = ["run_code", "search_tools", "describe_tool"];
/// Minimum length of a masked secret, in characters: masking shorter ones would garble every text.
const MIN_SECRET_LEN: usize = 4;
/// Default number of concurrent calls.
const DEFAULT_CONCURRENCY: u16 = 32;
/// Maximum number of source warnings printed.
const MAX_WARNINGS: usize = 50;

/// Tool sources with their permissions, limits and records.
#[derive(Debug, Clone, clap::Args)]
pub struct Sources {
    /// A `tools.json`, a Markdown file, a component, a folder of them, a bundle, an `oci://` reference, or `builtin` for
    /// the built-in tools; repeatable
    /// [default: ./tools.json, else ./.harness, and the installed bundles; `builtin` in a folder without any]
    #[arg(long, value_name = "PATH", help_heading = TOOLS)]
    pub tools: Vec<PathBuf>,
    /// Trusted content.
    #[command(flatten)]
    pub trust: TrustOptions,
    /// `true` to offer the tools for programs in place of the others.
    #[arg(skip)]
    code: bool,
    /// Fail if any tool cannot be used, instead of continuing without it
    #[arg(long, help_heading = TOOLS)]
    pub strict: bool,

    #[command(flatten)]
    permissions: Permissions,
    /// Store of secrets.
    #[command(flatten)]
    pub secrets: KeptSecrets,
    #[command(flatten)]
    network: network::Network,

    /// Rules over calls.
    #[command(flatten)]
    pub rules: Rules,
    /// Tag this run; tools can require or exclude tags
    #[arg(long, value_name = "TAG", value_delimiter = ',', help_heading = TOOLS)]
    tag: Vec<String>,

    /// Maximum time per call, such as `10s`; caps the tool's own limit, --tool-timeout and --timeout
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = LIMITS)]
    max_timeout: Option<Duration>,
    /// Maximum memory per call, such as `64MiB`
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = LIMITS)]
    max_memory: Option<usize>,
    /// Maximum output per call, such as `256KiB`
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = LIMITS)]
    max_output: Option<usize>,
    /// Maximum bytes written to disk per call, such as `16MiB`; removing files does not free quota
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = LIMITS)]
    max_disk: Option<usize>,
    /// Maximum files, folders and links created per call
    #[arg(long, value_name = "N", value_parser = count::<u64, 1, { u64::MAX }>, help_heading = LIMITS)]
    max_disk_entries: Option<u64>,
    /// Maximum fuel per call, about one unit per instruction; metering slows calls down
    #[arg(long, value_name = "UNITS", value_parser = count::<u64, 0, { u64::MAX }>, help_heading = LIMITS)]
    fuel: Option<u64>,
    /// Maximum concurrent calls [default: 32]
    #[arg(long, value_name = "N", value_parser = count::<u16, 1, 1000>, help_heading = LIMITS)]
    concurrency: Option<u16>,

    /// Folder of the audit log.
    #[command(flatten)]
    pub log: AuditLog,
    /// Log only the size and the SHA-256 digest of the arguments of calls
    #[arg(long, env = "TOOLCRIB_NO_LOG_ARGUMENTS", hide_env_values = true, help_heading = RECORDS)]
    #[arg(value_parser = FalseyValueParser::new())]
    pub no_log_arguments: bool,
    /// Mask these in records: regular expressions or plain texts, separated by `;` or `,` (but not by a `,` inside
    /// `{2,3}` or `[a,b]`, or after a `\`)
    #[arg(long, value_name = "LIST", env = "TOOLCRIB_REDACT", hide_env_values = true, help_heading = RECORDS)]
    redact: Option<String>,
    #[command(flatten)]
    results: ResultsFolder,
    /// Directory that persists values stored through `wasi:keyvalue`
    ///
    /// Without it, values last only for the run. Each tool can read only its own values.
    #[arg(long, value_name = "DIR", env = "TOOLCRIB_KEYVALUE_DIR", hide_env_values = true, help_heading = RECORDS)]
    keyvalue_dir: Option<PathBuf>,
    /// Values of tools that servers share, without a directory for them.
    #[arg(skip)]
    pub shared_values: Option<Arc<dyn SharedEntries>>,
    /// Truncate results over this many characters for the model; the full result, up to --max-output, is stored and
    /// referenced [default: 65536]
    #[arg(long, value_name = "CHARS", value_parser = count::<u32, 1, MAX_COUNT>, help_heading = LIMITS)]
    max_inline: Option<u32>,
    /// Compilation and its cache.
    #[command(flatten)]
    pub compiling: Compiling,
    #[command(flatten)]
    registries: SourceRegistries,
    /// Permissions and rules of one client, in addition to those for all.
    #[arg(skip)]
    client: Option<Box<ClientOptions>>,
    /// Name of the one tool that is called, if a call with its error follows.
    #[arg(skip)]
    pub called: Option<String>,
    /// `true` to offer `run_code` beside the tools.
    #[arg(skip)]
    pub offers_programs: bool,
    #[arg(skip)]
    held: HeldBundles,
}

impl Sources {
    /// Pulls the bundles that the sources refer to, and replaces the references with the bundle files, also for the
    /// built-in tools. Every command calls this before it uses the sources.
    pub async fn fetch(&mut self) -> anyhow::Result<()> {
        self.hold_builtin()?;
        self.held.extend(localize(&mut self.tools, &self.registries, self.compiling.cache()).await?);
        Ok(())
    }

    /// Builds the runtime that these options describe; `secrets` are masked in its log. Prints source warnings to standard
    /// error.
    pub fn runtime(
        &self,
        default_deadline: Duration,
        secrets: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<Runtime> {
        self.runtime_with(default_deadline, secrets, |builder| builder)
    }

    /// Builds the runtime after `with` has added observers and services to the builder.
    pub fn runtime_with(
        &self,
        default_deadline: Duration,
        secrets: impl IntoIterator<Item = String>,
        with: impl FnOnce(Builder) -> Builder,
    ) -> anyhow::Result<Runtime> {
        self.runtime_asking(self.rules.kept.terminal_approver()?, default_deadline, secrets, with)
    }

    /// Builds the runtime with an approver, whose stored approvals it takes.
    pub fn runtime_asking(
        &self,
        approver: Arc<TerminalApprover>,
        default_deadline: Duration,
        secrets: impl IntoIterator<Item = String>,
        with: impl FnOnce(Builder) -> Builder,
    ) -> anyhow::Result<Runtime> {
        let trusted = self.trust.trusted()?;
        let config = self.rules.config(&trusted, true)?;
        let approvals = self.rules.kept.file();
        let vault = self.secrets.vault().ok();
        let mut builder = Runtime::builder(self.audit(secrets)?)
            .strict(self.strict)
            .policy(self.policy(&config)?)
            .approvals(approver.earlier().iter().map(StoredApproval::approval))
            .approver(approver)
            .limits(Limits::with_deadline(default_deadline))
            .ceiling(self.ceiling())
            .environment(environment())
            .scheduler(config.scheduler)
            .remote(Arc::new(ServerClient::default()))
            .results(self.results.results()?);
        if let Some(secrets) = self.secrets.secrets() {
            builder = builder.secrets(&secrets);
        }
        builder = self.network.configure(builder)?;
        for Mask { name, pattern } in &config.masks {
            builder = builder.mask(name, pattern);
        }
        for tag in self.tag.iter().chain(&config.tags) {
            builder = builder.tag(tag);
        }
        for (name, tool) in &config.routes {
            builder = builder.route(name, tool);
        }
        for (tool, settings) in &config.tools {
            builder = builder.configure(tool, settings.clone());
        }
        let installed = self.installed()?;
        installed.hints.iter().for_each(|hint| render::hint(hint));
        for source in self.paths_with(&installed)? {
            builder = self.add_source(builder, source);
        }
        builder = self.trust.apply(builder, &trusted, self.called.as_deref());
        for bundle in installed.bundles {
            builder = builder.trust_part_at(bundle.file, bundle.review, bundle.granted);
        }
        // No tool changes what a later command may run.
        builder = config.interpreters.iter().fold(builder, Builder::protect);
        builder = skills::settle(builder, &config);
        let programs = self.programs();
        builder = self.compiling.settle(builder, programs);
        if programs != ProgramUse::None {
            let add = |builder: Builder, file: &PathBuf| builder.code_component(file).context("`sources.interpreters`");
            builder = config.interpreters.iter().try_fold(builder, add)?;
        }
        if programs == ProgramUse::Alone {
            builder = builder.code_mode(config.direct.clone());
        }
        if let Some(characters) = self.max_inline.map(|characters| characters as usize) {
            builder = builder.max_inline(characters);
        }
        let values = self.keyvalue_dir.as_ref().map(KeyValue::folder);
        let values = values.or_else(|| self.shared_values.clone().map(KeyValue::shared));
        builder = values.into_iter().fold(builder, Builder::keyvalue);
        if let Some(tools) = config.defer_above {
            builder = builder.defer_above(tools);
        }
        if let Some(calls) = self.concurrency {
            builder = builder.concurrency(calls.into());
        }
        if self.asks_at_end(&config) {
            builder = builder.call_stages(stage::for_calls()?);
        }
        builder = keep_apart(builder, approvals.as_ref(), self.rules.kept.pending().as_ref(), vault.as_ref());
        builder = config.files.iter().fold(builder, Builder::protect);
        let runtime = with(builder).build().map_err(|error| with_place(error, &config.rules, &config.denials))?;
        let assigned = given_denials(&config)?;
        if !self.permissions().any(Permissions::lets_add_tools) {
            self.rules.refuse_misspelt(&runtime, &config, self.client.as_ref().map(|client| &client.rules))?;
            let mut denied = self.permissions().flat_map(Permissions::denied).chain(assigned.iter().cloned());
            denied.try_for_each(|denied| refuse_unmatched(&self.located(denied), &runtime))?;
        }
        // The options of one client change nothing about the sources.
        if self.client.is_none() {
            self.trust.warn_about_unused(&self.paths()?);
            self.warn(&runtime);
        }
        self.permissions().for_each(|permissions| {
            permissions.secrets.warn_about_unrequested(&runtime);
            permissions.warn_about_unknown_tools(&runtime);
            permissions.warn_about_missing_folders();
        });
        warn_about_assigned(&assigned, &runtime);
        for (key, path) in &config.missing_places {
            render::warning(&format!("`{key}`: `{}` does not exist", render::one_line(&path.display().to_string())));
        }
        Ok(runtime)
    }

    /// Prepares the runtime for calls of one tool alone, unless an option is compared with the requests of all tools.
    pub fn only(&self, builder: Builder, tool: &str) -> Builder {
        match self.permissions().any(|permissions| permissions.secrets.has_allowed()) {
            true => builder,
            false => builder.only(tool),
        }
    }

    /// Returns the store of results that are too large for a model.
    ///
    /// # Errors
    ///
    /// The user has no home directory, and no folder is named.
    pub fn results(&self) -> anyhow::Result<Results> {
        self.results.results()
    }

    /// Copies the options; `code` offers the tools for programs in place of the others.
    pub fn offering_code(&self, code: bool) -> Self {
        Self { code, ..self.clone() }
    }

    /// Copies the options and grants write access to one more folder.
    pub fn also_writing(&self, folder: PathBuf) -> Self {
        let mut sources = self.clone();
        sources.also_allow(folder, Access::Write);
        sources
    }

    /// Grants one more folder.
    pub fn also_allow(&mut self, folder: PathBuf, access: Access) {
        self.permissions.also_allow(folder, access);
    }

    /// Returns `true` if a flag or a settings file allows or denies a folder.
    pub fn names_folders(&self) -> bool {
        self.permissions().any(Permissions::names_folders)
    }

    /// Returns the same sources with the permissions and rules of one client in addition.
    pub fn for_client(&self, client: ClientOptions) -> Self {
        Self { code: self.code || client.code, client: Some(Box::new(client)), ..self.clone() }
    }

    /// Returns the permission flags for all clients, and the flags of one client.
    fn permissions(&self) -> impl Iterator<Item = &Permissions> {
        [&self.permissions].into_iter().chain(self.client.iter().map(|client| &client.permissions))
    }

    /// Returns the denials of flags and of settings files, for hints.
    pub fn deny_flags(&self) -> DenyFlags {
        let flags = DenyFlags::new(self.permissions().flat_map(Permissions::denied));
        // A mistake in the settings has stopped the command already.
        let trusted = self.trust.trusted().unwrap_or_default();
        let config = self.rules.config(&trusted, false).unwrap_or_default();
        flags.with_settings(denials(&config).unwrap_or_default())
    }

    /// Returns the permissions and rules of the flags and settings.
    pub fn policy(&self, config: &Config) -> anyhow::Result<Policy> {
        let located = |permission| self.located(permission);
        let allowed = self.permissions.allow_in(Policy::default(), project_of, |permission| {
            Self::is_there(&permission).then(|| self.bound_to_content(located(permission)))
        });
        let of_client = self.client.iter().flat_map(|client| client.permissions.allowed()).map(located);
        let allowed = of_client.chain(self.guards()?).fold(allowed, Policy::allow);
        let configured = denials(config)?.into_iter().map(|(permission, _)| permission);
        let denied = self.permissions().flat_map(Permissions::denied).chain(configured).map(located);
        let policy = denied.fold(allowed, Policy::deny);
        Ok(self.all_rules(config).fold(policy, Policy::rule).labels(config.labels.clone()))
    }

    /// Returns the rules from the flags, the settings and one client.
    fn all_rules(&self, config: &Config) -> impl Iterator<Item = Rule> {
        self.rules.rules(config).chain(self.client.iter().flat_map(|client| client.rules.rules()))
    }

    /// Returns `true` if any rule holds back what a call writes, and asks at its end.
    fn asks_at_end(&self, config: &Config) -> bool {
        self.all_rules(config).any(|rule| rule.is_at_end())
    }

    fn ceiling(&self) -> LimitRequest {
        let mut ceiling = LimitRequest::default();
        ceiling.deadline = self.max_timeout;
        ceiling.memory = self.max_memory;
        ceiling.stdout = self.max_output;
        ceiling.disk_bytes = self.max_disk.map(|size| size as u64);
        ceiling.disk_entries = self.max_disk_entries;
        ceiling.fuel = self.fuel;
        ceiling.requests = self.network.max_requests.map(|most| most as usize);
        ceiling.received = self.network.max_received;
        ceiling
    }

    /// Returns the audit log with its masks.
    pub fn audit(&self, secrets: impl IntoIterator<Item = String>) -> anyhow::Result<Audit> {
        let (patterns, texts) = self.masks(secrets);
        let audit = Audit::folder(self.log.folder()?).redact(patterns).redact_literal(texts);
        Ok(if self.no_log_arguments { audit.without_arguments() } else { audit })
    }

    /// Returns the masks for all stored data: patterns and literal texts.
    pub fn masks(&self, secrets: impl IntoIterator<Item = String>) -> (Vec<String>, Vec<String>) {
        let patterns = self.redact.iter().flat_map(|list| patterns::listed(list)).map(str::to_owned);
        let secrets = SECRETS.iter().filter_map(|name| std::env::var(name).ok()).chain(secrets);
        let texts = secrets.map(|secret| secret.trim().to_owned()).filter(|secret| is_maskable(secret));
        (patterns.collect(), texts.collect())
    }

    /// Returns the number of concurrent calls.
    pub fn at_once(&self) -> usize {
        self.concurrency.unwrap_or(DEFAULT_CONCURRENCY).into()
    }
}

/// Lists the tools for programs that a runtime offers, which are not among the tools of its sources.
pub fn code_tools(runtime: &Runtime) -> impl Iterator<Item = &Tool> {
    let is_own = |tool: &&Tool| matches!(tool.body, Body::Builtin(_));
    CODE_TOOLS.into_iter().filter_map(|name| runtime.tool(name)).filter(is_own)
}

/// `true` if a secret is long enough to be masked.
pub fn is_maskable(secret: &str) -> bool {
    secret.chars().count() >= MIN_SECRET_LEN
}

/// The process environment that grants select from, without the passphrase of the secret store.
fn environment() -> impl Iterator<Item = (String, String)> {
    let all =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    // Some systems ignore the case of the name.
    all.filter(|(name, _)| !name.eq_ignore_ascii_case(PASSPHRASE))
}
