//! The runtime that an embedder holds: tools, sessions and calls.

mod builder;
mod code;
mod command_line;
mod effects;
mod gate;
mod hooks;
mod load;
mod options;
mod prepare;
mod skills;
mod trust;
mod workers;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use crate::audit::Audit;
use crate::call::{Availability, ToolCall, ToolResult};
use crate::delegate::Task;
use crate::error::Error;
use crate::flow::Label;
use crate::pipeline::{CallScope, Memory, Pipeline, Scheduler, ScriptHook, Session, ToolEntry, UnstartedCall};
use crate::policy::{Grant, real_path};
use crate::source::Diagnostic;
use crate::tool::{Body, Limits, ScriptedHook, Tool};

pub use builder::Builder;
pub use gate::{HostGate, OpenGate};

use trust::UntrustedSource;

/// Set of tools with their grants, ready to be called. Clones share all state.
#[derive(Clone)]
pub struct Runtime {
    pipeline: Arc<Pipeline>,
    warnings: Arc<[Diagnostic]>,
    untrusted: Arc<[UntrustedSource]>,
    /// State for calls outside sessions.
    memory: Arc<Memory>,
}

/// Source that is not trusted, with the requests that are not granted for that reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingRequests {
    /// Real path of the source.
    pub path: PathBuf,
    /// Requests, such as `net:api.example.com:443`, each after the name of its tool or hook.
    pub requests: Vec<(String, String)>,
}

/// Weak reference to a [`Runtime`], for extensions that the runtime itself owns, such as a
/// [`Delegate`](crate::Delegate).
#[derive(Clone)]
pub struct WeakRuntime {
    pipeline: Weak<Pipeline>,
    warnings: Arc<[Diagnostic]>,
    untrusted: Arc<[UntrustedSource]>,
    memory: Arc<Memory>,
}

/// Compiled code that the calls of a tool need.
enum NeededCode {
    /// The tool's own program.
    Program,
    /// The interpreter of scripts.
    Interpreter,
    Nothing,
}

impl NeededCode {
    fn of(tool: &Tool) -> Self {
        match tool.body {
            Body::Command { .. } | Body::Rich(_) | Body::Typed(_) => Self::Program,
            Body::Script(_) => Self::Interpreter,
            Body::Interpreter(_)
            | Body::Remote(_)
            | Body::Absent
            | Body::Skill(_)
            | Body::SkillScripts(_)
            | Body::Builtin(_) => Self::Nothing,
        }
    }
}

impl WeakRuntime {
    /// Returns the runtime, or `None` after the last clone was dropped.
    pub fn upgrade(&self) -> Option<Runtime> {
        let pipeline = self.pipeline.upgrade()?;
        Some(Runtime {
            pipeline,
            warnings: self.warnings.clone(),
            untrusted: self.untrusted.clone(),
            memory: self.memory.clone(),
        })
    }
}

impl Runtime {
    /// Starts a builder with this audit log, no tools, no permissions and the default limits. [`Audit::off`] runs calls
    /// without a log.
    pub fn builder(audit: Audit) -> Builder {
        Builder::new(audit)
    }

