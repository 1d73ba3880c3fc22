//! Construction of a [`Runtime`] from its settings: sources, permissions, limits, extensions.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;
use toolcrib_staging::{Record, Stage, Stages};

use crate::audit::Audit;
use crate::delegate::Delegate;
use crate::error::Error;
use crate::hook::Hook;
use crate::model::Model;
use crate::observe::Observer;
use crate::pipeline::{
    CallContexts, ChainedHook, CodeInterpreters, CodeLanguage, Concurrency, HookChain, InterpreterSource, Interpreters,
    Memory, Pipeline, PreparedTool, ProgramCompiler, Scheduler, builtin, session_id,
};
use crate::policy::{Allowed, Approval, Approver, FlowPolicy, HookAccess, Policy, Secrets};
use crate::registry::Registry;
use crate::remote::RemoteTools;
use crate::sandbox::compiler::Compiler;
use crate::sandbox::{Certificates, HttpClient, Instances, Sandbox};
use crate::source::{self, Diagnostic, OpenBundle, ToolsPolicy};
use crate::store::cache::{self, Cache};
use crate::store::keyvalue::KeyValue;
use crate::store::results::Results;
use crate::tool::{
    Access, Body, Builtin, CommandLine, Enablement, Glob, LimitRequest, Limits, ScriptLanguage, ScriptedHook, Tool,
};
use crate::worker::Workers;

use super::Runtime;
use super::load::IdentifiedSource;
use super::prepare::limit_warnings;
use super::trust::{TrustedSources, UntrustedSource};

/// Maximum number of large arguments that are masked at the same time.
const MAX_MASKINGS: usize = 4;

/// Finds the program that runs the scripts of skills in a language.
pub(super) type FindProgram = dyn Fn(ScriptLanguage) -> Option<PathBuf> + Send + Sync;

/// Settings of a [`Runtime`]. Nothing is allowed by default.
///
/// The setters are grouped by subject; [`Builder::build`] reads the sources and grants permissions.
pub struct Builder {
    pub(super) sources: Vec<PathBuf>,
    /// Sources with tools that yield to the tools of other sources.
    pub(super) yielding: Vec<PathBuf>,
    pub(super) trusted: TrustedSources,
    pub(super) strict: bool,
    /// Name of the only tool that is called, if the embedder calls one.
    pub(super) only: Option<String>,
    pub(super) features: HashSet<String>,
    pub(super) audience: Audience,
    pub(super) defer_above: usize,

    pub(super) policy: Policy,
    pub(super) environment: HashMap<String, String>,
    pub(super) secrets: Option<Secrets>,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) approvals: Vec<Approval>,
    /// Label, path and least refused access of each reserved place.
    pub(super) reserved: Vec<(String, PathBuf, Access)>,
    pub(super) protected: Vec<PathBuf>,
    pub(super) stage: Option<Arc<Stage>>,
    pub(super) call_stages: Option<Stages>,
    pub(super) record: Option<Arc<Record>>,

    pub(super) limits: Limits,
    pub(super) ceiling: LimitRequest,
    pub(super) concurrency: u32,
    pub(super) scheduler: Scheduler,
    /// Runtime with the shared engine, programs and limits of calls.
    pub(super) shared: Option<Arc<Pipeline>>,
    /// Limits of concurrent calls, once a tool needs them.
    pub(super) limits_of_calls: OnceLock<Arc<Concurrency>>,

    pub(super) compile_cache: Option<PathBuf>,
    pub(super) max_cache: u64,
    pub(super) compiler: Option<Arc<dyn Compiler>>,
    pub(super) interpreter: Option<InterpreterSource>,
    /// Search for the programs that run the scripts of skills.
    pub(super) skill_programs: Option<Box<FindProgram>>,
    /// Folder for copies of skills.
    pub(super) skill_copies: Option<PathBuf>,
    pub(super) code: Vec<CodeLanguage>,
    /// Tools that a model calls directly in code mode; `None` outside of it.
    pub(super) direct: Option<Vec<Glob>>,

    pub(super) audit: Audit,
    /// Identifier of the program's run, if the embedder sets one.
    pub(super) run: Option<String>,
    pub(super) hooks: Vec<Arc<dyn Hook>>,
    pub(super) observers: Vec<Arc<dyn Observer>>,
    pub(super) delegate: Option<Arc<dyn Delegate>>,
    pub(super) model: Option<Arc<dyn Model>>,
    pub(super) remote: Option<Arc<dyn RemoteTools>>,
    pub(super) workers: Option<Arc<dyn Workers>>,

    pub(super) results: Option<Results>,
    pub(super) max_inline: Option<usize>,
    pub(super) masks: HashMap<String, String>,
    pub(super) keyvalue: Option<KeyValue>,

    pub(super) routes: HashMap<String, String>,
    pub(super) command_lines: HashMap<String, Arc<CommandLine>>,
    pub(super) contexts: CallContexts,

    pub(super) name_servers: Vec<SocketAddr>,
    pub(super) roots: Certificates,
}

