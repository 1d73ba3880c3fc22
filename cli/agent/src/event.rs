//! Events of a run, printed one per line with `--json` and as a trace for people. The names are a stable contract: fields
//! may be added but not renamed.
//!
//! | `type` | when |
//! |---|---|
//! | `start` | once, before the first request |
//! | `text` | a part of the model's text, where the answer is streamed |
//! | `message` | the whole text of an answer; `final` where it calls nothing and so ends the run |
//! | `tool_call` | a call, before it runs; the calls of one step come together, in their order; `custom` where it carries text |
//! | `tool_preview` | what a call that may run is about to do, in the words of the tool or of its record; the previews of one step come in call order, so perhaps after the first parts of a call |
//! | `tool_part` | a part that a call shows while it runs, with its `number` in the call and the `ms` since that began |
//! | `tool_hooks` | hooks have changed or blocked a call: the `hooks` of its receipt with an `action`; also for the calls that tools make |
//! | `event_hooks` | hooks have changed the text of an `event`, which is `model.post` or `run.end` |
//! | `permission_asked` | a call waits for the approval of the program that reads the events, see [`super::questions`] |
//! | `answer_rejected` | a `line` of standard input is no answer to an open question |
//! | `tool_result` | its end, in the order of the calls, with its `receipt` |
//! | `usage` | after an answer, where the server counts tokens |
//! | `retry` | a request is repeated; the `text` of this step so far is void |
//! | `compacted` | a summary of the model replaced the older `messages` of the conversation; `before` and `after` are tokens |
//! | `warning` | something was not as asked for |
//! | `end` | the run has ended: `reason` is `answer`, `max_steps`, `budget` (named in `budget`) or `interrupted` |
//! | `error` | the run has failed |
//!
//! `step` counts the model's answers from 1; calls that an earlier process left have the step 0. `end` or `error` is the last
//! line. A kept run has its identifier as `run` in `start` and `end`.
//!
//! Events of a subagent carry its `depth`, 1 for subagents of the run's own agent, and its number in the run, `agent`. They
//! include their own `start` and `end` or `error`, and come between the delegating `tool_call` and its `tool_result`.

use serde::{Serialize, Serializer};
use toolcrib::Receipt;
use toolcrib::call::{HookNote, Part};
use toolcrib_base::interrupt;

use super::budget::{AT_BUDGET, BudgetKind};
use super::turn::Usage;
use crate::watch::{self, CallEvent, CallEventKind};

