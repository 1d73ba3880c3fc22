//! The one way of a call. Nothing goes round it:
//!
//! resolve → check the arguments' schema → check their values → what may be shown of them → hooks → permit → schedule →
//! execute → map the answer → hooks → keep what is too long → sign.
//!
//! Four inputs are kept apart: what the model sent is never changed; what may be shown is a masked copy; what is judged and
//! what the tool gets are what the hooks made of it.

mod adding;
mod answer;
mod attendant;
pub(crate) mod builtin;
mod contract;
mod gate;
mod hear;
mod interpreter;
mod listener;
mod memory;
mod parts;
mod permit;
mod program;
mod provided;
mod ready;
mod rich;
mod route;
mod run;
mod script;
mod secret;
mod services;
mod session;
mod show;
mod step;
mod surroundings;
mod task;
mod ticket;
mod typed;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};

use futures::FutureExt;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::audit::Audit;
use crate::call::{Behavior, Decision, Payload, Reason, ToolCall, ToolResult};
use crate::delegate::{Delegate, MAX_DEPTH};
use crate::error::{Error, Outcome, ToolError};
use crate::keyvalue::KeyValue;
use crate::model::Model;
use crate::observe::{EventKind, Observer};
use crate::policy::{Approval, Approver, Grant, Judged, Rules, Secrets};
use crate::registry::Registry;
use crate::results::Results;
use crate::sandbox::{Sandbox, Usage};
use crate::schema::Checked;
use crate::source::ToolsPolicy;
use crate::tool::{Basis, Body, Limits, Service, Tool, Visibility};

pub use gate::Scheduler;
pub(crate) use gate::Turn;
pub(crate) use hear::{Hooks, Listener};
pub(crate) use interpreter::Interpreters;
pub(crate) use listener::Scripted;
pub(crate) use memory::Memory;
pub(crate) use program::Compiled;
pub(crate) use ready::{Programs, Ready};
pub use session::Session;
pub use step::Step;
pub(crate) use surroundings::Surroundings;

use hear::Heard;
use permit::Case;
use rich::Asking;
use run::{Code, Work};
use task::{Tasks, Through};
use ticket::Ticket;

/// The most characters of a caller's words that go into a record.
const MAX_WORD_LEN: usize = 256;

/// Everything a call passes through.
pub(crate) struct Pipeline {
    pub(crate) registry: Registry,
    /// One for each tool of the registry, in its order.
    pub(crate) ready: Vec<Ready>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) approved: HashSet<Approval>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) hooks: Hooks,
    pub(crate) interpreters: Interpreters,
    /// Who takes over the tasks that scripts hand on.
    pub(crate) delegate: Option<Arc<dyn Delegate>>,
    /// Who answers the questions of rich tools to a model.
    pub(crate) model: Option<Arc<dyn Model>>,
    /// Which tool answers to a name, where the operator says so.
    pub(crate) routes: HashMap<String, String>,
    pub(crate) surroundings: Surroundings,
    /// EventKind projects say of tools by their names, for those that scripts add.
    pub(crate) policies: Vec<ToolsPolicy>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) scheduler: Scheduler,
    pub(crate) results: Option<Results>,
    /// Where tools keep values that outlive a run, where an embedder says so.
    pub(crate) keyvalue: Option<KeyValue>,
    /// The most characters of an answer that a model is told whole, where the operator says so.
    pub(crate) max_inline: Option<usize>,
    /// Where the values of secrets are read, where an embedder keeps any.
    pub(crate) secrets: Option<Secrets>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) compiled: Arc<Compiled>,
    /// How many calls run at once, those of an agent apart from those of the agents to which it handed on, which it waits
    /// for.
    pub(crate) slots: [Semaphore; MAX_DEPTH as usize + 1],
    pub(crate) waiting: AtomicUsize,
    /// Tells the calls of this pipeline from those of every other, and one from the next.
    pub(crate) seed: u64,
    pub(crate) calls: AtomicU64,
}

/// EventKind surrounds a call: its conversation, and its place in a step.
pub(crate) struct Context<'a> {
    memory: &'a Arc<Memory>,
    /// The tasks that its conversation has begun.
    tasks: Option<&'a Tasks>,
    turn: Option<&'a Turn>,
    /// Who waits to hear that it was let through.
    through: Option<&'a Through>,
    /// How many agents and tools have called one another before.
    depth: u32,
    /// The call that makes this one.
    parent: Option<Parent<'a>>,
}