/// Audience of a runtime: its tags and the model that sees its tools, as far as they are known.
#[derive(Debug, Clone, Default)]
pub(super) struct Audience {
    /// Tags of the run.
    pub(super) tags: BTreeSet<String>,
    /// Name of the model, if there is one.
    pub(super) model: Option<String>,
    /// Abilities of the model's server, if they are known.
    pub(super) provider: Option<BTreeSet<String>>,
}

impl Audience {
    /// Returns the field that excludes a tool from this audience, and the reason in words for the model.
    pub(super) fn excludes(&self, enablement: &Enablement) -> Option<(&'static str, String)> {
        let Enablement { required_tags, forbidden_tags, models, provider, .. } = enablement;
        if let Some(tag) = required_tags.iter().find(|tag| !self.tags.contains(*tag)) {
            return Some(("required_tags", format!("the tool needs the tag `{tag}`, which this run does not have")));
        }
        if let Some(tag) = forbidden_tags.iter().find(|tag| self.tags.contains(*tag)) {
            return Some(("forbidden_tags", format!("the tool is not for runs with the tag `{tag}`")));
        }
        if let Some(model) = self.model.as_ref().filter(|_| !models.is_empty())
            && !models.iter().any(|pattern| pattern.is_match(model))
        {
            let wanted: Vec<_> = models.iter().map(|pattern| format!("`{}`", pattern.as_str())).collect();
            return Some(("models", format!("the tool is for the models {}, not for `{model}`", wanted.join(", "))));
        }
        let can = self.provider.as_ref()?;
        let missing = provider.iter().find(|ability| !can.contains(*ability))?;
        Some(("provider", format!("the tool needs a server with `{missing}`")))
    }
}

impl Builder {
    pub(super) fn new(audit: Audit) -> Self {
        Self {
            sources: Vec::new(),
            yielding: Vec::new(),
            trusted: TrustedSources::default(),
            strict: false,
            only: None,
            features: HashSet::new(),
            audience: Audience::default(),
            defer_above: 40,
            policy: Policy::default(),
            environment: HashMap::new(),
            secrets: None,
            approver: None,
            approvals: Vec::new(),
            reserved: Vec::new(),
            protected: Vec::new(),
            stage: None,
            call_stages: None,
            record: None,
            limits: Limits::default(),
            ceiling: LimitRequest::default(),
            concurrency: 32,
            scheduler: Scheduler::default(),
            shared: None,
            limits_of_calls: OnceLock::new(),
            compile_cache: None,
            max_cache: cache::DEFAULT_MAX_BYTES,
            compiler: None,
            interpreter: None,
            skill_programs: None,
            skill_copies: None,
            code: Vec::new(),
            direct: None,
            audit,
            run: None,
            hooks: Vec::new(),
            observers: Vec::new(),
            delegate: None,
            model: None,
            remote: None,
            workers: None,
            results: None,
            max_inline: None,
            masks: HashMap::new(),
            keyvalue: None,
            routes: HashMap::new(),
            command_lines: HashMap::new(),
            contexts: CallContexts::default(),
            name_servers: Vec::new(),
            roots: Certificates::new(),
        }
    }

