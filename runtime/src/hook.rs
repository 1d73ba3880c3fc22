//! Hooks: handlers that judge a call before it runs and its answer before the model gets it. A hook that fails blocks, and
//! no hook overrides a denial.

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::Value;

use crate::error::{HandlerError, Outcome, ToolError};
use crate::tool::Tool;

/// Verdict of a hook about a call before it runs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// The hook has no objection.
    Pass,
    /// The call needs no approval by a person. A denial remains a denial.
    Allow,
    /// The call is refused for this reason, which the model gets.
    Block(String),
    /// The call continues with other arguments; the model's own stay in the record.
    Modify(Modification),
    /// Another agent takes over the call. Its answer to this task, an object with `task`, replaces the tool's.
    Delegate(Value),
}

/// Other arguments for a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Modification {
    /// New arguments, an object. They are checked again.
    pub arguments: Value,
    /// Source of the values; required for fields that a model may not set.
    pub mutation_source: Option<String>,
    /// Reason of the change, for the record.
    pub reason: Option<String>,
}

impl Modification {
    /// Creates a change to these arguments, without a source and a reason.
    pub fn new(arguments: Value) -> Self {
        Self { arguments, mutation_source: None, reason: None }
    }

    /// Sets the source of the values.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.mutation_source = Some(source.into());
        self
    }

    /// Sets the reason of the change.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// Verdict of a hook about an answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Review {
    /// The hook has no objection.
    Pass,
    /// The answer is withheld for this reason, which the model gets.
    Block(String),
    /// This JSON value replaces the answer.
    Replace(Value),
}

/// A hook blocked an event of the run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
#[non_exhaustive]
pub struct EventBlocked {
    /// Name of the hook, and its reason or failure.
    pub reason: String,
}

/// A call before it runs.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProposedCall<'a> {
    /// The host's identifier of the call, the same in every record; empty for a command that a script runs.
    pub invocation: &'a str,
    /// The caller's identifier of the call; empty for a command that a script runs.
    pub call_id: &'a str,
    /// The tool that is called.
    pub tool: &'a Tool,
    /// Text of the arguments, unchanged from the model.
    pub model_input: &'a str,
    /// Current arguments; earlier hooks may have changed them.
    pub arguments: &'a Value,
    /// Owner of the session, if it has one.
    pub owner: Option<&'a str>,
}

/// A call after it has run.
#[derive(Debug)]
#[non_exhaustive]
pub struct FinishedCall<'a> {
    /// The host's identifier of the call, the same in every record.
    pub invocation: &'a str,
    /// The caller's identifier of the call.
    pub call_id: &'a str,
    /// The tool that was called.
    pub tool: &'a Tool,
    /// Text of the arguments, unchanged from the model.
    pub model_input: &'a str,
    /// Arguments that the tool got.
    pub arguments: &'a Value,
    /// Outcome of the call.
    pub outcome: Outcome,
    /// Answer, one line of JSON, or the error.
    pub answer: Result<&'a str, &'a ToolError>,
}

/// Phase of a call in which a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookPhase {
    /// Before the call runs, with valid arguments.
    Before,
    /// After the call has run.
    After,
}

/// Handler that judges calls. Hooks run one after the other, by priority and then in the order in which they were added;
/// the first one that blocks ends the call.
pub trait Hook: Send + Sync {
    /// Returns the name of the hook, which the model gets with a refusal.
    fn name(&self) -> &str;

    /// Returns the priority; hooks with a lower one run earlier.
    fn priority(&self) -> i32 {
        0
    }

    /// Returns `true` if the hook judges the calls of a tool in this phase.
    fn applies(&self, _tool: &Tool, _phase: HookPhase) -> bool {
        true
    }

    /// Judges a call. An `Err` blocks it.
    fn before<'a>(&'a self, _call: ProposedCall<'a>) -> BoxFuture<'a, Result<Verdict, HandlerError>> {
        ready(Ok(Verdict::Pass)).boxed()
    }

    /// Judges an answer. An `Err` withholds it.
    fn after<'a>(&'a self, _call: FinishedCall<'a>) -> BoxFuture<'a, Result<Review, HandlerError>> {
        ready(Ok(Review::Pass)).boxed()
    }
}
