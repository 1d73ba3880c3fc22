//! State that all calls of one runtime share, and state that one conversation's calls or one step share. It runs
//! nothing.

pub(crate) mod builtin;
mod call_context;
mod concurrency;
mod execution;
mod held_effects;
mod hook_chain;
mod memory;
mod places;
mod programs;
mod schedule;
mod scope;
mod tasks;
mod unstarted;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::Semaphore;
use toolcrib_staging::{Record, Stages};

use crate::audit::Audit;
use crate::call::{ToolCall, ToolResult};
use crate::delegate::Delegate;
use crate::error::{Error, ToolError};
use crate::model::Model;
use crate::observe::Observer;
use crate::policy::{Approval, Approver, FlowPolicy, HookAccess, Rules, Secrets};
use crate::registry::Registry;
use crate::remote::RemoteTools;
use crate::sandbox::Sandbox;
use crate::schema::ToolValidator;
use crate::source::ToolsPolicy;
use crate::store::keyvalue::KeyValue;
use crate::store::results::Results;
use crate::tool::{Basis, Body, Callers, Limits, Persistence, Tool};
use crate::worker::Workers;

use crate::pipeline::prepared::{
    CallableNames, CodeInterpreters, Interpreters, PreparedTool, ProgramCompiler, SkillPrograms, ToolEntry,
};
use crate::pipeline::recorder::{CallOrigin, CallRecorder};

pub(crate) use call_context::{CallContexts, InvocationFields, payload};
pub(crate) use concurrency::{Concurrency, Permit};
pub(crate) use execution::{Execution, RichRunner, Runner};
pub(crate) use held_effects::HeldEffects;
pub(crate) use hook_chain::{ChainedHook, HookChain};
pub(crate) use memory::{AddedTool, Cache, Memory};
pub(crate) use places::ToolPlaces;
pub(crate) use programs::{OpenSession, ProgramSessions};
pub use schedule::Scheduler;
pub(crate) use schedule::{Slot, SlotState, StepSchedule, Turn, unless_cancelled};
pub(crate) use scope::{CallScope, CallTree, Parent};
pub(crate) use tasks::{MAX_TASKS, Task, TaskRequest, TaskState, Tasks};
pub(crate) use unstarted::UnstartedCall;

/// Maximum characters of a tool's error.
pub(crate) const MAX_ERROR_LEN: usize = 4096;
/// Maximum bytes of data beside arguments and content: the context and the metadata of a call, a setting, the details of an
/// error, and the definitions that one search finds.
pub(crate) const MAX_EXTRA_BYTES: usize = 64 << 10;

/// State that all calls of one runtime share.
pub(crate) struct Pipeline {
    pub(crate) registry: Registry,
    /// Prepared state of each tool in the registry, in its order.
    pub(crate) prepared: Vec<PreparedTool>,
    pub(crate) rules: Arc<Rules>,
    /// Locked while a call commits what it has held back: two commits at once would stop each other in the middle.
    pub(crate) committing: Arc<Mutex<()>>,
    /// Place for the stages of single calls.
    pub(crate) stages: Option<Stages>,
    /// Record of changes, whose origin the commits of these stages have too.
    pub(crate) record: Option<Arc<Record>>,
    /// Rules about flows, with the labels of places.
    pub(crate) flows: Arc<FlowPolicy>,
    /// Approvals that hold for every session.
    pub(crate) approved: HashSet<Approval>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) hooks: HookChain,
    /// Scopes of the hooks that scripts add.
    pub(crate) hook_access: HookAccess,
    pub(crate) interpreters: Interpreters,
    /// Programs that run the scripts of skills.
    pub(crate) skills: SkillPrograms,
    /// Interpreters of the programs that call tools.
    pub(crate) code: CodeInterpreters,
    /// Names of the tools of the registry in programs, once they are needed.
    pub(crate) names: OnceLock<CallableNames>,
    /// Handler of the tasks that scripts delegate.
    pub(crate) delegate: Option<Arc<dyn Delegate>>,
    /// Model for the completion requests of rich tools.
    pub(crate) model: Option<Arc<dyn Model>>,
    /// Client for the servers of remote tools.
    pub(crate) remote: Option<Arc<dyn RemoteTools>>,
    /// Workers that run programs and scripts in place of the sandbox.
    pub(crate) workers: Option<Arc<dyn Workers>>,
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
    /// Store of secret values.
    pub(crate) secrets: Option<Secrets>,
    pub(crate) audit: Arc<Audit>,
    /// Permits for masking large arguments on blocking threads.
    pub(crate) maskings: Arc<Semaphore>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) programs: ProgramCompiler,
    pub(crate) concurrency: Arc<Concurrency>,
    /// Random part of the identifiers for all invocations and sessions in this pipeline.
    pub(crate) seed: u64,
    /// Identifier of the program's run in records.
    pub(crate) run: String,
    /// Number of calls so far.
    pub(crate) calls: AtomicU64,
    /// Number of sessions so far, without the open one.
    pub(crate) sessions: AtomicU64,
}

/// Returns the identifier for a session of the runtime with this seed. Number 0 is the open session.
pub(crate) fn session_id(seed: u64, number: u64) -> String {
    format!("ses_{seed:016x}_{number}")
}

