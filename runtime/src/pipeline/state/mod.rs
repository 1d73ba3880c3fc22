//! State that all calls of one runtime share, and state that the calls of one conversation or one step share. It runs
//! nothing.

pub(crate) mod builtin;
mod call_context;
mod concurrency;
mod execution;
mod hook_chain;
mod memory;
mod schedule;
mod scope;
mod tasks;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::audit::Audit;
use crate::call::{ToolCall, ToolResult};
use crate::delegate::Delegate;
use crate::error::{Error, ToolError};
use crate::model::Model;
use crate::observe::Observer;
use crate::policy::{Approval, Approver, HookAccess, Rules, Secrets};
use crate::registry::Registry;
use crate::sandbox::Sandbox;
use crate::source::ToolsPolicy;
use crate::store::keyvalue::KeyValue;
use crate::store::results::Results;
use crate::tool::{Basis, Body, Limits, Tool};

use crate::pipeline::prepared::{Interpreters, PreparedTool, ProgramCompiler, ToolEntry};
use crate::pipeline::recorder::CallRecorder;

pub(crate) use call_context::{CallContexts, InvocationFields, payload};
pub(crate) use concurrency::{Concurrency, Permits};
pub(crate) use execution::{Execution, RichRunner, Runner};
pub(crate) use hook_chain::{ChainedHook, HookChain};
pub(crate) use memory::{AddedTool, Cache, Memory};
pub use schedule::Scheduler;
pub(crate) use schedule::{Slot, SlotState, StepSchedule, Turn, unless_cancelled};
pub(crate) use scope::{CallScope, CallTree, Parent};
pub(crate) use tasks::{MAX_TASKS, Task, TaskRequest, TaskState, Tasks};

/// State that all calls of one runtime share.
pub(crate) struct Pipeline {
    pub(crate) registry: Registry,
    /// Prepared state of each tool of the registry, in its order.
    pub(crate) prepared: Vec<PreparedTool>,
    pub(crate) rules: Arc<Rules>,
    /// Approvals that hold for every session.
    pub(crate) approved: HashSet<Approval>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) hooks: HookChain,
    /// Scopes of the hooks that scripts add.
    pub(crate) hook_access: HookAccess,
    pub(crate) interpreters: Interpreters,
    /// Handler of the tasks that scripts delegate.
    pub(crate) delegate: Option<Arc<dyn Delegate>>,
    /// Model for the completion requests of rich tools.
    pub(crate) model: Option<Arc<dyn Model>>,
    /// Tools by the names that the operator routes to them.
    pub(crate) routes: HashMap<String, String>,
    pub(crate) contexts: CallContexts,
    /// Policies of projects, by tool name, for the tools that scripts add.
    pub(crate) policies: Vec<ToolsPolicy>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) scheduler: Scheduler,
    pub(crate) results: Option<Results>,
    /// Folder of the values that tools keep beyond a run.
    pub(crate) keyvalue: Option<KeyValue>,
    /// Maximum characters of an answer that a model gets whole, if the operator sets one.
    pub(crate) max_inline: Option<usize>,
    /// Store of the values of secrets.
    pub(crate) secrets: Option<Secrets>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) programs: ProgramCompiler,
    pub(crate) concurrency: Concurrency,
    /// Random part of all invocation identifiers of this pipeline.
    pub(crate) seed: u64,
    /// Number of calls so far.
    pub(crate) calls: AtomicU64,
}

impl Pipeline {
    /// Returns the tool at an index of the registry.
    pub(crate) fn at(&self, index: usize) -> ToolEntry<'_> {
        ToolEntry { tool: &self.registry.tools()[index], prepared: &self.prepared[index], index: Some(index) }
    }

    /// Returns the tool of a name, including the tools that a script of the run has added.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`].
    pub(crate) fn entry<'p>(&'p self, name: &str, memory: &'p Memory) -> Result<ToolEntry<'p>, Error> {
        if let Some(added) = memory.tools.iter().find(|added| added.tool.name == name) {
            return Ok(ToolEntry { tool: &added.tool, prepared: &added.prepared, index: None });
        }
        self.registry.find(name).map(|index| self.at(index))
    }

    /// Returns `true` if any tool can claim calls.
    pub(crate) fn has_claimants(&self) -> bool {
        self.registry.tools().iter().any(|tool| matches!(&tool.body, Body::Rich(rich) if rich.exports.route))
    }

    /// Returns the maximum characters of an answer that a model gets whole: the declared value of the tool, limited by the
    /// operator's, or the operator's own. No answer is longer than the output of its call may be.
    pub(crate) fn max_inline(&self, tool: &Tool, limits: &Limits) -> usize {
        let own = &tool.interface.result.max_inline_chars;
        match self.max_inline {
            Some(cap) if own.basis == Basis::Declared => own.value.min(cap),
            Some(cap) => cap.min(limits.stdout.max(own.value)),
            None => own.value,
        }
    }

    /// Opens the record of a call.
    pub(crate) fn recorder(&self, call: &ToolCall) -> CallRecorder<'_> {
        CallRecorder::new(&self.audit, &self.observers, self.secrets.as_ref(), self.next_invocation(), call)
    }

    /// Opens a record of which no observer is notified.
    pub(crate) fn unwatched_recorder(&self, call: &ToolCall) -> CallRecorder<'_> {
        CallRecorder::new(&self.audit, &[], self.secrets.as_ref(), self.next_invocation(), call)
    }

    /// Records and returns the refusal of a call.
    pub(crate) fn refuse(&self, call: ToolCall, why: ToolError) -> ToolResult {
        self.recorder(&call).close(call, Err(why))
    }

    /// Records a call that never started as cancelled.
    pub(crate) fn record_cancelled(&self, call: &ToolCall) {
        drop(self.recorder(call));
    }

    fn next_invocation(&self) -> String {
        format!("inv_{:016x}_{}", self.seed, self.calls.fetch_add(1, Relaxed) + 1)
    }
}
