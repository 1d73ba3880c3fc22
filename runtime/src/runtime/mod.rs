//! What an embedder holds: calls in, their results out.

mod builder;

use std::sync::Arc;

use crate::call::{Decision, ToolCall, ToolResult};
use crate::delegate::Task;
use crate::error::Error;
use crate::pipeline::{Context, Memory, Pipeline, Scheduler, Session};
use crate::policy::Grant;
use crate::source::Problem;
use crate::tool::{Body, Limits, Tool};

pub use builder::Builder;

/// A set of tools, ready to be called. Clones share everything.
#[derive(Clone)]
pub struct Runtime {
    pipeline: Arc<Pipeline>,
    warnings: Arc<[Problem]>,
    /// Of calls that belong to no conversation.
    memory: Arc<Memory>,
}

/// Whether and how a tool can be called.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Standing<'a> {
    /// A model is shown it from the start.
    Loaded,
    /// A model has to search for it.
    Deferred,
    /// It cannot be called.
    Closed {
        /// Who decided that.
        decision: &'a Decision,
        /// Why, in words for the model.
        why: &'a str,
    },
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

    /// A conversation with these tools.
    pub fn session(&self) -> Session {
        Session::new(self.pipeline.clone(), Arc::default())
    }

    /// The conversation of an agent to which a task was handed.
    pub fn session_for(&self, task: &Task) -> Session {
        Session::new(self.pipeline.clone(), Arc::new(Memory::at_depth(task.depth)))
    }

    /// The conversation of a caller who knows every tool and searches for none; [`Runtime::call`] belongs to it.
    pub fn open_session(&self) -> Session {
        Session::new(self.pipeline.clone(), self.memory.clone())
    }

    /// Whether and how a tool can be called.
    pub fn standing(&self, name: &str) -> Option<Standing<'_>> {
        let ready = &self.pipeline.ready[self.pipeline.registry.find(name).ok()?];
        Some(match &ready.closed {
            Some((decision, why)) => Standing::Closed { decision, why },
            None if ready.deferred => Standing::Deferred,
            None => Standing::Loaded,
        })
    }

    /// How the calls of one step go together.
    pub fn scheduler(&self) -> &Scheduler {
        &self.pipeline.scheduler
    }

    /// A tool by its name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        let index = self.pipeline.registry.find(name).ok()?;
        Some(&self.pipeline.registry.tools()[index])
    }

    /// What a tool was granted.
    pub fn grant(&self, name: &str) -> Option<&Grant> {
        self.pipeline.registry.find(name).ok().map(|index| self.pipeline.ready[index].grant.as_ref())
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
        let entry = self.pipeline.at(self.pipeline.registry.find(name)?);
        match entry.tool.body {
            Body::Command { .. } => self.pipeline.program(entry).await.map(|_| ()),
            Body::Script(_) => self.pipeline.interpreter(entry.ready).await.map(|_| ()).map_err(|error| {
                Error::Component { path: entry.tool.origin.path.to_path_buf(), reason: error.message }
            }),
            Body::Absent | Body::Builtin(_) => Ok(()),
        }
    }

    /// What is wrong with the scripts of tools and hooks, as far as that can be known without running them: found by the
    /// interpreter, in the sandbox.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the interpreter cannot run.
    pub async fn check_scripts(&self) -> Result<Vec<Problem>, Error> {
        self.pipeline.check_scripts().await
    }

    /// Calls a tool. A wrong, refused or failed call is an answer too: there is always a result, and always one record.
    /// Dropping the future stops the guest. It runs on a tokio runtime with its timer enabled, and with its I/O where a
    /// tool may send requests.
    pub async fn call(&self, call: ToolCall) -> ToolResult {
        self.pipeline.call(call, Context::alone(&self.memory)).await
    }
}
