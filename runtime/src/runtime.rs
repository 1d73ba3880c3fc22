//! What an embedder holds: sources and a policy in, calls and their results out.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::audit::Audit;
use crate::call::{ToolCall, ToolResult};
use crate::error::Error;
use crate::hook::Hook;
use crate::observe::Observer;
use crate::pipeline::{Pipeline, Ready};
use crate::policy::{self, Allowed, Approval, Approver, Grant, Policy};
use crate::registry::Registry;
use crate::sandbox::Sandbox;
use crate::schema::Arguments;
use crate::source::{self, Problem};
use crate::tool::{LimitRequest, Limits, Tool};

/// A set of tools, ready to be called. Clones share everything.
#[derive(Clone)]
pub struct Runtime {
    pipeline: Arc<Pipeline>,
    warnings: Arc<[Problem]>,
}

/// The settings of a [`Runtime`]. Nothing is allowed that is not said here.
pub struct Builder {
    sources: Vec<PathBuf>,
    policy: Policy,
    audit: Audit,
    limits: Limits,
    ceiling: LimitRequest,
    environment: HashMap<String, String>,
    compile_cache: Option<PathBuf>,
    concurrency: u32,
    hooks: Vec<Arc<dyn Hook>>,
    observers: Vec<Arc<dyn Observer>>,
    approver: Option<Arc<dyn Approver>>,
    approvals: Vec<Approval>,
}

impl Runtime {
    /// Starts with no tools, nothing allowed, no log and the default limits.
    pub fn builder() -> Builder {
        Builder {
            sources: Vec::new(),
            policy: Policy::default(),
            audit: Audit::off(),
            limits: Limits::default(),
            ceiling: LimitRequest::default(),
            environment: HashMap::new(),
            compile_cache: None,
            concurrency: 32,
            hooks: Vec::new(),
            observers: Vec::new(),
            approver: None,
            approvals: Vec::new(),
        }
    }

    /// The tools, in the order of their sources.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.pipeline.registry.tools().iter()
    }

    /// A tool by its name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        let index = self.pipeline.registry.find(name).ok()?;
        Some(&self.pipeline.registry.tools()[index])
    }

    /// What a tool was granted.
    pub fn grant(&self, name: &str) -> Option<&Grant> {
        self.pipeline.registry.find(name).ok().map(|index| &self.pipeline.ready[index].grant)
    }

    /// The limits under which a tool runs.
    pub fn limits(&self, name: &str) -> Option<&Limits> {
        self.pipeline.registry.find(name).ok().map(|index| &self.pipeline.ready[index].limits)
    }

    /// What the sources said that was ignored.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// Compiles a tool's program, or takes it from the cache, ahead of the first call.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`], or [`Error::Component`] where the program cannot run.
    pub async fn prepare(&self, name: &str) -> Result<(), Error> {
        let index = self.pipeline.registry.find(name)?;
        self.pipeline.program(index).await.map(|_| ())
    }

    /// Calls a tool. A wrong, refused or failed call is an answer too: there is always a result, and always one record.
    /// Dropping the future stops the guest. It runs on a tokio runtime with its timer enabled.
    pub async fn call(&self, call: ToolCall) -> ToolResult {
        self.pipeline.call(call).await
    }
}

impl Builder {
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

    /// The most that any tool may name.
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

    /// Reads the sources and settles what each tool is granted. Nothing is compiled or run.
    ///
    /// # Errors
    ///
    /// The first problem of a source, of the policy or of the engine.
    pub fn build(self) -> Result<Runtime, Error> {
        let mut registry = Registry::default();
        let mut warnings = Vec::new();
        for path in &self.sources {
            let loaded = source::load(path)?;
            warnings.extend(loaded.warnings);
            for tool in loaded.tools {
                registry.add(tool)?;
            }
        }
        let allowed = Allowed::resolve(&self.policy)?;
        let mut ready = Vec::with_capacity(registry.tools().len());
        for tool in registry.tools() {
            let arguments = Arguments::compile(tool.parameters.as_ref()).map_err(|message| Error::Source {
                path: tool.origin.path.to_path_buf(),
                message: format!("tool {:?}: {message}", tool.name),
            })?;
            let grant = Grant::new(tool, &allowed, &self.environment)?;
            self.refuse_reach(&grant)?;
            let limits = self.ceiling.cap(tool.limits.over(self.limits));
            ready.push(Ready::new(arguments, grant, limits, (self.concurrency as usize).div_ceil(2)));
        }
        let sandbox = Sandbox::new(self.concurrency, self.compile_cache)?;
        let pipeline = Pipeline {
            registry,
            ready,
            hooks: self.hooks,
            audit: Arc::new(self.audit),
            sandbox: Arc::new(sandbox),
            slots: Semaphore::new(self.concurrency as usize),
        };
        Ok(Runtime { pipeline: Arc::new(pipeline), warnings: warnings.into() })
    }

    /// No guest may reach the audit log or the compile cache: with the one it could forge records, with the other code.
    fn refuse_reach(&self, grant: &Grant) -> Result<(), Error> {
        let own = [("audit log", self.audit.place()), ("compile cache", self.compile_cache.as_deref())];
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
