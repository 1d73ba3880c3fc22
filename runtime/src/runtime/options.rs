//! Settings of a [`Builder`], in groups. Each setter replaces or extends one setting; nothing is checked before
//! [`Builder::build`].

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::audit::Audit;
use crate::call::clipped;
use crate::delegate::Delegate;
use crate::error::Error;
use crate::hook::Hook;
use crate::model::Model;
use crate::observe::Observer;
use crate::pipeline::{InterpreterSource, Scheduler};
use crate::policy::{Approval, Approver, Policy, Secrets};
use crate::remote::RemoteTools;
use crate::sandbox;
use crate::sandbox::compiler::Compiler;
use crate::store::keyvalue::KeyValue;
use crate::store::results::Results;
use crate::tool::{Access, LimitRequest, Limits};

use super::Runtime;
use super::builder::Builder;

/// # Sources
impl Builder {
    /// Adds a tool source: a `tools.json`, an Agent Tool definition, a Markdown file, a component, or a folder of them.
    #[must_use]
    pub fn source(mut self, path: impl Into<PathBuf>) -> Self {
        self.sources.push(path.into());
        self
    }

    /// Adds a source that the operator vouches for, whatever its content: folders, hosts, variables, secrets and limits that
    /// its entries name are granted, but nothing that its programs request by themselves.
    #[must_use]
    pub fn trusted_source(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.trusted.vouch(path.clone());
        self.source(path)
    }

    /// Adds a source like [`Builder::trusted_source`], with tools that yield to the tools of other sources: a tool is
    /// left out if another has its name, or a name that looks like it.
    #[must_use]
    pub fn yielding_source(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.yielding.push(path.clone());
        self.trusted_source(path)
    }

    /// Trusts sources with this digest of a [`SourceReview`](crate::policy::SourceReview), at any path: everything that they request is
    /// granted.
    #[must_use]
    pub fn trust(mut self, digest: impl Into<String>) -> Self {
        self.trusted.pin(None, digest.into());
        self
    }

    /// Trusts the source at a path as long as its [`SourceReview`](crate::policy::SourceReview) has this digest: everything that it
    /// requests is granted.
    #[must_use]
    pub fn trust_at(mut self, path: impl AsRef<Path>, digest: impl Into<String>) -> Self {
        self.trusted.pin(Some(path.as_ref()), digest.into());
        self
    }

    /// Trusts the source at a path like [`Builder::trust_at`], but grants only these of its requests, written as
    /// [`named_requests`](crate::policy::named_requests) lists them. Its other named requests are removed: no flag grants them.
    #[must_use]
    pub fn trust_part_at(
        mut self,
        path: impl AsRef<Path>,
        digest: impl Into<String>,
        granted: impl IntoIterator<Item = String>,
    ) -> Self {
        self.trusted.pin_part(path.as_ref(), digest.into(), granted.into_iter().collect());
        self
    }

    /// Trusts a tool of the source at a path that a [`ReviewedItem`](crate::policy::ReviewedItem) describes, as long as its
    /// definition and its program have these digests. This counts where the tool is loaded alone ([`Builder::only`]), so that the
    /// programs of the others need not be read for [`Builder::trust_at`].
    ///
    /// Use it only for a review that [has tools alone](crate::policy::SourceReview::has_tools_alone): the digests of a tool do not
    /// show that a hook or a policy was removed.
    #[must_use]
    pub fn trust_tool_at(
        mut self,
        path: impl AsRef<Path>,
        name: impl Into<String>,
        definition: impl Into<String>,
        program: Option<String>,
    ) -> Self {
        self.trusted.pin_tool(path.as_ref(), name.into(), (definition.into(), program));
        self
    }

    /// Makes an unusable tool an error of [`Builder::build`]. By default it is disabled with a warning, and the other
    /// tools work.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Prepares the runtime for calls of one tool, by its name or an alias, which run one after the other. The other tools are
    /// listed as unusable and cannot be called. Their programs and schemas are not read, so that a source with many tools costs
    /// no more than a source with one, their faults are not reported, and aliases that only their programs state are unknown.
    /// Two kinds of sources are read whole: components without a definition, whose names are in their programs, and a
    /// reviewed source that has the tool, unless the tool is reviewed by itself ([`Builder::trust_tool_at`]).
    ///
    /// The option has no effect where the others matter: with [`strict`](Builder::strict), hooks, rules over arguments, a tool
    /// that calls others, a rich tool whose component has others, a script, a name that is unknown or that several tools have,
    /// and names that conflict unless a tool is left out.
    #[must_use]
    pub fn only(mut self, tool: impl Into<String>) -> Self {
        self.only = Some(tool.into());
        self
    }

    /// Enables a feature. A tool that names features in `feature_gate_refs` can be called when all of them are enabled.
    #[must_use]
    pub fn feature(mut self, name: impl Into<String>) -> Self {
        self.features.insert(name.into());
        self
    }