/// A call that makes another: what it may call, and what all calls below the first one may do together.
#[derive(Clone, Copy)]
struct Parent<'a> {
    invocation: &'a str,
    grant: &'a Grant,
    usage: &'a Usage,
    together: &'a Arc<Together>,
}

/// EventKind the calls of a tree have done so far.
#[derive(Debug, Default)]
struct Together {
    calls: AtomicU64,
    completions: AtomicU64,
}

impl Parent<'_> {
    /// Whether the tool that a call has come to may be called, whatever it was called by.
    fn may_call(&self, tool: &Tool) -> Result<(), ToolError> {
        if let Body::Builtin(_) = tool.body {
            return Err(ToolError::new(Outcome::Denied, format!("`{}` is for a model alone", tool.name)));
        }
        self.grant.rights().check(Service::Call, Some(&tool.name)).map_err(|denial| {
            let hint = denial.flag.as_ref().map(|flag| format!("; `{flag}` would allow it")).unwrap_or_default();
            self.usage.refused(denial);
            ToolError::new(Outcome::Denied, format!("permission denied by the grant{hint}"))
        })
    }
}

/// A tool with what is settled for it.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'p> {
    pub(crate) tool: &'p Tool,
    pub(crate) ready: &'p Ready,
    /// Its place in the registry, where it has one.
    pub(crate) index: Option<usize>,
}

