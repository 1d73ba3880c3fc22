//! The options that every command with tools shares: which tools, what they may use, how much, and where calls are
//! signed for. They are turned into a runtime here and nowhere else.

mod compiling;
mod network;
mod patterns;
mod quantity;
mod records;
mod results;
mod rules;
mod secrets;
mod services;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use directories::ProjectDirs;
use futures::stream::{StreamExt, TryStreamExt};
use toolcrib::policy::{Approvals, Permission, Policy, StoredApproval};
use toolcrib::tool::{Access, LimitRequest, Limits};
use toolcrib::{Audit, Availability, Builder, KeyValue, Runtime};

use crate::config::{Config, Mask};
use crate::permission::Person;
use crate::progress;
use crate::render::{self, Advice};
use crate::secrets::{PASSPHRASE, Vault};

pub(crate) use compiling::Compiling;
pub(crate) use network::name_server;
pub(crate) use quantity::{duration, size, size_in_words};
pub(crate) use records::{Recording, RecordsFolder};
pub(crate) use results::ResultsFolder;
pub(crate) use rules::{Kept, Rules};
pub(crate) use secrets::{KeptSecrets, SecretOptions};

/// The source that is used where none is named, and what makes a folder the one that is used where it is not there.
const DEFAULT_SOURCE: &str = "./tools.json";
const HARNESS: [&str; 2] = ["./.harness", "./harness.md"];
/// Variables whose values never reach the audit log.
pub(crate) const SECRETS: [&str; 3] = ["OAI_API_KEY", "OPENAI_API_KEY", PASSPHRASE];
/// The shortest secret that is masked, in characters: masking a shorter one would garble every text.
const MIN_SECRET_LEN: usize = 4;
/// How many calls run at once where nobody says.
const DEFAULT_CONCURRENCY: u16 = 32;
/// The most warnings of the sources that are printed.
const MAX_WARNINGS: usize = 50;
/// Stands for a denial of everything.
const ALL: &str = "*";

const TOOLS: &str = "Tools";
const PERMISSIONS: &str = "What tools may use (nothing, unless allowed here or by a manifest of your own)";
const LIMITS: &str = "Limits";
pub(crate) const RECORDS: &str = "Records";

/// Which tools, with which permissions, limits and records.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Sources {
    /// A `tools.json`, a Markdown file, a component, or a folder with any of them; may be repeated [default:
    /// ./tools.json, else ./.harness]
    #[arg(long, value_name = "PATH", help_heading = TOOLS)]
    pub(crate) tools: Vec<PathBuf>,
    /// Fail where any tool cannot be used, instead of going on without it
    #[arg(long, help_heading = TOOLS)]
    strict: bool,

    /// Let tools read these folders and all below them
    #[arg(long, value_name = "DIR", value_delimiter = ',', help_heading = PERMISSIONS)]
    allow_read: Vec<PathBuf>,
    /// Let tools write, and so read, these folders and all below them
    #[arg(long, value_name = "DIR", value_delimiter = ',', help_heading = PERMISSIONS)]
    allow_write: Vec<PathBuf>,
    /// Let tools see these environment variables
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = PERMISSIONS)]
    allow_env: Vec<String>,
    /// Refuse reading in these folders, or everywhere; wins over any allowance
    #[arg(long, value_name = "DIR", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_read: Vec<PathBuf>,
    /// Refuse writing in these folders, or everywhere; wins over any allowance
    #[arg(long, value_name = "DIR", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_write: Vec<PathBuf>,
    /// Hide these environment variables, or all; wins over any allowance
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_env: Vec<String>,
    #[command(flatten)]
    pub(crate) secrets: SecretOptions,
    #[command(flatten)]
    network: network::Network,
    #[command(flatten)]
    services: services::Services,

    #[command(flatten)]
    pub(crate) rules: Rules,
    /// Give the run this tag: tools can need one, or refuse one
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', help_heading = TOOLS)]
    tags: Vec<String>,

    /// The longest that any call may take, such as `10s`, whatever its source says
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = LIMITS)]
    max_timeout: Option<Duration>,
    /// The most memory of one call, such as `64MiB`
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = LIMITS)]
    max_memory: Option<usize>,
    /// The most output of one call, such as `256KiB`
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = LIMITS)]
    max_output: Option<usize>,
    /// The most that one call may write to its folders, such as `16MiB`; what it removes again is not given back
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = LIMITS)]
    max_disk: Option<usize>,
    /// The most files, folders and links that one call may make
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = LIMITS)]
    max_disk_entries: Option<u64>,
    /// The most fuel of one call, about one unit an instruction; counting it makes calls slower
    #[arg(long, value_name = "UNITS", help_heading = LIMITS)]
    fuel: Option<u64>,
    /// How many calls run at once [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = LIMITS)]
    concurrency: Option<u16>,

    #[command(flatten)]
    pub(crate) log: AuditLog,
    /// Mask this in records: regular expressions or plain texts, separated by `;` or `,`; no separator is a `,` in
    /// `{2,3}` or `[a,b]`, nor what follows a `\`
    #[arg(long, value_name = "LIST", env = "TOOLCRIB_REDACT", hide_env_values = true, help_heading = RECORDS)]
    redact: Option<String>,
    #[command(flatten)]
    results: ResultsFolder,
    /// Where tools keep the values that they set through `wasi:keyvalue`, so that they outlast the run
    ///
    /// Without it they last as long as the run. A tool reads what it kept itself and nothing of another's.
    #[arg(long, value_name = "DIR", env = "TOOLCRIB_KEYVALUE_DIR", hide_env_values = true, help_heading = RECORDS)]
    keyvalue_dir: Option<PathBuf>,
    /// Give a model at most this many characters of an answer, up to --max-output; the whole is kept, and a reference to
    /// it told [default: 65536]
    #[arg(long, value_name = "CHARS", value_parser = clap::value_parser!(u32).range(1..), help_heading = LIMITS)]
    max_inline: Option<u32>,
    #[command(flatten)]
    pub(crate) compiling: Compiling,
}

