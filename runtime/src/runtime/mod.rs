//! What an embedder holds: calls in, their results out.

mod builder;
mod settle;

use std::sync::{Arc, Weak};

use crate::call::{Availability, ToolCall, ToolResult};
use crate::delegate::Task;
use crate::error::Error;
use crate::pipeline::{CallScope, Memory, Pipeline, Scheduler, ScriptHook, Session, ToolEntry};
use crate::policy::Grant;
use crate::source::Diagnostic;
use crate::tool::{Body, Limits, ScriptedHook, Tool};

pub use builder::Builder;

/// A set of tools, ready to be called. Clones share everything.
#[derive(Clone)]
pub struct Runtime {
    pipeline: Arc<Pipeline>,
    warnings: Arc<[Diagnostic]>,
    /// Of calls that belong to no conversation.
    memory: Arc<Memory>,
}

/// A runtime that its holder does not keep: a [`Delegate`](crate::Delegate), which the runtime itself holds, finds it by
/// this.
#[derive(Clone)]
pub struct WeakRuntime {
    pipeline: Weak<Pipeline>,
    warnings: Arc<[Diagnostic]>,
    memory: Arc<Memory>,
}

impl WeakRuntime {
    /// The runtime, where somebody still keeps it.
    pub fn upgrade(&self) -> Option<Runtime> {
        let pipeline = self.pipeline.upgrade()?;
        Some(Runtime { pipeline, warnings: self.warnings.clone(), memory: self.memory.clone() })
    }
}

impl Runtime {
    /// Starts with no tools, nothing allowed, no log and the default limits.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The tools, in the order of their sources; not what the host does itself.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.pipeline.registry.tools().iter().filter(|tool| !matches!(tool.body, Body::Builtin(_)))
    }

    /// The tools that cannot be called, each with the reason in words for the model: what is unusable, and what a rule, a
    /// record or a policy closes.
    pub fn disabled(&self) -> impl Iterator<Item = (&Tool, &str)> {
        self.tools().filter_map(|tool| match self.availability(&tool.name)? {
            Availability::Unusable { why } | Availability::Disabled { why, .. } => Some((tool, why)),
            _ => None,
        })
    }

    /// The hooks of its sources, in the order in which they are heard.
    pub fn hooks(&self) -> impl Iterator<Item = &ScriptedHook> {
        self.pipeline.hooks.of_sources().map(|script| &script.definition)
    }

    /// What was granted, to tools and to hooks.
    pub fn grants(&self) -> impl Iterator<Item = (&Tool, &Grant)> {
        let tools = self.pipeline.registry.tools().iter().zip(&self.pipeline.prepared);
        let hooks =
            self.pipeline.hooks.of_sources().map(|ScriptHook { definition, prepared }| (&definition.tool, prepared));
        tools.chain(hooks).map(|(tool, prepared)| (tool, prepared.grant.as_ref()))
    }

    /// The same runtime for somebody whom it holds itself.
    pub fn downgrade(&self) -> WeakRuntime {
        let pipeline = Arc::downgrade(&self.pipeline);
        WeakRuntime { pipeline, warnings: self.warnings.clone(), memory: self.memory.clone() }
    }

    /// A conversation with these tools.
    pub fn session(&self) -> Session {
        Session::new(self.pipeline.clone(), Arc::default())
    }

    /// The conversation of an agent to which a task was handed.
    pub fn session_for(&self, task: &Task) -> Session {
        Session::new(self.pipeline.clone(), Arc::new(Memory::of_task(task)))
    }

    /// The conversation of a caller who knows every tool and searches for none; [`Runtime::call`] belongs to it.
    pub fn open_session(&self) -> Session {
        Session::new(self.pipeline.clone(), self.memory.clone())
    }

    /// Availability of a tool to a model, or `None` where no tool has this name.
    pub fn availability(&self, name: &str) -> Option<Availability<'_>> {
        let ToolEntry { tool, prepared, .. } = self.pipeline.at(self.pipeline.registry.index(name)?);
        let unusable = tool.unusable.as_ref().map(|unusable| unusable.why.as_str());
        if let Some(why) = unusable.or_else(|| prepared.compile_error()) {
            return Some(Availability::Unusable { why });
        }
        Some(match &prepared.disabled {
            Some((decision, why)) => Availability::Disabled { decision, why },
            None if prepared.deferred => Availability::Deferred,
            None => Availability::Loaded,
        })
    }

    /// How the calls of one step go together.
    pub fn scheduler(&self) -> &Scheduler {
        &self.pipeline.scheduler
    }

    /// A tool by its name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        let index = self.pipeline.registry.index(name)?;
        Some(&self.pipeline.registry.tools()[index])
    }

    /// What a tool was granted.
    pub fn grant(&self, name: &str) -> Option<&Grant> {
        self.pipeline.registry.index(name).map(|index| self.pipeline.prepared[index].grant.as_ref())
    }

    /// The limits under which a tool runs.
    pub fn limits(&self, name: &str) -> Option<&Limits> {
        self.pipeline.registry.index(name).map(|index| &self.pipeline.prepared[index].limits)
    }

    /// What the sources said that was ignored.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Compiles a tool's program, or takes it from the cache, ahead of the first call.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`], [`Error::Component`] where the program cannot run, or the fault of a tool that is unusable.
    pub async fn prepare(&self, name: &str) -> Result<(), Error> {
        let entry = self.pipeline.at(self.pipeline.registry.find(name)?);
        if let Some(unusable) = &entry.tool.unusable {
            return Err(unusable.fault.clone());
        }
        match entry.tool.body {
            Body::Command { .. } | Body::Rich(_) | Body::Typed(_) => {
                self.pipeline.programs.program(entry).await.map(|_| ())
            }
            Body::Script(_) => {
                self.pipeline.interpreters.interpreter(entry.prepared).await.map(|_| ()).map_err(|error| {
                    Error::Component { path: entry.tool.origin.path.to_path_buf(), reason: error.message }
                })
            }
            Body::Absent | Body::Builtin(_) => Ok(()),
        }
    }

    /// Makes ready what its sources' hooks run on, ahead of the first call.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the interpreter cannot run.
    pub async fn prepare_hooks(&self) -> Result<(), Error> {
        for ScriptHook { definition, prepared } in self.pipeline.hooks.of_sources() {
            self.pipeline.interpreters.interpreter(prepared).await.map_err(|error| Error::Component {
                path: definition.tool.origin.path.to_path_buf(),
                reason: error.message,
            })?;
        }
        Ok(())
    }

    /// What is wrong with the scripts of tools and hooks, as far as that can be known without running them: found by the
    /// interpreter, in the sandbox.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the interpreter cannot run.
    pub async fn check_scripts(&self) -> Result<Vec<Diagnostic>, Error> {
        self.pipeline.check_scripts().await
    }

    /// Calls a tool. A wrong, refused or failed call is an answer too: there is always a result, and always one record.
    /// Dropping the future stops the guest. It runs on a tokio runtime with its timer enabled, and with its I/O where a
    /// tool may send requests.
    pub async fn call(&self, call: ToolCall) -> ToolResult {
        self.pipeline.call(call, CallScope::alone(&self.memory)).await
    }
}