impl Pipeline {
    /// The tool of this name at its place.
    pub(crate) fn at(&self, index: usize) -> Entry<'_> {
        Entry { tool: &self.registry.tools()[index], ready: &self.ready[index], index: Some(index) }
    }

    /// The tool of this name, also one that a script of the run has added.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`].
    pub(crate) fn entry<'p>(&'p self, name: &str, memory: &'p Memory) -> Result<Entry<'p>, Error> {
        if let Some(added) = memory.tools.iter().find(|added| added.tool.name == name) {
            return Ok(Entry { tool: &added.tool, ready: &added.ready, index: None });
        }
        self.registry.find(name).map(|index| self.at(index))
    }

    /// Takes a call from its door to its record. It always answers, and dropping it stops the guest and leaves a record.
    pub(crate) async fn call<'p>(self: &'p Arc<Self>, call: ToolCall, context: Context<'p>) -> ToolResult {
        let mut ticket = self.ticket(&call).watched_by(context.memory.watcher(), &call);
        let ended = match self.audit.ready() {
            Ok(()) => {
                let passed = AssertUnwindSafe(self.pass(&call, &context, &mut ticket)).catch_unwind().await;
                passed.unwrap_or_else(|_| Err(ToolError::new(Outcome::Trap, "the call broke off inside the host")))
            }
            Err(fault) => Err(ticket.fault(fault)),
        };
        let ended = ended.or_else(|error| secret::guarded(self.secrets.as_ref(), Err(error)));
        let result = ticket.close(call, ended);
        // Those that wait for it begin when it is signed for, and not in the middle of that.
        if let Some(turn) = context.turn {
            turn.end(result.outcome.as_ref().is_err_and(|error| error.outcome != Outcome::Cancelled));
        }
        result
    }

    /// Signs for a call that its step has no room for.
    pub(crate) fn refuse_crowded(&self, call: ToolCall) -> ToolResult {
        let most = self.scheduler.calls;
        self.refuse(
            call,
            ToolError::new(Outcome::Busy, format!("too many calls in one step: at most {most} are executed")),
        )
    }

    /// Signs for a call that is refused as it is.
    fn refuse(&self, call: ToolCall, why: ToolError) -> ToolResult {
        self.ticket(&call).close(call, Err(why))
    }

    /// A ticket of which nobody who watches calls is told.
    fn unwatched(&self, call: &ToolCall) -> Ticket<'_> {
        let invocation = format!("inv_{:016x}_{}", self.seed, self.calls.fetch_add(1, Relaxed) + 1);
        Ticket::new(&self.audit, &[], self.secrets.as_ref(), invocation, call)
    }

    /// Signs for a call that never began.
    pub(crate) fn sign_cancelled(&self, call: &ToolCall) {
        drop(self.ticket(call));
    }

    fn ticket(&self, call: &ToolCall) -> Ticket<'_> {
        let invocation = format!("inv_{:016x}_{}", self.seed, self.calls.fetch_add(1, Relaxed) + 1);
        Ticket::new(&self.audit, &self.observers, self.secrets.as_ref(), invocation, call)
    }

    async fn pass<'p>(
        self: &'p Arc<Self>,
        call: &ToolCall,
        context: &Context<'p>,
        ticket: &mut Ticket<'p>,
    ) -> Result<String, ToolError> {
        ticket.within(context.parent.map(|parent| parent.invocation));
        let entry = unless_cancelled(context.turn, self.whose(call, context, ticket)).await??;
        let Entry { tool, ready, index } = entry;
        if let Some(parent) = &context.parent {
            parent.may_call(tool)?;
        }
        if let Some(unusable) = &tool.unusable {
            ticket.found(tool, &ready.grant);
            ticket.fault(unusable.fault.clone());
            return Err(ToolError::new(Outcome::BadComponent, unusable.why.clone()));
        }
        if let Some(why) = &call.unreadable {
            ticket.found(tool, &ready.grant);
            return Err(ToolError::new(Outcome::BadArguments, clip(why)));
        }
        let carried = carried(tool, call)?;
        let call = carried.as_ref();
        ticket.found(tool, &ready.grant);
        if let Some((decision, why)) = &ready.disabled {
            ticket.decide(decision.clone());
            return Err(ToolError::new(Outcome::Denied, why.clone()));
        }
        if tool.interface.discovery.schema_visibility.value == Visibility::Internal && !context.memory.is_open() {
            ticket.decide(Decision::new(Behavior::Deny, Reason::Record, "schema_visibility"));
            return Err(ToolError::new(Outcome::Denied, "the tool is for the host alone"));
        }
        if ready.deferred && !index.is_some_and(|index| context.memory.has_loaded(index)) {
            let name = &tool.name;
            let message = format!("schema_not_loaded: call `tool_search` with `select:{name}` first, then `{name}`");
            return Err(ToolError::new(Outcome::SchemaNotLoaded, message));
        }
        let prepared = self.prepared(entry, call, context, ticket);
        let (work, checked, delegated) = unless_cancelled(context.turn, prepared).await??;
        context.let_through();
        let answer = match delegated {
            Some(task) => self.delegated(task, ready, context, ticket).await,
            None => self.execute(&work, &checked, context, ticket).await,
        };
        let answer = self.guarded(answer, ready, ticket).await;
        ticket.tell(EventKind::Mapped);
        let heard = self.hooks.after(self, tool, call, &checked.value, answer, context, ticket);
        let answer = unless_cancelled(context.turn, heard).await??;
        self.keep((tool, &ready.limits), answer, context, ticket).await
    }

    /// All that is judged before a call may run.
    async fn prepared<'p>(
        self: &'p Arc<Self>,
        entry: Entry<'p>,
        call: &ToolCall,
        context: &Context<'p>,
        ticket: &mut Ticket<'p>,
    ) -> Result<(Work<'p>, Checked, Option<Value>), ToolError> {
        let Entry { tool, ready, .. } = entry;
        let mut checked = ready.check(&call.arguments, ticket).await?;
        let code = match &tool.body {
            Body::Command { .. } => Code::Command(self.program_in_time(entry, ticket).await?),
            Body::Typed(typed) => Code::Typed(self.program_in_time(entry, ticket).await?, typed),
            Body::Script(script) => Code::Script(self.interpreter(ready).await?, script),
            Body::Builtin(builtin) => Code::Host(*builtin),
            Body::Rich(_) => {
                let program = self.program_in_time(entry, ticket).await?;
                Code::Rich(program, Box::new(Asking::of(self, tool, call, context, ticket)))
            }
            Body::Absent => return Err(ToolError::new(Outcome::BadComponent, "the tool has no program")),
        };
        let work = Work { tool, ready, code };
        // Nothing of the tool runs for a call that is denied, unless a hook makes another call of it.
        let denied = matches!(self.judge(tool, ready, &checked, ticket).await?, Judged::Deny(_));
        if !denied {
            self.check_by_tool(&work, &checked, context, ticket).await?;
        }
        ticket.tell(EventKind::Validated);
        if ticket.shows() {
            ticket.observable(ready.input.observable(&checked.value));
        }
        let Heard { allowed, delegated } = self.hooks.before(self, entry, call, &mut checked, context, ticket).await?;
        let changed = ticket.is_mutated();
        ready.recheck(&checked, changed, ticket).await?;
        if changed || denied {
            self.refuse_denied(tool, ready, &checked, ticket).await?;
            self.check_by_tool(&work, &checked, context, ticket).await?;
        }
        let preview = match self.judge(tool, ready, &checked, ticket).await? {
            Judged::Deny(_) => None,
            _ => self.preview(&work, &checked, context, ticket).await,
        };
        let (digest, preview) = (work.digest(), preview.as_deref());
        self.permit(Case { tool, ready, checked: &checked, digest, preview, hook: allowed }, context, ticket).await?;
        Ok((work, checked, delegated))
    }

    /// The most characters of an answer of this tool that a model is told whole: what its record says, else what the
    /// operator says, who sets the most that any record gets. No answer is longer than the output of its call may be.
    fn max_inline(&self, tool: &Tool, limits: &Limits) -> usize {
        let own = &tool.interface.result.max_inline_chars;
        match self.max_inline {
            Some(cap) if own.basis == Basis::Declared => own.value.min(cap),
            Some(cap) => cap.min(limits.stdout.max(own.value)),
            None => own.value,
        }
    }

    /// Keeps the whole of an answer that is too long to be told.
    async fn keep(
        &self,
        (tool, limits): (&Tool, &Limits),
        answer: String,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<String, ToolError> {
        if let Body::Builtin(_) = tool.body {
            return Ok(answer);
        }
        let most = self.max_inline(tool, limits);
        if answer.len() <= most {
            return Ok(answer);
        }
        let (tool, invocation, results) = (tool.clone(), ticket.invocation().to_owned(), self.results.clone());
        let cut = move || answer::shortened(&tool, &invocation, most, answer, results.as_ref());
        let cut = tokio::task::spawn_blocking(cut).await;
        let lost = || ToolError::new(Outcome::BadResult, "the answer is too long and could not be kept");
        let (told, persisted) = cut.map_err(|_| lost())?.map_err(|fault| {
            ticket.fault(fault);
            lost()
        })?;
        if let Some(persisted) = persisted {
            context.memory.has_kept.fetch_or(persisted.reference.is_some(), Relaxed);
            ticket.persisted(persisted);
            ticket.told_otherwise();
        }
        Ok(told)
    }
}