/// One event.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event<'a> {
    /// The run begins.
    Start {
        /// Name of the model.
        model: &'a str,
        /// Names of the offered tools.
        tools: Vec<&'a str>,
        /// Maximum number of steps.
        max_steps: u32,
        /// `true` if answers are streamed.
        stream: bool,
        /// Identifier of the kept run.
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<&'a str>,
    },
    /// Piece of the answer.
    Text {
        /// Number of the step.
        step: u32,
        /// The piece.
        delta: &'a str,
    },
    /// Answer of the model in a step.
    Message {
        /// Number of the step.
        step: u32,
        /// Text of the answer.
        content: &'a str,
        /// `true` for the answer that ends the run.
        r#final: bool,
    },
    /// The model calls a tool.
    ToolCall {
        /// Number of the step.
        step: u32,
        /// Identifier of the call.
        id: &'a str,
        /// Name of the tool.
        name: &'a str,
        /// JSON text, or the text that a custom call carries.
        arguments: &'a str,
        /// `true` for a custom tool, which takes text.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        custom: bool,
    },
    /// Preview of a call, written by its tool or by the tool's definition.
    ToolPreview {
        /// Number of the step.
        step: u32,
        /// Identifier of the call.
        id: &'a str,
        /// Name of the tool.
        name: &'a str,
        /// The preview.
        text: &'a str,
    },
    /// A part that a call shows while it runs.
    ToolPart {
        /// Number of the step.
        step: u32,
        /// Identifier of the call.
        id: &'a str,
        /// Name of the tool.
        name: &'a str,
        /// Number of the part, from 1.
        number: u64,
        /// Milliseconds since the call began to run.
        ms: f64,
        /// The part.
        #[serde(serialize_with = "part_as_json")]
        part: &'a Part,
    },
    /// Hooks that changed or blocked a call.
    ToolHooks {
        /// Number of the step.
        step: u32,
        /// Identifier of the call.
        id: &'a str,
        /// Name of the tool.
        name: &'a str,
        /// The hooks.
        hooks: &'a [HookNote],
    },
    /// Hooks that changed a text of the run before it was reported.
    #[serde(rename = "event_hooks")]
    TextHooks {
        /// Name of the event.
        event: &'a str,
        /// The hooks.
        hooks: &'a [HookNote],
    },
    /// A call waits for an approval.
    PermissionAsked(PermissionAsked<'a>),
    /// A line of the answers is no answer.
    AnswerRejected {
        /// Version of the answer protocol.
        version: u32,
        /// Number of the line, from 1.
        line: u64,
        /// Identifier of the question that the line names.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        /// Reason for the rejection.
        message: &'a str,
    },
    /// A call ended.
    ToolResult(ToolResult<'a>),
    /// Tokens of a step.
    Usage {
        /// Number of the step.
        step: u32,
        /// The tokens.
        #[serde(flatten)]
        usage: Usage,
    },
    /// A request is repeated.
    Retry {
        /// Number of the step.
        step: u32,
        /// Number of the attempt.
        attempt: u32,
        /// Maximum number of attempts.
        attempts: u32,
        /// Time before the attempt, in milliseconds.
        wait_ms: u64,
        /// Reason for the repetition.
        reason: &'a str,
    },
    /// A summary replaced the older part of the conversation.
    Compacted {
        /// Number of replaced messages.
        messages: usize,
        /// Tokens in the context before.
        before: u64,
        /// Tokens in the context after it, estimated.
        after: u64,
    },
    /// Warning of the run.
    Warning {
        /// Text of the warning.
        message: &'a str,
    },
    /// The run ended.
    End {
        /// Reason for the end.
        reason: Ending,
        /// The answer.
        answer: Option<&'a str>,
        /// Budget at which the run stopped.
        #[serde(skip_serializing_if = "Option::is_none")]
        budget: Option<BudgetKind>,
        /// The same in words.
        #[serde(skip)]
        stopped: Option<&'a str>,
        /// Identifier of the kept run.
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<&'a str>,
        /// Figures of the run.
        #[serde(flatten)]
        totals: Totals,
        /// Exit code of the program.
        exit_code: u8,
    },
    /// The run failed.
    Error {
        /// Message of the error.
        message: &'a str,
        /// Exit code of the program.
        exit_code: u8,
    },
}

/// Request for an approval. All texts except the identifiers and the rule come from outside.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionAsked<'a> {
    /// Version of the questions and answers.
    pub(crate) version: u32,
    /// Identifier of the question.
    pub(crate) id: &'a str,
    /// Identifier of the call in `tool_call`.
    pub(crate) call_id: &'a str,
    /// Identifier of the call in all records.
    pub(crate) invocation: &'a str,
    pub(crate) name: &'a str,
    /// JSON text.
    pub(crate) arguments: &'a str,
    /// Fixed arguments of the program, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fixed: Option<&'a str>,
    /// Preview of the call, written by its tool or by the tool's definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preview: Option<&'a str>,
    /// Lines that the call would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<&'a str>,
    pub(crate) granted: &'a [String],
    /// Explanation of the flow, if a rule about flows asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) flow: Option<&'a str>,
    /// Rule or reason that requires the approval.
    pub(crate) rests_on: &'a str,
    /// Reason for the approval in the tool's definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
    pub(crate) source: &'a str,
    pub(crate) properties: &'a str,
    /// Answers that the question takes.
    pub(crate) answers: Vec<&'a str>,
}

