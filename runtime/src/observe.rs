//! Events of calls for observers: records, traces and progress. A call without observers pays nothing for them, and
//! observers change nothing.

mod sent_requests;

use std::time::SystemTime;

use serde::Serialize;
use serde_json::Value;

use crate::call::{Decision, Mutation, Part, Persisted, ToolResult, TraceContext};
use crate::hook::HookPhase;
use crate::tool::Tool;

pub use sent_requests::SentRequests;

/// Receives call events. It runs on the path of the call and should hand work to another thread or task.
pub trait Observer: Send + Sync {
    /// Receives one event.
    fn observe(&self, event: &Event<'_>);

    /// Returns the reason why the programs of a model may begin no further call, such as a budget that is used up. It is asked
    /// before each of their calls; calls that run at the same time are observed when they end.
    fn refusal(&self) -> Option<String> {
        None
    }
}

/// Event of one call.
#[derive(Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The host's identifier of the call, the same in every record.
    pub invocation: &'a str,
    /// The caller's identifier of the call.
    pub call_id: &'a str,
    /// Name that was called.
    pub name: &'a str,
    /// The tool, once it is resolved.
    pub tool: Option<&'a Tool>,
    /// Position of the call in the calling program's trace.
    pub trace: Option<TraceContext>,
    /// Time of the event.
    pub at: SystemTime,
    /// Kind of the event.
    pub kind: EventKind<'a>,
}

/// Kinds of events, in the order in which they occur.
#[derive(Debug)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// The call was received; the text is the model's own.
    Received(&'a str),
    /// The tool was resolved.
    Resolved,
    /// The arguments match the schema, and their values the rules.
    Validated,
    /// The arguments for logs, traces and transcripts, with sensitive values masked.
    Observable(&'a Value),
    /// A hook has run.
    HookRan(HookEvent<'a>),
    /// A hook changed the arguments.
    Mutated(&'a Mutation),
    /// The call needs authorization with these arguments.
    Authorizing(&'a Value),
    /// Preview of the call for people, from the tool or its definition.
    Preview(&'a str),
    /// A person is asked for approval.
    ApprovalRequested(&'a Decision),
    /// The decision about the call.
    Decided(&'a Decision),
    /// The call waits for its turn.
    Queued,
    /// The tool starts, with these arguments.
    Started(&'a Value),
    /// The running call shows a part.
    Part {
        /// Number of the part in the call, from 1.
        number: u64,
        /// The part.
        part: &'a Part,
    },
    /// The tool has written its answer.
    Progress {
        /// Bytes of the answer.
        bytes: u64,
    },
    /// The answer was mapped.
    Mapped,
    /// The answer was too long and was shortened.
    Persisted(&'a Persisted),
    /// The call has ended.
    Ended(&'a ToolResult),
}

/// Verdict of a hook.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct HookEvent<'a> {
    /// Name of the hook.
    pub hook: &'a str,
    /// Phase in which it ran.
    #[serde(skip)]
    pub phase: HookPhase,
    /// `pass`, `allow`, `block`, `modify`, `replace` or `failed`.
    #[serde(rename = "said")]
    pub verdict: &'static str,
    /// Reason of the verdict, if the hook gave one.
    pub reason: Option<&'a str>,
}