impl<'a> Context<'a> {
    /// Of a call that is in no step.
    pub(crate) fn alone(memory: &'a Arc<Memory>) -> Self {
        Self::within(memory, None)
    }

    /// Of a call in its place in a step, where it has one.
    pub(crate) fn within(memory: &'a Arc<Memory>, turn: Option<&'a Turn>) -> Self {
        Self { memory, tasks: None, turn, through: None, depth: memory.depth, parent: None }
    }

    /// Tells whoever waits that nothing refuses the call any more.
    fn let_through(&self) {
        let waiting = self.through.and_then(|through| through.lock().unwrap_or_else(PoisonError::into_inner).take());
        // Who waited may be gone.
        let _ = waiting.map(|waiting| waiting.send(()));
    }
}

/// The end of `future`, or why its turn was cancelled before.
async fn unless_cancelled<T>(turn: Option<&Turn>, future: impl Future<Output = T>) -> Result<T, ToolError> {
    let Some(turn) = turn else { return Ok(future.await) };
    tokio::select! {
        biased;
        why = turn.cancelled() => Err(why),
        end = future => Ok(end),
    }
}

/// A call with the object that its tool's schema is about: text is carried in the one field that the tool names.
fn carried<'c>(tool: &Tool, call: &'c ToolCall) -> Result<Cow<'c, ToolCall>, ToolError> {
    if call.payload == Payload::Object {
        return Ok(Cow::Borrowed(call));
    }
    let Some(text) = &tool.text else {
        let message = format!("the tool `{}` takes an object of arguments, not text", tool.name);
        return Err(ToolError::new(Outcome::BadArguments, message));
    };
    let mut object = json!({});
    object[&text.field] = json!(call.arguments);
    Ok(Cow::Owned(ToolCall { arguments: object.to_string(), ..call.clone() }))
}

/// As much of a caller's words as goes into a record.
fn clip(word: &str) -> String {
    word.chars().take(MAX_WORD_LEN).collect()
}