/// The end of a call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult<'a> {
    pub(crate) step: u32,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) is_error: bool,
    pub(crate) content: &'a str,
    /// The call and its end in one line, for people, where the tool's record says how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) display: Option<&'a str>,
    /// The package that the tool belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plugin: Option<String>,
    /// Parts for people.
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "parts_as_json")]
    pub(crate) shown: &'a [Part],
    pub(crate) receipt: &'a Receipt,
    /// Standard error of the tool; for people.
    pub(crate) log: &'a str,
    /// Last standard error of a failed call.
    #[serde(skip)]
    pub(crate) log_end: Option<&'a str>,
    /// Hint about a denial.
    #[serde(skip)]
    pub(crate) hint: Option<&'a str>,
    /// Hint about a limit that stopped the call.
    #[serde(skip)]
    pub(crate) limit: Option<&'a str>,
    /// `true` if the step has no other call.
    #[serde(skip)]
    pub(crate) alone: bool,
}

impl<'a> Event<'a> {
    /// Creates a step event from a call event; `None` for the end of a call, which is reported in its turn.
    pub(crate) fn of(step: u32, event: &'a CallEvent) -> Option<Self> {
        let CallEvent { call_id: id, name, kind } = event;
        match kind {
            CallEventKind::Preview(text) => Some(Self::ToolPreview { step, id, name, text }),
            CallEventKind::Part { number, ms, part } => {
                Some(Self::ToolPart { step, id, name, number: *number, ms: *ms, part })
            }
            CallEventKind::Hooks(hooks) => Some(Self::ToolHooks { step, id, name, hooks }),
            CallEventKind::Decided
            | CallEventKind::Ended(_)
            | CallEventKind::NotKept(..)
            | CallEventKind::Asking(_) => None,
        }
    }
}

fn part_as_json<S: Serializer>(part: &Part, serializer: S) -> Result<S::Ok, S::Error> {
    watch::json_of(part).serialize(serializer)
}

fn parts_as_json<S: Serializer>(parts: &[Part], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(parts.iter().map(watch::json_of))
}

/// Reason for the end of a run without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The model answered.
    Answer,
    /// The model still called tools at the last step.
    MaxSteps,
    /// A budget other than the step budget was used up.
    Budget(BudgetKind),
    /// The run was interrupted.
    Interrupted,
}

impl Ending {
    /// Returns the word used in events and traces.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::MaxSteps => "max_steps",
            Self::Budget(_) => "budget",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns the exit code of a run that ends so.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Answer => 0,
            Self::MaxSteps | Self::Budget(_) => AT_BUDGET,
            Self::Interrupted => interrupt::INTERRUPTED,
        }
    }

    /// Returns the budget at which the run stopped.
    pub(crate) fn budget(self) -> Option<BudgetKind> {
        match self {
            Self::MaxSteps => Some(BudgetKind::Steps),
            Self::Budget(kind) => Some(kind),
            Self::Answer | Self::Interrupted => None,
        }
    }
}

impl Serialize for Ending {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A subagent.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Subagent {
    /// Number of delegations above it.
    pub(crate) depth: u32,
    /// Its number among the agents of the run, from 1.
    pub(crate) agent: u64,
}

/// An event with the subagent that it belongs to, if any.
#[derive(Debug, Serialize)]
pub(crate) struct EventLine<'a> {
    #[serde(flatten)]
    pub(crate) event: &'a Event<'a>,
    #[serde(flatten)]
    pub(crate) below: Option<Subagent>,
}

/// Totals of a run.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    pub(crate) steps: u32,
    pub(crate) calls: u64,
    pub(crate) failed_calls: u64,
    /// Failed calls that were denied.
    pub(crate) denied_calls: u64,
    pub(crate) ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
    /// Money for the tokens of the run, if a price is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<f64>,
}
