//! What an embedder decides before the first call: sources, policy, limits, who is asked and who listens.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::audit::{Audit, Redactions};
use crate::call::{Behavior, Decision, Reason};
use crate::delegate::Delegate;
use crate::error::Error;
use crate::hook::Hook;
use crate::observe::Observer;
use crate::pipeline::{Hooks, Interpreters, Listener, Memory, Pipeline, Ready, Scheduler, Scripted, builtin};
use crate::policy::{self, Allowed, Approval, Approver, Grant, Policy, Secrets};
use crate::registry::Registry;
use crate::results::Results;
use crate::sandbox::compiler::Compiler;
use crate::sandbox::{self, Certificates, Client, Sandbox};
use crate::schema::Input;
use crate::source::{self, Problem, Severity};
use crate::tool::{Body, Builtin, LimitRequest, Limits, Tool, Visibility};

use super::Runtime;

/// The settings of a [`Runtime`]. Nothing is allowed that is not said here.
pub struct Builder {
    sources: Vec<PathBuf>,
    policy: Policy,
    audit: Audit,
    limits: Limits,
    ceiling: LimitRequest,
    environment: HashMap<String, String>,
    compile_cache: Option<PathBuf>,
    compiler: Option<Arc<dyn Compiler>>,
    concurrency: u32,
    hooks: Vec<Arc<dyn Hook>>,
    observers: Vec<Arc<dyn Observer>>,
    approver: Option<Arc<dyn Approver>>,
    approvals: Vec<Approval>,
    scheduler: Scheduler,
    defer_above: usize,
    results: Option<Results>,
    most_inline: Option<usize>,
    masks: HashMap<String, String>,
    features: HashSet<String>,
    secrets: Option<Secrets>,
    name_servers: Vec<SocketAddr>,
    roots: Certificates,
    interpreter: Option<Bytes>,
    delegate: Option<Arc<dyn Delegate>>,
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
            most_inline: None,
            masks: HashMap::new(),
            features: HashSet::new(),
            secrets: None,
            name_servers: Vec::new(),
            roots: Certificates::new(),
            interpreter: None,
            delegate: None,
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

    /// The limits of tools that name none.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
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