impl Pipeline {
    /// Returns the tool at an index of the registry.
    pub(crate) fn at(&self, index: usize) -> ToolEntry<'_> {
        ToolEntry { tool: &self.registry.tools()[index], prepared: &self.prepared[index], index: Some(index) }
    }

    /// Returns the tool with a name, including tools that a script of the run has added.
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

    /// Returns the workers that run the calls of a tool; `None` if they run in this process.
    pub(crate) fn workers_of(&self, tool: &Tool) -> Option<&dyn Workers> {
        self.workers.as_deref().filter(|_| tool.body.has_program())
    }

    /// Returns `true` if any tool can claim calls.
    pub(crate) fn has_claimants(&self) -> bool {
        self.registry.tools().iter().any(|tool| matches!(&tool.body, Body::Rich(rich) if rich.exports.route))
    }

    /// Returns the names of the tools of the registry in programs.
    pub(crate) fn names_in_programs(&self) -> &CallableNames {
        self.names.get_or_init(|| CallableNames::of(self.registry.tools().iter(), &self.routes))
    }

    /// Returns `true` if a model is shown a tool: in code mode the tools of the host, those that it calls directly, and those that
    /// no program can call because their names give no identifier.
    pub(crate) fn shows(&self, tool: &Tool) -> bool {
        let is_named =
            || self.registry.index(&tool.name).is_none_or(|index| self.names_in_programs().name_of(index).is_some());
        let callers = &tool.interface.discovery.callers;
        match (self.code.is_offered(), callers.value) {
            (false, _) | (true, Callers::Direct) => true,
            (true, Callers::Code) => false,
            (true, Callers::Both) => {
                !self.code.only
                    || callers.basis == Basis::Declared
                    || matches!(tool.body, Body::Builtin(_))
                    || !is_named()
            }
        }
    }

    /// Returns the maximum characters of an answer that a model gets whole: the tool's declared value, limited by the
    /// operator's, or the operator's own. No answer is longer than the output of its call may be.
    pub(crate) fn max_inline(&self, tool: &Tool, limits: &Limits) -> usize {
        let own = &tool.interface.result.max_inline_chars;
        match self.max_inline {
            Some(cap) if own.basis == Basis::Declared => own.value.min(cap),
            Some(cap) => cap.min(limits.stdout.max(own.value)),
            None => own.value,
        }
    }

    /// Returns the maximum characters of a tool's result. A result is never longer than the output of its call.
    pub(crate) fn max_result(&self, tool: &Tool, limits: &Limits) -> usize {
        match tool.interface.result.persistence_policy_ref.value {
            Persistence::Inline => limits.stdout,
            _ => self.max_inline(tool, limits).min(limits.stdout),
        }
    }

    /// Opens the record of a call in a conversation.
    pub(crate) fn recorder<'p>(&'p self, call: Arc<ToolCall>, memory: &'p Memory) -> Box<CallRecorder<'p>> {
        let origin = self.origin(memory);
        let validator = self.audit.is_on().then(|| self.validator(&call.name, memory)).flatten();
        let (secrets, invocation) = (self.secrets.as_ref(), self.next_invocation());
        let mut recorder = CallRecorder::new(&self.audit, &self.observers, secrets, invocation, call, origin);
        // A call that ends before its tool is resolved has sensitive arguments too.
        validator.into_iter().for_each(|validator| recorder.set_validator(validator));
        recorder
    }

    /// Returns the checks for the usable tool with a name.
    fn validator<'p>(&'p self, name: &str, memory: &'p Memory) -> Option<&'p Arc<ToolValidator>> {
        let name = self.routes.get(name).map_or(name, String::as_str);
        if let Some(added) = memory.tools.iter().find(|added| added.tool.name == name) {
            return Some(&added.prepared.input);
        }
        let ToolEntry { tool, prepared, .. } = self.at(self.registry.index(name)?);
        tool.unusable.is_none().then_some(&prepared.input)
    }

    /// Opens the record for a hook of an event. No observer is notified of it, and it has no arguments.
    pub(crate) fn unwatched_recorder<'p>(&'p self, call: ToolCall, memory: &'p Memory) -> Box<CallRecorder<'p>> {
        let (call, origin) = (Arc::new(call), self.origin(memory));
        CallRecorder::new(&self.audit, &[], self.secrets.as_ref(), self.next_invocation(), call, origin)
            .without_arguments()
    }

    fn origin<'p>(&'p self, memory: &'p Memory) -> CallOrigin<'p> {
        CallOrigin { run: &self.run, session: memory.session(), door: self.contexts.door() }
    }

    /// Records and returns the refusal of a call.
    pub(crate) fn refuse(&self, call: ToolCall, memory: &Memory, why: ToolError) -> ToolResult {
        self.recorder(Arc::new(call), memory).close_now(Err(why))
    }

    /// Returns the identifier of the next session.
    pub(crate) fn next_session(&self) -> String {
        session_id(self.seed, self.sessions.fetch_add(1, Relaxed) + 1)
    }

    fn next_invocation(&self) -> String {
        format!("inv_{:016x}_{}", self.seed, self.calls.fetch_add(1, Relaxed) + 1)
    }
}
