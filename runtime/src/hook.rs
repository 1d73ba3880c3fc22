//! What may look at a call before it runs, and at its answer before it is told: allow, block or change. A hook that
//! fails blocks, and no hook beats a denial.

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::Value;

use crate::error::{Outcome, ToolError};
use crate::tool::Tool;

/// What a hook says of a call before it runs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// Nothing.
    Pass,
    /// The call needs no question. A denial stays a denial.
    Allow,
    /// The call is refused with this reason, told to the model.
    Block(String),
    /// The call goes on with other arguments; what the model sent stays in the record.
    Modify(Modification),
    /// Another agent takes the call over: the answer to this task, an object with `task`, takes the place of the tool's.
    Delegate(Value),
}

/// Other arguments for a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Modification {
    /// The arguments, an object. They are checked anew.
    pub arguments: Value,
    /// Where the values are from; needed for fields that a model may not set.
    pub mutation_source: Option<String>,
    /// Why, for the record.
    pub reason: Option<String>,
}

/// What a hook says of an answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Review {
    /// Nothing.
    Pass,
    /// The answer is withheld with this reason, told to the model.
    Block(String),
    /// Another answer takes its place: any JSON.
    Replace(Value),
}

/// A call as a hook sees it before it runs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Proposed<'a> {
    /// The call's identifier in every record.
    pub invocation: &'a str,
    /// The caller's identifier.
    pub call_id: &'a str,
    /// What is called.
    pub tool: &'a Tool,
    /// What the model sent, as it sent it.
    pub model_input: &'a str,
    /// The arguments as they stand: hooks before this one may have changed them.
    pub arguments: &'a Value,
}

/// A call as a hook sees it when it has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended<'a> {
    /// The call's identifier in every record.
    pub invocation: &'a str,
    /// The caller's identifier.
    pub call_id: &'a str,
    /// What was called.
    pub tool: &'a Tool,
    /// The arguments that it got.
    pub arguments: &'a Value,
    /// How it ended.
    pub outcome: Outcome,
    /// The answer, one line of JSON, or the error.
    pub answer: Result<&'a str, &'a ToolError>,
}

/// When a hook is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the call runs, when its arguments are known to be right.
    Before,
    /// After it has run.
    After,
}

/// Something that is heard about calls. Hooks are heard one after the other, by priority and then in the order in which
/// they were added; the first that blocks ends the call.
pub trait Hook: Send + Sync {
    /// Its name, told to the model with a refusal.
    fn name(&self) -> &str;

    /// Lower is earlier.
    fn priority(&self) -> i32 {
        0
    }

    /// Whether it has anything to say about calls of a tool.
    fn applies(&self, _tool: &Tool, _moment: Moment) -> bool {
        true
    }

    /// Judges a call. An `Err` blocks, like a refusal.
    fn before<'a>(&'a self, _call: Proposed<'a>) -> BoxFuture<'a, Result<Verdict, String>> {
        ready(Ok(Verdict::Pass)).boxed()
    }

    /// Judges an answer. An `Err` withholds it.
    fn after<'a>(&'a self, _call: Ended<'a>) -> BoxFuture<'a, Result<Review, String>> {
        ready(Ok(Review::Pass)).boxed()
    }
}