    /// Adds a tag of the run. A tool that requires another tag, or forbids this one, is neither shown nor called.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.audience.tags.insert(tag.into());
        self
    }

    /// Names the model that sees the tools. Tools for other models are neither shown nor called.
    #[must_use]
    pub fn for_model(mut self, name: impl Into<String>) -> Self {
        self.audience.model = Some(name.into());
        self
    }

    /// Lists the abilities of the model's server, such as `custom_tools`. Tools that need another ability are neither
    /// shown nor called. Without a list, no tool is excluded.
    #[must_use]
    pub fn provider(mut self, abilities: impl IntoIterator<Item = String>) -> Self {
        self.audience.provider = Some(abilities.into_iter().collect());
        self
    }

    /// Number of tools above which a model sees only the tools that are always loaded, and searches for the others.
    /// Default: 40.
    #[must_use]
    pub fn defer_above(mut self, tools: usize) -> Self {
        self.defer_above = tools;
        self
    }
}

/// # Permissions
impl Builder {
    /// Sets the permissions and rules of the operator.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the variables that grants may pass on. A tool sees only those that it was granted.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment = variables.into_iter().collect();
        self
    }

    /// Sets the store of secrets. A granted secret is read at the first call that needs it, once for all calls.
    #[must_use]
    pub fn secrets(mut self, secrets: &Secrets) -> Self {
        self.secrets = Some(secrets.clone());
        self
    }

    /// Sets the handler of approval requests. Without one, every call that requires approval is refused.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Adds permanent approvals that were given earlier.
    #[must_use]
    pub fn approvals(mut self, approvals: impl IntoIterator<Item = Approval>) -> Self {
        self.approvals.extend(approvals);
        self
    }

    /// Keeps a folder or file of the host out of every grant: no tool gets access of `least` or more to a folder that is,
    /// holds or lies in `path`, by any name. `label` names it in the error. The audit log, the compile cache, stored
    /// results and stored key-value pairs are reserved by default.
    #[must_use]
    pub fn reserve(mut self, label: impl Into<String>, path: impl Into<PathBuf>, least: Access) -> Self {
        self.reserved.push((label.into(), path.into(), least));
        self
    }

    /// Prevents tools from writing, replacing or moving a file or folder inside their grants, such as settings that later
    /// sessions read. Sources and their programs are protected by default, and so are the names listed by
    /// [`controlled_by`](crate::policy::controlled_by).
    #[must_use]
    pub fn protect(mut self, path: impl Into<PathBuf>) -> Self {
        self.protected.push(path.into());
        self
    }
}

/// # Limits
impl Builder {
    /// Sets the limits of tools that set none. Deadlines are capped at [`Limits::MAX_DEADLINE`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Limits { deadline: limits.deadline.min(Limits::MAX_DEADLINE), ..limits };
        self
    }

    /// Sets the operator's limits. They replace the defaults, and no tool gets more. A deadline here is only the maximum.
    #[must_use]
    pub fn ceiling(mut self, ceiling: LimitRequest) -> Self {
        self.ceiling = ceiling;
        self
    }

    /// Sets the number of calls that run at the same time, from 1 to 1,000. Further calls wait. Default: 32.
    #[must_use]
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = u32::try_from(calls).unwrap_or(u32::MAX).clamp(1, 1000);
        self
    }

    /// Shares the engine, the compiled programs and the limits for running and waiting calls with another runtime in this process,
    /// so that one for each user costs little. The compiler and its cache are those of the other runtime; with other name servers or
    /// roots, only the limits are shared. Permissions, rules, sources and conversations are not shared. While several conversations have calls, none of them
    /// takes the last free place from the others.
    #[must_use]
    pub fn share_with(mut self, runtime: &Runtime) -> Self {
        self.shared = Some(runtime.pipeline.clone());
        self
    }

    /// Sets how the calls of one step are ordered, and how many calls may wait.
    #[must_use]
    pub fn scheduler(mut self, scheduler: Scheduler) -> Self {
        self.scheduler = scheduler;
        self
    }
}

