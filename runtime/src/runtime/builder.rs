//! What an embedder decides before the first call: sources, policy, limits, who is asked and who listens.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::audit::Audit;
use crate::delegate::Delegate;
use crate::error::Error;
use crate::hook::Hook;
use crate::keyvalue::KeyValue;
use crate::model::Model;
use crate::observe::Observer;
use crate::pipeline::{
    CallContexts, ChainedHook, Concurrency, HookChain, Interpreters, Memory, Pipeline, ProgramCompiler, Scheduler,
    ScriptHook, builtin,
};
use crate::policy::{self, Allowed, Approval, Approver, Policy, Secrets};
use crate::results::Results;
use crate::sandbox::compiler::Compiler;
use crate::sandbox::{self, Certificates, Client, Sandbox};
use crate::source;
use crate::tool::{Access, Body, Builtin, LimitRequest, Limits, ScriptedHook, Tool};

use super::Runtime;
use super::settle::{Audience, registered};

/// The settings of a [`Runtime`]. Nothing is allowed that is not said here.
pub struct Builder {
    pub(super) sources: Vec<PathBuf>,
    pub(super) policy: Policy,
    pub(super) audit: Audit,
    pub(super) limits: Limits,
    pub(super) ceiling: LimitRequest,
    pub(super) environment: HashMap<String, String>,
    pub(super) compile_cache: Option<PathBuf>,
    compiler: Option<Arc<dyn Compiler>>,
    pub(super) concurrency: u32,
    hooks: Vec<Arc<dyn Hook>>,
    observers: Vec<Arc<dyn Observer>>,
    approver: Option<Arc<dyn Approver>>,
    approvals: Vec<Approval>,
    scheduler: Scheduler,
    pub(super) defer_above: usize,
    pub(super) results: Option<Results>,
    pub(super) keyvalue: Option<KeyValue>,
    max_inline: Option<usize>,
    pub(super) masks: HashMap<String, String>,
    pub(super) features: HashSet<String>,
    secrets: Option<Secrets>,
    name_servers: Vec<SocketAddr>,
    roots: Certificates,
    interpreter: Option<Bytes>,
    delegate: Option<Arc<dyn Delegate>>,
    model: Option<Arc<dyn Model>>,
    routes: HashMap<String, String>,
    contexts: CallContexts,
    pub(super) audience: Audience,
    pub(super) strict: bool,
    pub(super) reserved: Vec<(String, PathBuf, Access)>,
    pub(super) protected: Vec<PathBuf>,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            sources: Vec::new(),
            policy: Policy::default(),
            audit: Audit::off(),
            limits: Limits::default(),
            ceiling: LimitRequest::default(),
            environment: HashMap::new(),
            compile_cache: None,
            compiler: None,
            concurrency: 32,
            hooks: Vec::new(),
            observers: Vec::new(),
            approver: None,
            approvals: Vec::new(),
            scheduler: Scheduler::default(),
            defer_above: 40,
            results: None,
            keyvalue: None,
            max_inline: None,
            masks: HashMap::new(),
            features: HashSet::new(),
            secrets: None,
            name_servers: Vec::new(),
            roots: Certificates::new(),
            interpreter: None,
            delegate: None,
            model: None,
            routes: HashMap::new(),
            contexts: CallContexts::default(),
            audience: Audience::default(),
            strict: false,
            reserved: Vec::new(),
            protected: Vec::new(),
        }
    }

    /// Adds a source of tools: a `tools.json`, a folder of components, or a component.
    #[must_use]
    pub fn source(mut self, path: impl Into<PathBuf>) -> Self {
        self.sources.push(path.into());
        self
    }

    /// What the operator allows and denies.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Where calls are signed for.
    #[must_use]
    pub fn audit(mut self, audit: Audit) -> Self {
        self.audit = audit;
        self
    }

    /// The limits of tools that name none. A deadline is at most [`Limits::MAX_DEADLINE`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Limits { deadline: limits.deadline.min(Limits::MAX_DEADLINE), ..limits };
        self
    }

    /// What the operator sets: it stands in the place of the defaults, and no tool gets more. A deadline is only the
    /// longest that there may be.
    #[must_use]
    pub fn ceiling(mut self, ceiling: LimitRequest) -> Self {
        self.ceiling = ceiling;
        self
    }

    /// The variables from which grants are filled; a tool sees those that it was granted.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment = variables.into_iter().collect();
        self
    }

    /// A private folder for compiled code. Without one, each runtime compiles anew.
    #[must_use]
    pub fn compile_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.compile_cache = Some(folder.into());
        self
    }

    /// Who compiles programs in a place with limits of its own. Without one they are compiled in this process, where
    /// nothing stops a compiler: the checks before it bound what it is given, and no more.
    #[must_use]
    pub fn compiler(mut self, compiler: Arc<dyn Compiler>) -> Self {
        self.compiler = Some(compiler);
        self
    }

    /// How many calls run at once, at least one; further ones wait.
    #[must_use]
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = u32::try_from(calls).unwrap_or(u32::MAX).clamp(1, 1000);
        self
    }

    /// Adds something that may block a call or change it.
    #[must_use]
    pub fn hook(mut self, hook: Arc<dyn Hook>) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Adds somebody who watches every call.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Who is asked where a rule says so. Without one the answer is no.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// What a person agreed to earlier, for always.
    #[must_use]
    pub fn approvals(mut self, approvals: impl IntoIterator<Item = Approval>) -> Self {
        self.approvals.extend(approvals);
        self
    }

    /// How the calls of one step go together, and how many calls may wait.
    #[must_use]
    pub fn scheduler(mut self, scheduler: Scheduler) -> Self {
        self.scheduler = scheduler;
        self
    }

    /// With more tools than this, a model is shown those that are always loaded, and finds the others by a search.
    #[must_use]
    pub fn defer_above(mut self, tools: usize) -> Self {
        self.defer_above = tools;
        self
    }

    /// Where answers are kept that are too long to be told whole. Without a place they are told whole.
    #[must_use]
    pub fn results(mut self, results: Results) -> Self {
        self.results = Some(results);
        self
    }

    /// Where tools keep the values that they set through `wasi:keyvalue`. Without a place they last as long as a session.
    #[must_use]
    pub fn keyvalue(mut self, keyvalue: KeyValue) -> Self {
        self.keyvalue = Some(keyvalue);
        self
    }

    /// The most characters of an answer that a model is told whole: instead of the default, and at most of what a record
    /// declares. No more than the output of a call may be is told in any case.
    #[must_use]
    pub fn max_inline(mut self, characters: usize) -> Self {
        self.max_inline = Some(characters);
        self
    }

    /// Switches a feature on: a tool whose record waits for features can be called when all of them are on.
    #[must_use]
    pub fn feature(mut self, name: impl Into<String>) -> Self {
        self.features.insert(name.into());
        self
    }

    /// A mask that tools' records can name: what the pattern matches in their answers is never told. The pattern is a
    /// regular expression, or, where it is not a valid one, the text itself.
    #[must_use]
    pub fn mask(mut self, name: impl Into<String>, pattern: impl Into<String>) -> Self {
        self.masks.insert(name.into(), pattern.into());
        self
    }

    /// Where the values of secrets are kept. A call of a tool that is granted one reads it there, once for all calls.
    #[must_use]
    pub fn secrets(mut self, secrets: &Secrets) -> Self {
        self.secrets = Some(secrets.clone());
        self
    }

    /// Who is asked about the names of hosts, in this order. Without any, the system's name servers and its hosts file.
    #[must_use]
    pub fn name_servers(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.name_servers.extend(addresses);
        self
    }

    /// Trusts the certificates of a PEM text to vouch for hosts, beside the system's own roots.
    ///
    /// # Errors
    ///
    /// [`Error::Network`] where the text holds no certificate, or one that cannot vouch.
    pub fn root_certificates(mut self, pem: &[u8]) -> Result<Self, Error> {
        self.roots.extend(sandbox::certificates(pem).map_err(Error::Network)?);
        Ok(self)
    }

    /// The interpreter of scripts: a component with the world `toolcrib:script/interpreter-guest`. Without one no script
    /// runs.
    #[must_use]
    pub fn interpreter(mut self, component: impl Into<Bytes>) -> Self {
        self.interpreter = Some(component.into());
        self
    }

    /// Who takes over the tasks that scripts and hooks hand on. Without one they are refused.
    #[must_use]
    pub fn delegate(mut self, delegate: Arc<dyn Delegate>) -> Self {
        self.delegate = Some(delegate);
        self
    }

    /// Who answers the questions that tools ask a model. Without one they are refused.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// Which tool answers to a name that a model calls, whatever tools claim. The empty name is that of calls without one.
    #[must_use]
    pub fn route(mut self, name: impl Into<String>, tool: impl Into<String>) -> Self {
        self.routes.insert(name.into(), tool.into());
        self
    }

    /// What a rich tool finds under `config` in what surrounds its calls, and every other through `wasi:config`.
    #[must_use]
    pub fn configure(mut self, tool: impl Into<String>, config: Value) -> Self {
        self.contexts.config.insert(tool.into(), config);
        self
    }

    /// Through which door calls come, and what an application adds to what surrounds them. Callers override none of it.
    #[must_use]
    pub fn application(mut self, door: impl Into<String>, more: Map<String, Value>) -> Self {
        self.contexts.trigger_source = Some(door.into());
        self.contexts.application = more;
        self
    }

    /// Adds a tag of the run: tools that need another, or that are not for this one, are neither shown nor called.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.audience.tags.insert(tag.into());
        self
    }

    /// The model that is shown the tools: those that are for others are neither shown nor called.
    #[must_use]
    pub fn for_model(mut self, name: impl Into<String>) -> Self {
        self.audience.model = Some(name.into());
        self
    }

    /// All that the model's server can do, such as `custom_tools`: tools that need more are neither shown nor called.
    #[must_use]
    pub fn provider(mut self, abilities: impl IntoIterator<Item = String>) -> Self {
        self.audience.provider = Some(abilities.into_iter().collect());
        self
    }

    /// Makes a tool that cannot be used an error of [`Builder::build`]. Without this it is disabled, with a warning, and the
    /// others work.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Reads the sources and settles what each tool is granted. Nothing is compiled or run.
    ///
    /// # Errors
    ///
    /// The first problem of a whole source, of the policy or of the engine; of a hook, too, and of a tool where the runtime
    /// is [strict](Builder::strict).
    pub fn build(self) -> Result<Runtime, Error> {
        let (mut tools, mut scripted, mut policies, mut warnings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for path in &self.sources {
            let loaded = if self.strict { source::load(path)? } else { source::load_usable(path)? };
            warnings.extend(loaded.warnings);
            tools.extend(loaded.tools);
            if tools.len() > source::MAX_TOOLS {
                return Err(Error::Source { path: path.clone(), message: source::too_many(tools.len()) });
            }
            scripted.extend(loaded.hooks);
            policies.extend(loaded.policies);
        }
        let allowed = Allowed::resolve(&self.policy)?;
        let kept = self.kept(allowed.mounts());
        let loaded: Vec<&Tool> = tools.iter().chain(scripted.iter().map(|hook: &ScriptedHook| &hook.tool)).collect();
        let protected = self.protected(&kept, &loaded, allowed.mounts());
        let allowed = allowed.protecting(Arc::new(protected));
        let mut ready = self.settled(&mut tools, &allowed, &kept, &mut warnings)?;
        let mut listeners: Vec<_> = self.hooks.iter().cloned().map(ChainedHook::Embedder).collect();
        for mut definition in scripted {
            if !definition.tool.requested.secrets.is_empty() {
                let message = format!("hook {:?}: capabilities.secrets: a hook is given none", definition.tool.name);
                return Err(Error::Source { path: definition.tool.origin.path.to_path_buf(), message });
            }
            if let Some(why) = policy::dead_condition(&definition.event, &definition.when, &tools) {
                let message = format!("hook {:?}: when.args: {why}", definition.tool.name);
                return Err(Error::Source { path: definition.tool.origin.path.to_path_buf(), message });
            }
            let prepared = self.ready(&mut definition.tool, &allowed, &kept, false)?;
            if let Some(unusable) = &definition.tool.unusable {
                // A guard that cannot be loaded is not left out.
                return Err(unusable.fault.clone());
            }
            listeners.push(ChainedHook::Script(Box::new(ScriptHook { definition, prepared })));
        }
        let mut builtins = Vec::new();
        let has_tasks = tools.iter().any(|tool| matches!(&tool.body, Body::Script(script) if script.background));
        builtins.extend(ready.iter().any(|ready| ready.deferred).then_some(Builtin::ToolSearch));
        builtins.extend(self.results.is_some().then_some(Builtin::ReadResult));
        builtins.extend([Builtin::TaskPoll, Builtin::TaskAwait].into_iter().filter(|_| has_tasks));
        for mut tool in builtins.into_iter().map(builtin::tool) {
            ready.push(self.ready(&mut tool, &Allowed::default(), &kept, false)?);
            tools.push(tool);
        }
        warnings.extend(self.check_rules(&tools, &ready)?);
        let (registry, ready) = registered(tools.into_iter().zip(ready).collect())?;
        let audit = match &self.secrets {
            Some(secrets) => self.audit.redact_secrets(secrets),
            None => self.audit,
        };
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| Error::Engine(error.to_string()))?;
        let client = Client::new(self.name_servers, self.roots);
        let sandbox = Arc::new(Sandbox::new(self.concurrency, self.compile_cache, self.compiler, client)?);
        let pipeline = Pipeline {
            registry,
            prepared: ready,
            rules: Arc::new(self.policy.rules().clone()),
            approved: self.approvals.into_iter().collect(),
            approver: self.approver,
            hooks: HookChain::new(listeners),
            interpreters: Interpreters::new(sandbox.clone(), self.interpreter),
            delegate: self.delegate,
            model: self.model,
            routes: self.routes,
            contexts: self.contexts,
            policies,
            observers: self.observers,
            concurrency: Concurrency::new(self.concurrency, self.scheduler.queue),
            scheduler: self.scheduler,
            results: self.results,
            keyvalue: self.keyvalue,
            max_inline: self.max_inline,
            secrets: self.secrets.clone(),
            audit: Arc::new(audit),
            programs: ProgramCompiler::new(sandbox.clone()),
            sandbox,
            seed: u64::from_ne_bytes(seed),
            calls: AtomicU64::new(0),
        };
        Ok(Runtime { pipeline: Arc::new(pipeline), warnings: warnings.into(), memory: Arc::new(Memory::open()) })
    }
}
