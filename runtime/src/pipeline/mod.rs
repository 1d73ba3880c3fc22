//! The one way of a call. Nothing goes round it:
//!
//! resolve → check the arguments' schema → check their values → what may be shown of them → hooks → permit → schedule →
//! execute → map the answer → hooks → keep what is too long → sign.
//!
//! Four inputs are kept apart: what the model sent is never changed; what may be shown is a masked copy; what is judged and
//! what the tool gets are what the hooks made of it.

mod answer;
pub(crate) mod builtin;
mod contract;
mod gate;
mod hear;
mod permit;
mod program;
mod ready;
mod run;
mod secret;
mod session;
mod show;
mod step;
mod ticket;

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures::FutureExt;
use tokio::sync::Semaphore;

use crate::audit::Audit;
use crate::call::{Behavior, Decision, Reason, ToolCall, ToolResult};
use crate::error::{Outcome, ToolError};
use crate::observe::{Observer, What};
use crate::policy::{Approval, Approver, Judged, Rules, Secrets};
use crate::registry::Registry;
use crate::results::Results;
use crate::sandbox::{Program, Sandbox};
use crate::schema::Checked;
use crate::tool::{Body, Tool, Visibility};

pub use gate::Scheduler;
pub(crate) use gate::Turn;
pub(crate) use hear::Hooks;
pub(crate) use ready::Ready;
pub(crate) use session::Memory;
pub use session::Session;
pub use step::Step;

use permit::Case;
use run::Work;
use ticket::Ticket;

/// The most characters of a caller's words that go into a record.
const LONGEST_WORD: usize = 256;

/// Everything a call passes through.
pub(crate) struct Pipeline {
    pub(crate) registry: Registry,
    /// One for each tool of the registry, in its order.
    pub(crate) ready: Vec<Ready>,
    pub(crate) rules: Rules,
    pub(crate) approved: HashSet<Approval>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) hooks: Hooks,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) scheduler: Scheduler,
    pub(crate) results: Option<Results>,
    /// The most characters of an answer that a model is told whole, where its tool names more.
    pub(crate) most_inline: Option<usize>,
    /// Where the values of secrets are read, where an embedder keeps any.
    pub(crate) secrets: Option<Secrets>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) slots: Semaphore,
    pub(crate) waiting: AtomicUsize,
    /// Tells the calls of this pipeline from those of every other, and one from the next.
    pub(crate) seed: u64,
    pub(crate) calls: AtomicU64,
}

/// What surrounds a call: its conversation, and its place in a step.
pub(crate) struct Context<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) turn: Option<&'a Turn>,
}

impl Pipeline {
    /// Takes a call from its door to its record. It always answers, and dropping it stops the guest and leaves a record.
    pub(crate) async fn call(&self, call: ToolCall, context: Context<'_>) -> ToolResult {
        let mut ticket = self.ticket(&call);
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
        let full = ToolError::new(Outcome::Busy, format!("too many calls in one step: at most {most} are executed"));
        self.ticket(&call).close(call, Err(full))
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
        &'p self,
        call: &ToolCall,
        context: &Context<'_>,
        ticket: &mut Ticket<'p>,
    ) -> Result<String, ToolError> {
        let index = self.registry.find(&call.name).map_err(|fault| ticket.fault(fault))?;
        let (tool, ready) = (&self.registry.tools()[index], &self.ready[index]);
        ticket.found(tool, &ready.grant);
        if let Some((decision, why)) = &ready.closed {
            ticket.decide(decision.clone());
            return Err(ToolError::new(Outcome::Denied, why.clone()));
        }
        if tool.interface.discovery.schema_visibility.value == Visibility::Internal && !context.memory.is_open() {
            ticket.decide(Decision::new(Behavior::Deny, Reason::Record, "schema_visibility"));
            return Err(ToolError::new(Outcome::Denied, "the tool is for the host alone"));
        }
        if ready.deferred && !context.memory.has_loaded(index) {
            let name = &tool.name;
            let message = format!("schema_not_loaded: call `tool_search` with `select:{name}` first, then `{name}`");
            return Err(ToolError::new(Outcome::SchemaNotLoaded, message));
        }
        let prepared = self.prepared(index, call, context, ticket);
        let (checked, program) = unless_cancelled(context.turn, prepared).await??;
        let work = Work { tool, ready, program: program.as_deref() };
        let answer = self.execute(&work, &checked, context, ticket).await;
        let answer = secret::guarded(self.secrets.as_ref(), answer);
        ticket.tell(What::Mapped);
        let answer = self.hooks.after(tool, call, &checked.value, answer, ticket).await?;
        self.keep(tool, answer, context, ticket).await
    }

    /// All that is judged before a call may run.
    async fn prepared<'p>(
        &'p self,
        index: usize,
        call: &ToolCall,
        context: &Context<'_>,
        ticket: &mut Ticket<'p>,
    ) -> Result<(Checked, Option<Arc<Program>>), ToolError> {
        let (tool, ready) = (&self.registry.tools()[index], &self.ready[index]);
        let mut checked = ready.check(&call.arguments).await?;
        let program = match &tool.body {
            Body::Command { .. } => Some(self.program_in_time(index, ticket).await?),
            Body::Builtin(_) => None,
        };
        let work = Work { tool, ready, program: program.as_deref() };
        // Nothing of the tool runs for a call that is denied, unless a hook makes another call of it.
        let denied = matches!(self.rules.judge(tool, &ready.grant, &checked.value), Judged::Deny(_));
        if !denied {
            self.check_by_tool(&work, &checked.text, ticket).await?;
        }
        ticket.tell(What::Validated);
        if ticket.shows() {
            ticket.observable(ready.input.observable(&checked.value));
        }
        let hook = self.hooks.before(tool, call, ready, &mut checked, ticket).await?;
        let changed = ticket.is_mutated();
        ready.recheck(&checked, changed).await?;
        if changed || denied {
            self.refuse_denied(tool, ready, &checked.value, ticket)?;
            self.check_by_tool(&work, &checked.text, ticket).await?;
        }
        let digest = work.digest();
        self.permit(Case { tool, ready, checked: &checked, digest, hook }, context, ticket).await?;
        Ok((checked, program))
    }

    /// The most characters of an answer of this tool that a model is told whole.
    fn most_inline(&self, tool: &Tool) -> usize {
        let most = tool.interface.result.max_inline_chars.value;
        self.most_inline.map_or(most, |cap| most.min(cap))
    }

    /// Keeps the whole of an answer that is too long to be told.
    async fn keep(
        &self,
        tool: &Tool,
        answer: String,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<String, ToolError> {
        if let Body::Builtin(_) = tool.body {
            return Ok(answer);
        }
        let most = self.most_inline(tool);
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
        }
        Ok(told)
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

/// As much of a caller's words as goes into a record.
fn clip(word: &str) -> String {
    word.chars().take(LONGEST_WORD).collect()
}