/// # Compilation
impl Builder {
    /// Sets the private folder for compiled code. Without one, each runtime compiles every program again.
    #[must_use]
    pub fn compile_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.compile_cache = Some(folder.into());
        self
    }

    /// Sets the maximum total bytes of the entries in the folder for [`Builder::compile_cache`]. After a compilation,
    /// the least recently used entries that exceed it are removed, as [`Cache::prune`](crate::cache::Cache::prune)
    /// does; a larger program is not stored. Default: [`DEFAULT_MAX_BYTES`](crate::cache::DEFAULT_MAX_BYTES), 2 GiB.
    #[must_use]
    pub fn max_cache(mut self, bytes: u64) -> Self {
        self.max_cache = bytes;
        self
    }

    /// Sets a compiler that runs with its own limits, usually in another process. Without one, programs are compiled in
    /// this process, where compilation cannot be stopped: only the checks before it bound its input.
    #[must_use]
    pub fn compiler(mut self, compiler: Arc<dyn Compiler>) -> Self {
        self.compiler = Some(compiler);
        self
    }

    /// Sets the interpreter of scripts: a component with the world `toolcrib:script/interpreter-guest`. Without one, no
    /// script runs.
    #[must_use]
    pub fn interpreter(mut self, component: impl Into<Bytes>) -> Self {
        self.interpreter = Some(InterpreterSource::Bytes(component.into()));
        self
    }

    /// Sets the interpreter of scripts as [`Builder::interpreter`] does, by the digest of its component, as `sha256:HEX`.
    /// `read` returns the component, and is called only if the cache does not contain its code.
    #[must_use]
    pub fn stored_interpreter(
        mut self,
        digest: impl Into<Arc<str>>,
        read: impl Fn() -> io::Result<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        self.interpreter = Some(InterpreterSource::Stored(digest.into(), Arc::new(read)));
        self
    }
}

/// # Audit and extensions
impl Builder {
    /// Replaces the audit log.
    #[must_use]
    pub fn audit(mut self, audit: Audit) -> Self {
        self.audit = audit;
        self
    }

    /// Sets the identifier of the program's run, at most 256 characters, in all audit log records. By default each
    /// runtime has a random one.
    #[must_use]
    pub fn run_id(mut self, id: impl Into<String>) -> Self {
        self.run = Some(clipped(&id.into()));
        self
    }

    /// Adds a hook that may block or change calls and results.
    #[must_use]
    pub fn hook(mut self, hook: Arc<dyn Hook>) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Adds an observer of every call.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Sets the handler of tasks that scripts and hooks delegate. Without one, delegation is refused.
    #[must_use]
    pub fn delegate(mut self, delegate: Arc<dyn Delegate>) -> Self {
        self.delegate = Some(delegate);
        self
    }

    /// Sets the model that answers completion requests of tools. Without one, they are refused.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// Sets the client for the servers of remote tools. Without one, their calls are refused.
    #[must_use]
    pub fn remote(mut self, remote: Arc<dyn RemoteTools>) -> Self {
        self.remote = Some(remote);
        self
    }
}

/// # Results and stored values
impl Builder {
    /// Sets the store of results that are too long for the model. Without one, results are returned whole.
    #[must_use]
    pub fn results(mut self, results: Results) -> Self {
        self.results = Some(results);
        self
    }

    /// Sets the maximum characters of a result that a model gets whole. It replaces the default and caps the value that a
    /// tool declares. A result is never longer than the output limit of its call.
    #[must_use]
    pub fn max_inline(mut self, characters: usize) -> Self {
        self.max_inline = Some(characters);
        self
    }

    /// Adds a mask that tools can name in `redaction_policy_refs`: every match of the pattern in their results is
    /// removed. The pattern is a regular expression, or, if it is not a valid one, literal text.
    #[must_use]
    pub fn mask(mut self, name: impl Into<String>, pattern: impl Into<String>) -> Self {
        self.masks.insert(name.into(), pattern.into());
        self
    }

    /// Sets the store of `wasi:keyvalue`. Without one, values last as long as the session.
    #[must_use]
    pub fn keyvalue(mut self, keyvalue: KeyValue) -> Self {
        self.keyvalue = Some(keyvalue);
        self
    }
}

/// # Call context
impl Builder {
    /// Routes calls of a name to a tool, whatever tools claim. The empty name means calls without a name.
    #[must_use]
    pub fn route(mut self, name: impl Into<String>, tool: impl Into<String>) -> Self {
        self.routes.insert(name.into(), tool.into());
        self
    }

    /// Sets the configuration of a tool: a rich tool finds it under `config` in its call context, any other tool through
    /// `wasi:config`.
    #[must_use]
    pub fn configure(mut self, tool: impl Into<String>, config: Value) -> Self {
        self.contexts.config.insert(tool.into(), config);
        self
    }

    /// Names the entry point of the calls, also for their records, and adds the application's members to their context.
    /// Callers cannot override them.
    #[must_use]
    pub fn application(mut self, door: impl Into<String>, more: Map<String, Value>) -> Self {
        self.contexts.trigger_source = Some(clipped(&door.into()));
        self.contexts.application = more;
        self
    }
}

/// # Network
impl Builder {
    /// Sets the name servers, in the order in which they are queried. Without any, the system's resolver configuration and
    /// hosts file are used.
    #[must_use]
    pub fn name_servers(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.name_servers.extend(addresses);
        self
    }

    /// Trusts the certificates of a PEM text as roots, in addition to the system's roots.
    ///
    /// # Errors
    ///
    /// [`Error::Network`] if the text holds no certificate, or one that cannot be a root.
    pub fn root_certificates(mut self, pem: &[u8]) -> Result<Self, Error> {
        self.roots.extend(sandbox::certificates(pem).map_err(Error::Network)?);
        Ok(self)
    }
}