    /// Reads the sources and decides the grant of each tool. Nothing is compiled or run.
    ///
    /// # Errors
    ///
    /// The first problem of a source as a whole, of a hook, of the policy or of the engine, and, if the builder is
    /// [strict](Builder::strict), of a tool.
    pub fn build(mut self) -> Result<Runtime, Error> {
        if let Some((name, sources)) = self.load_only_tool()? {
            let concurrency = std::mem::replace(&mut self.concurrency, 1);
            match self.content(sources, Some(&name)) {
                // A tool that could not be used might take no name.
                Err(Error::Duplicate { .. } | Error::LookAlike { .. }) => {
                    (self.concurrency, self.limits_of_calls) = (concurrency, OnceLock::new());
                }
                content => return self.assemble(content?, Instances::OfOneCall),
            }
        }
        let content = self.content(self.load_all()?, None)?;
        let instances = Instances::OfCalls(self.concurrency);
        self.assemble(content, instances)
    }

    /// Creates the runtime around the content of its sources.
    fn assemble(self, content: Content, instances: Instances) -> Result<Runtime, Error> {
        let Content { registry, prepared, languages, hooks, hook_access, policies, bundles, warnings, untrusted } =
            content;
        let skills = self.find_skill_programs(registry.tools())?;
        let concurrency = self.limits_of_calls().clone();
        let audit = match &self.secrets {
            Some(secrets) => self.audit.redact_secrets(secrets),
            None => self.audit,
        };
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| Error::Engine(error.to_string()))?;
        let seed = u64::from_ne_bytes(seed);
        let run = self.run.unwrap_or_else(|| format!("run_{seed:016x}"));
        let only = self.direct.is_some();
        let has_same_network = |shared: &&Pipeline| shared.sandbox.has_network(&self.name_servers, &self.roots);
        let (sandbox, programs, interpreters, code) = match self.shared.as_deref().filter(has_same_network) {
            Some(Pipeline { sandbox, programs, interpreters, code, .. }) => (
                sandbox.clone(),
                programs.with_bundles(bundles),
                interpreters.with_component(sandbox, self.interpreter),
                code.with_languages(sandbox, languages, only),
            ),
            None => {
                let client = HttpClient::new(self.name_servers, self.roots);
                let cache = self.compile_cache.map(|folder| Cache::folder(folder).max_bytes(self.max_cache));
                let sandbox = Arc::new(Sandbox::new(instances, cache, self.compiler, client)?);
                (
                    sandbox.clone(),
                    ProgramCompiler::new(sandbox.clone(), bundles),
                    Interpreters::new(sandbox.clone(), self.interpreter),
                    CodeInterpreters::new(&sandbox, languages, only),
                )
            }
        };
        let pipeline = Pipeline {
            registry,
            prepared,
            flows: Arc::new(FlowPolicy::new(self.policy.place_labels().clone(), self.policy.rules())),
            rules: Arc::new(self.policy.rules().clone()),
            committing: Arc::default(),
            stages: self.call_stages,
            record: self.record,
            approved: self.approvals.into_iter().collect(),
            approver: self.approver,
            hooks: HookChain::new(hooks),
            hook_access,
            interpreters,
            skills,
            code,
            names: OnceLock::new(),
            delegate: self.delegate,
            model: self.model,
            remote: self.remote,
            workers: self.workers,
            routes: self.routes,
            contexts: self.contexts,
            policies,
            observers: self.observers,
            concurrency,
            scheduler: self.scheduler,
            results: self.results,
            keyvalue: self.keyvalue,
            max_inline: self.max_inline,
            secrets: self.secrets.clone(),
            audit: Arc::new(audit),
            maskings: Arc::new(Semaphore::new(MAX_MASKINGS)),
            programs,
            sandbox,
            seed,
            run,
            calls: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
        };
        let memory = Arc::new(Memory::open(session_id(seed, 0)));
        Ok(Runtime { pipeline: Arc::new(pipeline), warnings: warnings.into(), untrusted: untrusted.into(), memory })
    }

    /// Returns the limits of concurrent calls: the shared ones, or new ones.
    pub(super) fn limits_of_calls(&self) -> &Arc<Concurrency> {
        self.limits_of_calls.get_or_init(|| match self.shared.as_deref() {
            Some(shared) => shared.concurrency.clone(),
            None => Arc::new(Concurrency::new(self.concurrency, self.scheduler.queue)),
        })
    }

    /// Decides the trust in the sources and the grant of each tool and hook. Leaves out all tools but the `only` one, if there
    /// is one, once their sources are reviewed.
    fn content(&self, sources: Vec<IdentifiedSource>, only: Option<&str>) -> Result<Content, Error> {
        let mut untrusted = Vec::new();
        let (mut tools, mut scripted, mut policies, mut warnings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut ids = Vec::with_capacity(self.sources.len());
        let mut bundles = Vec::new();
        for (path, (id, mut loaded)) in self.sources.iter().zip(sources) {
            untrusted.extend(self.trusted.apply(path, &id, &mut loaded, only));
            only.into_iter().for_each(|name| source::leave_out(&mut loaded.tools, name));
            let yields = self.yielding.contains(path);
            loaded.tools.iter_mut().for_each(|tool| tool.origin.yields = yields);
            let hooks = loaded.hooks.iter_mut().map(|hook| &mut hook.tool);
            loaded.tools.iter_mut().chain(hooks).for_each(|tool| tool.origin.source = Some(id.clone()));
            ids.push(id);
            bundles.extend(loaded.bundle);
            warnings.extend(loaded.warnings);
            tools.extend(loaded.tools);
            if tools.len() > source::MAX_TOOLS {
                return Err(Error::Source { path: path.clone(), message: source::too_many(tools.len()) });
            }
            scripted.extend(loaded.hooks);
            policies.extend(loaded.policies);
        }
        self.apply_command_lines(&mut tools)?;
        let allowed = Allowed::resolve(&self.policy)?;
        let loaded: Vec<&Tool> = tools.iter().chain(scripted.iter().map(|hook: &ScriptedHook| &hook.tool)).collect();
        let reserved = self.reserved_places(&loaded, allowed.mounts());
        let protected = self.protected_paths(&reserved, &loaded, allowed.mounts());
        let allowed = allowed.protecting(Arc::new(protected));
        let mut prepared = self.prepare_tools(&mut tools, &allowed, &reserved, &mut warnings)?;
        let mut hooks: Vec<_> = self.hooks.iter().cloned().map(ChainedHook::Embedder).collect();
        let hook_access = HookAccess::new(&self.policy).with_tools(tools.iter());
        scripted.iter_mut().for_each(|hook| hook_access.give_scope(hook));
        warnings.extend(self.scope_warnings(&ids, &scripted, &tools, &hook_access));
        for definition in scripted {
            let hook = self.prepare_hook(definition, &tools, &hook_access, &allowed, &reserved, &mut warnings)?;
            hooks.push(ChainedHook::Script(Box::new(hook)));
        }
        let mut builtins = Vec::new();
        let has_tasks = tools.iter().any(|tool| matches!(&tool.body, Body::Script(script) if script.background));
        let languages = self.languages(&tools, &prepared, &mut warnings);
        let code = self.code_tools(&languages, &mut tools, &mut prepared, &mut warnings);
        builtins.extend(prepared.iter().any(|prepared| prepared.deferred).then_some(Builtin::ToolSearch));
        builtins.extend(self.results.is_some().then_some(Builtin::ReadResult));
        builtins.extend([Builtin::TaskPoll, Builtin::TaskAwait].into_iter().filter(|_| has_tasks));
        for mut tool in builtins.into_iter().map(builtin::tool).chain(code) {
            prepared.push(self.prepare_tool(&mut tool, &Allowed::default(), &reserved, false)?);
            tools.push(tool);
        }
        warnings.extend(self.check_rules(&tools, &prepared)?);
        if only.is_none() {
            warnings.extend(limit_warnings(&allowed, &tools));
        }
        let (registry, prepared) = Registry::of(tools.into_iter().zip(prepared).collect())?;
        // A tool of a source may have the name of the tool that runs programs.
        let runs_code = registry.tools().iter().any(|tool| matches!(tool.body, Body::Builtin(Builtin::RunCode)));
        let languages = if runs_code { languages } else { Vec::new() };
        Ok(Content { registry, prepared, languages, hooks, hook_access, policies, bundles, warnings, untrusted })
    }
}

/// Content of all sources, prepared for calls.
struct Content {
    registry: Registry,
    prepared: Vec<PreparedTool>,
    languages: Vec<CodeLanguage>,
    hooks: Vec<ChainedHook>,
    hook_access: HookAccess,
    policies: Vec<ToolsPolicy>,
    bundles: Vec<Arc<OpenBundle>>,
    warnings: Vec<Diagnostic>,
    untrusted: Vec<UntrustedSource>,
}