/// Where the audit log lies.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AuditLog {
    /// Where every call is signed for [default: `toolcrib/audit` in your state folder]
    #[arg(long, value_name = "DIR", env = "TOOLCRIB_AUDIT_DIR", hide_env_values = true, help_heading = RECORDS)]
    audit_dir: Option<PathBuf>,
}

impl AuditLog {
    /// The folder.
    pub(crate) fn folder(&self) -> anyhow::Result<PathBuf> {
        let default = || {
            let user = user_folders()?;
            Some(user.state_dir().unwrap_or(user.data_local_dir()).join("audit"))
        };
        self.audit_dir.clone().or_else(default).ok_or_else(|| {
            Advice::new("no folder for the audit log: you have no home folder", "name one with `--audit-dir DIR`")
                .into()
        })
    }
}

impl Sources {
    /// The runtime that these options describe; `secrets` never reach its log. Warnings of the sources go to standard
    /// error.
    pub(crate) fn runtime(
        &self,
        default_deadline: Duration,
        secrets: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<Runtime> {
        self.runtime_with(default_deadline, secrets, |builder| builder)
    }

    /// The same, with what else a command wants in it: who watches the calls, who takes tasks over.
    pub(crate) fn runtime_with(
        &self,
        default_deadline: Duration,
        secrets: impl IntoIterator<Item = String>,
        with: impl FnOnce(Builder) -> Builder,
    ) -> anyhow::Result<Runtime> {
        let config = self.rules.config()?;
        let approvals = self.rules.kept.file();
        let vault = self.secrets.kept.vault().ok();
        let agreed = approvals.as_ref().map_or(Ok(Vec::new()), Approvals::read)?;
        let mut builder = Runtime::builder(self.audit(secrets)?)
            .strict(self.strict)
            .policy(self.policy(&config))
            .approvals(agreed.iter().map(StoredApproval::approval))
            .approver(Arc::new(Person::new(approvals.clone(), agreed)))
            .limits(Limits::with_deadline(default_deadline))
            .ceiling(self.ceiling())
            .environment(environment())
            .scheduler(config.scheduler)
            .results(self.results.results()?);
        if let Some(secrets) = self.secrets.kept.secrets() {
            builder = builder.secrets(&secrets);
        }
        builder = self.network.configure(builder, &config)?;
        for Mask { name, pattern } in &config.masks {
            builder = builder.mask(name, pattern);
        }
        for tag in self.tags.iter().chain(&config.tags) {
            builder = builder.tag(tag);
        }
        for (name, tool) in &config.routes {
            builder = builder.route(name, tool);
        }
        for (tool, settings) in &config.tools {
            builder = builder.configure(tool, settings.clone());
        }
        for source in self.paths()? {
            builder = builder.source(source);
        }
        builder = self.compiling.settle(builder);
        if let Some(characters) = self.max_inline.map(|characters| characters as usize).or(config.max_inline) {
            builder = builder.max_inline(characters);
        }
        if let Some(folder) = &self.keyvalue_dir {
            builder = builder.keyvalue(KeyValue::folder(folder));
        }
        if let Some(tools) = config.defer_above {
            builder = builder.defer_above(tools);
        }
        if let Some(calls) = self.concurrency {
            builder = builder.concurrency(calls.into());
        }
        builder = keep_apart(builder, approvals.as_ref(), vault.as_ref());
        builder = config.path.iter().fold(builder, Builder::protect);
        let runtime = with(builder).build()?;
        for problem in runtime.warnings().iter().take(MAX_WARNINGS) {
            render::warning(&format!("{}: {problem}", render::from_here(&problem.path).display()));
        }
        if let Some(more @ 1..) = runtime.warnings().len().checked_sub(MAX_WARNINGS) {
            render::warning(&format!("and {more} more: `toolcrib validate` names them all"));
        }
        Ok(runtime)
    }

    /// The same, but that tools may also write a folder.
    pub(crate) fn also_writing(&self, folder: PathBuf) -> Self {
        let mut sources = self.clone();
        sources.allow_write.insert(0, folder);
        sources
    }

    /// Compiles every tool ahead of its first call, several at once, and what hooks run on. Where that takes longer than a
    /// moment, a line on the terminal says so. A tool whose program cannot be compiled is disabled, with a warning.
    ///
    /// # Errors
    ///
    /// Hooks that have nothing to run on; with `--strict`, the first tool that is not compiled.
    pub(crate) async fn prepare(&self, runtime: &Runtime) -> anyhow::Result<()> {
        let usable = runtime.tools().filter(|tool| tool.unusable.is_none());
        let names: Vec<String> = usable.map(|tool| tool.name.clone()).collect();
        let at_once = std::thread::available_parallelism().map_or(1, usize::from);
        let bar = progress::counted("preparing tools", names.len());
        let prepared = futures::stream::iter(names)
            .map(|name| {
                let (runtime, bar) = (runtime.clone(), bar.clone());
                tokio::spawn(async move {
                    let prepared = runtime.prepare(&name).await.inspect(|()| bar.inc(1));
                    prepared.map_err(|error| (name, error))
                })
            })
            .buffered(at_once)
            .map(|task| match task.context("preparing a tool failed")? {
                Err((_, error)) if self.strict => Err(anyhow::Error::from(error)),
                prepared => Ok(prepared.err()),
            })
            .try_filter_map(|failed| std::future::ready(Ok(failed)))
            .try_collect::<Vec<_>>();
        let all = async {
            let failed = prepared.await?;
            runtime.prepare_hooks().await?;
            anyhow::Ok(failed)
        };
        let failed = progress::shown(&bar, all).await?;
        for (name, error) in failed.iter().take(MAX_WARNINGS) {
            let then = match runtime.availability(name) {
                Some(Availability::Unusable { .. }) => "the tool is disabled",
                // The system failed and not the program.
                _ => "the next call tries again",
            };
            render::warning(&format!("tool {name:?}: {error}; {then}"));
        }
        Ok(())
    }

    /// The sources that were named, or the default one.
    pub(crate) fn paths(&self) -> anyhow::Result<Vec<PathBuf>> {
        if self.tools.is_empty() { Ok(vec![default_source()?]) } else { Ok(self.tools.clone()) }
    }

    fn policy(&self, config: &Config) -> Policy {
        let everywhere = |path: &PathBuf| if path.as_os_str() == ALL { PathBuf::from("/") } else { path.clone() };
        let allowed = (self.allow_read.iter().cloned().map(Permission::Read))
            .chain(self.allow_write.iter().cloned().map(Permission::Write))
            .chain(self.allow_env.iter().cloned().map(Permission::Env))
            .chain(self.network.allowed())
            .chain(self.services.allowed())
            .chain(self.secrets.allowed());
        let denied = (self.deny_read.iter().map(everywhere).map(Permission::Read))
            .chain(self.deny_write.iter().map(everywhere).map(Permission::Write))
            .chain(self.deny_env.iter().cloned().map(Permission::Env))
            .chain(self.network.denied())
            .chain(self.services.denied())
            .chain(self.secrets.denied());
        let policy = denied.fold(allowed.fold(Policy::default(), Policy::allow), Policy::deny);
        self.rules.rule(policy, config)
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

    pub(crate) fn audit(&self, secrets: impl IntoIterator<Item = String>) -> anyhow::Result<Audit> {
        let (patterns, texts) = self.masks(secrets);
        Ok(Audit::folder(self.log.folder()?).redact(patterns).redact_literal(texts))
    }

    /// What is masked wherever something is kept: patterns, and texts letter for letter.
    fn masks(&self, secrets: impl IntoIterator<Item = String>) -> (Vec<String>, Vec<String>) {
        let patterns = self.redact.iter().flat_map(|list| patterns::listed(list)).map(str::to_owned);
        let secrets = SECRETS.iter().filter_map(|name| std::env::var(name).ok()).chain(secrets);
        let texts = secrets.map(|secret| secret.trim().to_owned()).filter(|secret| is_maskable(secret));
        (patterns.collect(), texts.collect())
    }

    /// How many calls run at once.
    pub(crate) fn at_once(&self) -> usize {
        self.concurrency.unwrap_or(DEFAULT_CONCURRENCY).into()
    }
}

/// The source that is used where none is named: the first that is there.
pub(crate) fn default_source() -> anyhow::Result<PathBuf> {
    if Path::new(DEFAULT_SOURCE).is_file() {
        return Ok(DEFAULT_SOURCE.into());
    }
    if HARNESS.iter().any(|path| Path::new(path).exists()) {
        return Ok(".".into());
    }
    let message = format!("no tools: there is no `{DEFAULT_SOURCE}` and no `{}` in this folder", HARNESS[0]);
    let hint = "name a `tools.json`, a Markdown file, a component or a folder of them with `--tools PATH`, or make a \
                tool with `toolcrib new tool NAME --markdown`";
    Err(Advice::new(message, hint).into())
}

/// Whether a secret is long enough to be masked.
pub(crate) fn is_maskable(secret: &str) -> bool {
    secret.chars().count() >= MIN_SECRET_LEN
}

/// The process's own environment, of which tools get what they are granted; never what opens all secrets.
fn environment() -> impl Iterator<Item = (String, String)> {
    let all =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    all.filter(|(name, _)| name != PASSPHRASE)
}

/// Keeps what is the program's own apart from what tools are granted: they could agree to their own calls, or open what is
/// locked. The default places are kept apart too while flags name others.
fn keep_apart(builder: Builder, approvals: Option<&Approvals>, vault: Option<&Vault>) -> Builder {
    let approvals = approvals.map(|file| ("approvals", file.path().to_path_buf(), Access::Write));
    let secrets = vault.map(|vault| ("secrets", vault.path().to_path_buf(), Access::Read));
    let key = vault.map(|vault| ("key of the secrets", vault.key_path().to_path_buf(), Access::Read));
    let state = state_folder("").map(|folder| ("state of earlier sessions", folder, Access::Read));
    let cache = user_folders().map(|user| ("default compile cache", user.cache_dir().to_path_buf(), Access::Read));
    let all = [approvals, secrets, key, state, cache].into_iter().flatten();
    all.fold(builder, |builder, (what, path, least)| builder.reserve(what, path, least))
}

fn user_folders() -> Option<ProjectDirs> {
    ProjectDirs::from("", "", "toolcrib")
}

/// A folder of this name for what outlives a run, beside the others of its kind.
fn state_folder(name: &str) -> Option<PathBuf> {
    let user = user_folders()?;
    Some(user.state_dir().unwrap_or(user.data_local_dir()).join(name))
}
