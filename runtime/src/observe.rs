//! EventKind happens in a call, told step by step to whoever watches: for records, traces and progress. Watching costs a call
//! nothing where nobody does, and changes nothing where somebody does.

use std::time::SystemTime;

use serde::Serialize;
use serde_json::Value;

use crate::call::{Decision, Mutation, Part, Persisted, ToolResult};
use crate::hook::Moment;
use crate::tool::Tool;

/// Watches calls. It is called on the path of the call: it hands work on rather than doing it.
pub trait Observer: Send + Sync {
    /// Something has happened.
    fn observe(&self, event: &Event<'_>);
}

/// One thing that happened in a call.
#[derive(Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The call's identifier in every record.
    pub invocation: &'a str,
    /// The caller's identifier.
    pub call_id: &'a str,
    /// The name that was called.
    pub name: &'a str,
    /// The tool, once it was found.
    pub tool: Option<&'a Tool>,
    /// Time of the event.
    pub at: SystemTime,
    /// EventKind.
    pub kind: EventKind<'a>,
}

/// EventKind can happen in a call, in this order.
#[derive(Debug)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// A door handed it in; the text is what the model sent.
    Received(&'a str),
    /// Its tool was found and is loaded.
    Resolved,
    /// Its arguments fit the schema, and its values the rules.
    Validated,
    /// The arguments as hooks' logs, traces and transcripts may show them: sensitive values masked.
    Observable(&'a Value),
    /// A hook was heard.
    Hooked(Hooked<'a>),
    /// The arguments were changed.
    Mutated(&'a Mutation),
    /// The arguments about which rules and people are asked.
    Judging(&'a Value),
    /// EventKind the call is about to do, for people: in the tool's own words, or in its record's.
    Preview(&'a str),
    /// A person is being asked.
    Asking(&'a Decision),
    /// It was decided.
    Decided(&'a Decision),
    /// It waits for its turn.
    Queued,
    /// The tool starts, with these arguments.
    Started(&'a Value),
    /// It shows a part of its work while it goes on.
    Part {
        /// Its number in the call, from 1.
        number: u64,
        /// The part.
        part: &'a Part,
    },
    /// It has written an answer of so many bytes.
    Progress {
        /// Bytes written so far.
        bytes: u64,
    },
    /// Its answer was mapped.
    Mapped,
    /// The answer was too long, and this became of it.
    Persisted(&'a Persisted),
    /// It has ended, with the arguments it got where it got any.
    Ended(&'a ToolResult),
}

/// EventKind a hook said.
#[derive(Debug, Clone, Serialize)]
pub struct Hooked<'a> {
    /// The hook.
    pub hook: &'a str,
    /// When it was heard.
    #[serde(skip)]
    pub moment: Moment,
    /// `pass`, `allow`, `block`, `modify`, `replace` or `failed`.
    pub said: &'static str,
    /// Why, where it said why.
    pub reason: Option<&'a str>,
}
