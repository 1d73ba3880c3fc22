//! Lines of a run's file. Members may be added under the same version. Some lines state the figures of the whole run,
//! so that a list need not read the rest.
//!
//! | `type` | meaning |
//! |---|---|
//! | `run` | the first line: identifier, time, model and folder of the run |
//! | `message` | a message of the conversation; results of one step in the order in which the calls ended |
//! | `calls` | calls of the last message are under way: with `singly`, each begins with a line of its own; without, all begin now |
//! | `asked` | a call of them waits for an approval, and so has not begun |
//! | `begun` | this call begins now |
//! | `text` | more text of an answer that still arrives |
//! | `void` | the text of the answer so far is void, since the request is repeated |
//! | `usage` | tokens of a request |
//! | `compacted` | the model gets a summary in place of the first messages |
//! | `undo` | the conversation is cut to its first messages |
//! | `resumed` | another process goes on with the run |
//! | `end` | the process has ended the run, with its reason |

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib::flow::Label;
use toolcrib_base::render::shortened;

use crate::message::{Message, Role};
use crate::turn::Usage;

use super::given::GivenOptions;
use super::shown::ShownPart;

/// Version of the format. It changes if an earlier program could misread a file.
pub(crate) const RUN_VERSION: u32 = 1;
/// Maximum characters of a title.
const MAX_TITLE: usize = 200;

/// First line of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    pub(crate) version: u32,
    /// Identifier of the run.
    pub id: String,
    /// Time of the start.
    pub created: Timestamp,
    /// Command that began the run.
    pub door: String,
    /// Name of the model.
    pub model: String,
    /// Folder in which the run began.
    pub folder: String,
    /// Run that this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Options of the process that began the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) options: Option<GivenOptions>,
}

/// One line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// Start of the file.
    Run(Header),
    /// Message of the conversation.
    Message {
        /// The message, as the API has it.
        message: Value,
        /// `true` if arguments of a call were masked, so that the call cannot be made from this line.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        masked: bool,
        /// The call in a few words, if it may have changed something outside the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<String>,
        /// Parts that the call of a result showed to people.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shown: Vec<ShownPart>,
        /// Run figures up to this message, written now and then: a reader finds them near the end of a long run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<RunFigures>,
    },
    /// Label of all that the model has seen, before the result that adds to it.
    Label(Label),
    /// Calls of the last message.
    Calls {
        /// Identifiers of the calls.
        ids: Vec<String>,
        /// `true` if each call begins with its own line; absent in files of earlier versions.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        singly: bool,
    },
    /// A call waits for an approval.
    Asked {
        /// Identifier of the call.
        id: String,
    },
    /// A call has begun.
    Begun {
        /// Identifier of the call.
        id: String,
    },
    /// Text of an answer that is not complete yet.
    Text {
        /// The text.
        text: String,
    },
    /// The incomplete answer does not count.
    Void,
    /// Tokens of a step.
    Usage(Usage),
    /// A summary replaces the first messages for the model.
    Compacted {
        /// Number of messages that it replaces.
        messages: usize,
        /// The summary.
        summary: String,
    },
    /// Exchanges were taken back.
    Undo {
        /// Number of messages that stay.
        messages: usize,
        /// Figures of the run after this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<RunFigures>,
    },
    /// Another process continues the run.
    Resumed {
        /// Time of the continuation.
        at: Timestamp,
        /// Name of the model.
        model: String,
        /// Options of this process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        options: Option<GivenOptions>,
    },
    /// The run ended.
    End {
        /// Time of the end.
        at: Timestamp,
        /// Reason for the end.
        reason: String,
        /// Number of steps.
        steps: u32,
        /// Number of calls.
        calls: u64,
        /// Figures of the run in all its processes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<RunFigures>,
    },
}

impl Line {
    /// Returns the figures of the run that the line states.
    pub(crate) fn figures(&self) -> Option<&RunFigures> {
        match self {
            Self::Message { whole, .. } | Self::Undo { whole, .. } | Self::End { whole, .. } => whole.as_ref(),
            _ => None,
        }
    }
}

/// Figures of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// Requests that the model answered.
    pub steps: u32,
    /// Calls with a result.
    pub calls: u64,
    /// Tokens of all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Milliseconds in which processes worked on the run, as far as they stated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// Token cost in the currency of the price; absent where no process had a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// `true` if parts of the conversation were taken back; absent where nothing says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undone: Option<bool>,
    /// Beginning of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl RunFigures {
    /// Returns the title of a run that begins with a prompt.
    pub(crate) fn title_of(prompt: &Message) -> String {
        shortened(&prompt.shown_text(), MAX_TITLE).into_owned()
    }

    /// Adds a message.
    pub(crate) fn add_message(&mut self, message: &Message) {
        match message.role {
            Role::Assistant => self.steps += 1,
            Role::Tool => self.calls += 1,
            Role::User if self.title.is_none() => self.title = Some(Self::title_of(message)),
            _ => {}
        }
    }

    /// Sets the time and the cost of the run: both before a process, and its own.
    pub(crate) fn set_spent(&mut self, before: (Option<u64>, Option<f64>), own: (u64, Option<f64>)) {
        self.ms = Some(before.0.unwrap_or_default().saturating_add(own.0));
        self.cost = match (before.1, own.1) {
            (None, None) => None,
            (before, own) => Some(before.unwrap_or_default() + own.unwrap_or_default()),
        };
    }

    /// Adds the tokens of a request.
    pub(crate) fn add_usage(&mut self, usage: Usage) {
        *self.usage.get_or_insert_default() += usage;
    }
}