    /// The most characters of an answer that a model is told whole, where its tool names more.
    #[must_use]
    pub fn most_inline(mut self, characters: usize) -> Self {
        self.most_inline = Some(characters);
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

    /// Reads the sources and settles what each tool is granted. Nothing is compiled or run.
    ///
    /// # Errors
    ///
    /// The first problem of a source, of the policy or of the engine.
    pub fn build(self) -> Result<Runtime, Error> {
        let (mut tools, mut scripted, mut policies, mut warnings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for path in &self.sources {
            let loaded = source::load(path)?;
            warnings.extend(loaded.warnings);
            tools.extend(loaded.tools);
            scripted.extend(loaded.hooks);
            policies.extend(loaded.policies);
        }
        let allowed = Allowed::resolve(&self.policy)?;
        let defers = tools.len() > self.defer_above;
        let mut ready = Vec::with_capacity(tools.len() + 4);
        for tool in &mut tools {
            ready.push(self.ready(tool, &allowed, defers)?);
        }
        let mut listeners: Vec<_> = self.hooks.iter().cloned().map(Listener::Own).collect();
        for mut hook in scripted {
            if !hook.tool.requested.secrets.is_empty() {
                let message = format!("hook {:?}: capabilities.secrets: a hook is given none", hook.tool.name);
                return Err(Error::Source { path: hook.tool.origin.path.to_path_buf(), message });
            }
            let ready = self.ready(&mut hook.tool, &allowed, false)?;
            listeners.push(Listener::Script(Box::new(Scripted { hook, ready })));
        }
        let mut builtins = Vec::new();
        let has_tasks = tools.iter().any(|tool| matches!(&tool.body, Body::Script(script) if script.background));
        builtins.extend(ready.iter().any(|ready| ready.deferred).then_some(Builtin::ToolSearch));
        builtins.extend(self.results.is_some().then_some(Builtin::ReadResult));
        builtins.extend([Builtin::TaskPoll, Builtin::TaskAwait].into_iter().filter(|_| has_tasks));
        for mut tool in builtins.into_iter().map(builtin::tool) {
            ready.push(self.ready(&mut tool, &Allowed::default(), false)?);
            tools.push(tool);
        }
        for rule in self.policy.rules().about_none(&tools) {
            let nearest =
                source::nearest(rule.only_tool().unwrap_or_default(), tools.iter().map(|tool| tool.name.as_str()));
            let hint = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
            warnings.push(Problem {
                severity: Severity::Warning,
                path: PathBuf::from("rules"),
                place: None,
                message: format!("`{rule}` is about no tool that is loaded{hint}"),
            });
        }
        let mut registry = Registry::default();
        for tool in tools {
            registry.add(tool)?;
        }
        let audit = match &self.secrets {
            Some(secrets) => self.audit.redact_secrets(secrets),
            None => self.audit,
        };
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| Error::Engine(error.to_string()))?;
        let pipeline = Pipeline {
            registry,
            ready,
            rules: self.policy.rules().clone(),
            approved: self.approvals.into_iter().collect(),
            approver: self.approver,
            hooks: Hooks::new(listeners),
            interpreters: Interpreters::new(self.interpreter),
            delegate: self.delegate,
            policies,
            observers: self.observers,
            scheduler: self.scheduler,
            results: self.results,
            most_inline: self.most_inline,
            secrets: self.secrets.clone(),
            audit: Arc::new(audit),
            sandbox: Arc::new(Sandbox::new(
                self.concurrency,
                self.compile_cache,
                self.compiler,
                Client::new(self.name_servers, self.roots),
            )?),
            slots: std::array::from_fn(|_| Semaphore::new(self.concurrency as usize)),
            waiting: AtomicUsize::new(0),
            seed: u64::from_ne_bytes(seed),
            calls: AtomicU64::new(0),
        };
        Ok(Runtime { pipeline: Arc::new(pipeline), warnings: warnings.into(), memory: Arc::new(Memory::open()) })
    }

    /// Settles what is known of a tool before its first call.
    fn ready(&self, tool: &mut Tool, allowed: &Allowed, defers: bool) -> Result<Ready, Error> {
        let wrong = |message: String| Error::Source {
            path: tool.origin.path.to_path_buf(),
            message: format!("tool {:?}: {message}", tool.name),
        };
        let input = Input::compile(tool).map_err(wrong)?;
        let mut masks = Redactions::default();
        for name in &tool.interface.result.redaction_policy_refs.value {
            let pattern = self.masks.get(name).ok_or_else(|| {
                wrong(format!(
                    "interface.redaction_policy_refs: no mask is named `{name}`; define it, or remove it here"
                ))
            })?;
            masks.add([pattern.clone()]);
        }
        let grant = Grant::new(tool, allowed, &self.environment)?;
        self.refuse_reach(&grant)?;
        if grant.is_read_only() {
            tool.interface.infer_read_only();
        }
        let limits = tool.limits.within(&self.ceiling, self.limits, tool.origin.is_operators());
        let discovery = &tool.interface.discovery;
        let deferred = discovery.should_defer.value
            || discovery.schema_visibility.value == Visibility::Deferred
            || (defers && !discovery.always_load.value);
        let closed = self.closed(tool, &grant);
        let slots = (self.concurrency as usize).div_ceil(2);
        let mut ready = Ready::new(input, grant, limits, slots);
        (ready.closed, ready.deferred, ready.masks) = (closed, deferred, masks);
        Ok(ready)
    }

    /// Why a tool cannot be called, whatever the arguments.
    fn closed(&self, tool: &Tool, grant: &Grant) -> Option<(Decision, String)> {
        if let Some(rule) = self.policy.rules().blocks(tool) {
            let decision = Decision::new(Behavior::Deny, Reason::Rule, rule.to_string());
            return Some((decision, "refused by a rule of the operator's".to_owned()));
        }
        let by_record = |field: &str, why: String| Some((Decision::new(Behavior::Deny, Reason::Record, field), why));
        if let Some(closed) = &tool.closed {
            return by_record(closed.by, closed.why.clone());
        }
        let availability = &tool.interface.availability;
        if !availability.is_enabled.value {
            return by_record("is_enabled", "the tool is switched off".to_owned());
        }
        if let Some(setup) = &availability.requires_setup.value {
            return by_record("requires_setup", format!("the tool has to be set up first: {setup}"));
        }
        let gate = availability.feature_gate_refs.value.iter().find(|name| !self.features.contains(*name));
        if let Some(name) = gate {
            return by_record("feature_gate_refs", format!("the tool waits for the feature `{name}`, which is not on"));
        }
        let missing = |name: &&String| !grant.env_keys().any(|key| key == name.as_str());
        if let Some(name) = availability.required_credentials.value.iter().find(missing) {
            return by_record(
                "required_credentials",
                format!("the tool needs the variable `{name}`, which it is not granted"),
            );
        }
        None
    }

    /// No guest may reach the audit log or the compile cache: with the one it could forge records, with the other code.
    fn refuse_reach(&self, grant: &Grant) -> Result<(), Error> {
        let own = [
            ("audit log", self.audit.place()),
            ("compile cache", self.compile_cache.as_deref()),
            ("kept results", self.results.as_ref().map(Results::path)),
        ];
        for (what, place) in own {
            let Some(place) = place else { continue };
            let place = policy::real_path(place);
            if let Some(folder) = grant.folders().iter().find(|folder| policy::overlap(&folder.host, &place)) {
                return Err(Error::Permission {
                    permission: format!("{}:{}", folder.access.as_str(), folder.host.display()),
                    reason: format!("would let a tool reach the {what} in {}; keep the two apart", place.display()),
                });
            }
        }
        Ok(())
    }
}