    /// Lists the tools in the order of their sources, without the tools that the host brings itself.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.pipeline.registry.tools().iter().filter(|tool| !matches!(tool.body, Body::Builtin(_)))
    }

    /// Lists the tools that cannot be called, each with the reason in words for the model: unusable tools, and tools disabled
    /// by a rule, by their own definition or by a project's policy.
    pub fn disabled(&self) -> impl Iterator<Item = (&Tool, &str)> {
        self.tools().filter_map(|tool| match self.availability(&tool.name)? {
            Availability::Unusable { reason } | Availability::Disabled { reason, .. } => Some((tool, reason)),
            _ => None,
        })
    }

    /// Lists the script hooks of the sources in the order in which they run.
    pub fn hooks(&self) -> impl Iterator<Item = &ScriptedHook> {
        self.pipeline.hooks.of_sources().map(|script| &script.definition)
    }

    /// Lists the grants of tools and script hooks.
    pub fn grants(&self) -> impl Iterator<Item = (&Tool, &Grant)> {
        let tools = self.pipeline.registry.tools().iter().zip(&self.pipeline.prepared);
        let hooks = self
            .pipeline
            .hooks
            .of_sources()
            .map(|ScriptHook { definition, prepared, .. }| (&definition.tool, prepared));
        tools.chain(hooks).map(|(tool, prepared)| (tool, prepared.grant.as_ref()))
    }

    /// Returns a weak reference to this runtime.
    pub fn downgrade(&self) -> WeakRuntime {
        let pipeline = Arc::downgrade(&self.pipeline);
        WeakRuntime {
            pipeline,
            warnings: self.warnings.clone(),
            untrusted: self.untrusted.clone(),
            memory: self.memory.clone(),
        }
    }

    /// Starts a session: one conversation with these tools.
    pub fn session(&self) -> Session {
        Session::new(self.pipeline.clone(), Arc::new(Memory::new(self.pipeline.next_session())))
    }

    /// Starts a session with a caller who knows every tool and needs no search, such as another program's agent.
    pub fn full_session(&self) -> Session {
        Session::new(self.pipeline.clone(), Arc::new(Memory::full(self.pipeline.next_session())))
    }

    /// Starts a session as [`Runtime::full_session`] does, for one of several owners, such as the clients of a server. Stored
    /// results, approvals and values of tools belong to the owner: other sessions do not reach them.
    pub fn owned_session(&self, owner: impl Into<Arc<str>>) -> Session {
        let memory = Memory::full(self.pipeline.next_session()).owned_by(owner.into());
        Session::new(self.pipeline.clone(), Arc::new(memory))
    }

    /// Starts the session of an agent that took over a delegated task.
    pub fn session_for(&self, task: &Task) -> Session {
        Session::new(self.pipeline.clone(), Arc::new(Memory::of_task(self.pipeline.next_session(), task)))
    }

    /// Returns the session of callers that know every tool and need no search; [`Runtime::call`] belongs to it.
    pub fn open_session(&self) -> Session {
        Session::new(self.pipeline.clone(), self.memory.clone())
    }

    /// Returns `true` if a model is shown a tool, as far as its callers decide: in code mode only the tools for programs, and those
    /// that a model calls directly, are shown.
    pub fn shows(&self, tool: &Tool) -> bool {
        self.pipeline.shows(tool)
    }

    /// Returns the name of a tool in programs that call tools; `None` if no program can call it.
    pub fn name_in_programs(&self, name: &str) -> Option<&str> {
        self.pipeline.names_in_programs().name_of(self.pipeline.registry.index(name)?)
    }

    /// Returns the languages of programs, the default first, each with the file of its interpreter: `None` for one that the builder
    /// was passed.
    pub fn interpreters(&self) -> impl Iterator<Item = (&str, Option<&Path>)> {
        self.pipeline.code.files()
    }

    /// Availability of a tool to a model, or `None` if no tool has this name.
    pub fn availability(&self, name: &str) -> Option<Availability<'_>> {
        let ToolEntry { tool, prepared, .. } = self.pipeline.at(self.pipeline.registry.index(name)?);
        let unusable = tool.unusable.as_ref().map(|unusable| unusable.reason.as_str());
        if let Some(reason) = unusable.or_else(|| prepared.compile_error()) {
            return Some(Availability::Unusable { reason });
        }
        Some(match &prepared.disabled {
            Some((decision, reason)) => Availability::Disabled { decision, reason },
            None if prepared.deferred => Availability::Deferred,
            None => Availability::Loaded,
        })
    }

    /// Returns the label of a file that is given to the model by other means than a call.
    pub fn label_of_file(&self, path: &Path) -> Label {
        self.pipeline.flows.labels.label_of_file(&real_path(path))
    }

    /// Returns the scheduling of one step's calls.
    pub fn scheduler(&self) -> &Scheduler {
        &self.pipeline.scheduler
    }

    /// Returns the tool with this name or alias.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        let index = self.pipeline.registry.index(name)?;
        Some(&self.pipeline.registry.tools()[index])
    }

    /// Returns the grant of a tool.
    pub fn grant(&self, name: &str) -> Option<&Grant> {
        self.pipeline.registry.index(name).map(|index| self.pipeline.prepared[index].grant.as_ref())
    }

    /// Returns the limits of a tool.
    pub fn limits(&self, name: &str) -> Option<&Limits> {
        self.pipeline.registry.index(name).map(|index| &self.pipeline.prepared[index].limits)
    }

    /// Returns the maximum characters of a tool's result that a model gets whole; a longer one is stored and shortened.
    /// `None` for an unknown tool and for the host's own tools, which bound their own results.
    pub fn max_inline(&self, name: &str) -> Option<usize> {
        let ToolEntry { tool, prepared, .. } = self.pipeline.at(self.pipeline.registry.index(name)?);
        (!matches!(tool.body, Body::Builtin(_))).then(|| self.pipeline.max_result(tool, &prepared.limits))
    }

    /// Lists the sources that are not trusted, with the requests that neither trust nor the policy grants.
    pub fn untrusted(&self) -> impl Iterator<Item = PendingRequests> {
        let grants = if self.untrusted.is_empty() { None } else { Some(self.grants()) };
        let granted = grants.into_iter().flatten();
        let granted: HashSet<(&str, String)> = granted
            .flat_map(|(tool, grant)| grant.granted().into_iter().map(|granted| (tool.name.as_str(), granted)))
            .collect();
        self.untrusted.iter().filter_map(move |source| {
            let pending =
                source.requests.iter().filter(|(name, request)| !granted.contains(&(name.as_str(), request.clone())));
            let requests: Vec<_> = pending.cloned().collect();
            (!requests.is_empty()).then(|| PendingRequests { path: source.path.clone(), requests })
        })
    }

    /// Lists the warnings of the build.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Compiles a tool's program, or loads its code from the cache, so that the first call finds it in memory.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`], [`Error::Component`] if the program cannot run, or the error of an unusable tool.
    pub async fn prepare(&self, name: &str) -> Result<(), Error> {
        let entry = self.pipeline.at(self.pipeline.registry.find(name)?);
        if let Some(unusable) = &entry.tool.unusable {
            return Err(unusable.fault.clone());
        }
        match NeededCode::of(entry.tool) {
            NeededCode::Program => self.pipeline.programs.program(entry).await.map(|_| ()),
            NeededCode::Interpreter => {
                self.pipeline.interpreters.interpreter(entry.prepared).await.map(|_| ()).map_err(|error| {
                    Error::Component { path: entry.tool.origin.path.to_path_buf(), reason: error.message }
                })
            }
            NeededCode::Nothing => Ok(()),
        }
    }

    /// Compiles a tool's program unless its code is in the cache, and loads nothing from there: a start with many tools costs little
    /// more than the digests of their programs. The first call computes the digest again and loads the code, within its deadline; it
    /// compiles the program again if the code is damaged or gone, and refuses another program.
    ///
    /// # Errors
    ///
    /// As for [`Runtime::prepare`], for a program that is not in the cache.
    pub async fn compile(&self, name: &str) -> Result<(), Error> {
        let entry = self.pipeline.at(self.pipeline.registry.find(name)?);
        let is_compiled = match NeededCode::of(entry.tool) {
            _ if entry.tool.unusable.is_some() => false,
            NeededCode::Program => self.pipeline.programs.is_compiled(entry).await,
            NeededCode::Interpreter => self.pipeline.interpreters.is_compiled(entry.prepared).await,
            NeededCode::Nothing => true,
        };
        if is_compiled { Ok(()) } else { self.prepare(name).await }
    }

    /// Returns `true` if the cache contains the code that a tool needs, so that another process does not compile it; `false` for an
    /// unknown tool. A tool without a program needs none.
    pub async fn is_cached(&self, name: &str) -> bool {
        let Some(index) = self.pipeline.registry.index(name) else { return false };
        let entry = self.pipeline.at(index);
        match NeededCode::of(entry.tool) {
            NeededCode::Program => self.pipeline.programs.is_cached(entry).await,
            NeededCode::Interpreter => self.pipeline.interpreters.is_cached(entry.prepared).await,
            NeededCode::Nothing => true,
        }
    }

    /// Compiles the interpreter of script hooks, or loads it from the cache, before the first call.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] if the interpreter cannot run.
    pub async fn prepare_hooks(&self) -> Result<(), Error> {
        for ScriptHook { definition, prepared, .. } in self.pipeline.hooks.of_sources() {
            self.pipeline.interpreters.interpreter(prepared).await.map_err(|error| Error::Component {
                path: definition.tool.origin.path.to_path_buf(),
                reason: error.message,
            })?;
        }
        Ok(())
    }

    /// Checks the scripts of tools and hooks without running them, by the interpreter in the sandbox.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] if the interpreter cannot run.
    pub async fn check_scripts(&self) -> Result<Vec<Diagnostic>, Error> {
        self.pipeline.check_scripts().await
    }

    /// Calls a tool. There is always a result and always one audit record, also for an invalid, refused or failed call.
    /// Dropping the future stops the guest; if it was never polled, the call is recorded as cancelled too. Needs a tokio runtime
    /// with its timer enabled, and with its I/O driver if tools may send requests.
    pub fn call(&self, call: ToolCall) -> impl Future<Output = ToolResult> + Send {
        let unstarted = UnstartedCall::new(&*self.pipeline, &*self.memory, call);
        async move { self.pipeline.call(unstarted.start(), CallScope::alone(&self.memory)).await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum bytes of a call's state. It is moved twice for each function that awaits it.
    const MAX_FUTURE_LEN: usize = 4 << 10;

    #[test]
    fn the_state_of_a_call_is_small() {
        let runtime = Runtime::builder(Audit::off()).build().unwrap();
        let call = runtime.pipeline.call(ToolCall::new("", "", ""), CallScope::alone(&runtime.memory));
        let len = size_of_val(&*call);
        assert!((1 << 10..=MAX_FUTURE_LEN).contains(&len), "{len} bytes: box the waits that few calls have");
    }
}
