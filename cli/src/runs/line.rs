//! Lines of the file of a run. Members may be added under the same version. Some lines state the figures of the whole run, so
//! that a list need not read the rest.
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
//! | `undo` | the conversation is cut to its first messages |
//! | `resumed` | another process goes on with the run |
//! | `end` | the process has ended the run, with its reason |

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::message::{Message, Role};
use crate::agent::turn::Usage;
use crate::render::shortened;

use super::shown::ShownPart;

/// Version of the format. It changes if an earlier program could misread a file.
pub(crate) const RUN_VERSION: u32 = 1;
/// Maximum characters of a title.
const MAX_TITLE: usize = 200;

/// First line of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) version: u32,
    pub(crate) id: String,
    pub(crate) created: Timestamp,
    /// Command that began the run.
    pub(crate) door: String,
    pub(crate) model: String,
    /// Folder in which the run began.
    pub(crate) folder: String,
    /// Run from which this one was forked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
}

/// One line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Line {
    Run(Header),
    Message {
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
        /// Figures of the run with this message, now and then: those of a long run are read near its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<RunFigures>,
    },
    Calls {
        ids: Vec<String>,
        /// `true` if each of them begins with a line of its own; absent in files of earlier versions.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        singly: bool,
    },
    Asked {
        id: String,
    },
    Begun {
        id: String,
    },
    Text {
        text: String,
    },
    Void,
    Usage(Usage),
    Undo {
        /// Number of messages that stay.
        messages: usize,
        /// Figures of the run after this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<RunFigures>,
    },
    Resumed {
        at: Timestamp,
        model: String,
    },
    End {
        at: Timestamp,
        reason: String,
        steps: u32,
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunFigures {
    /// Requests that the model answered.
    pub(crate) steps: u32,
    /// Calls with a result.
    pub(crate) calls: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
    /// `true` if parts of the conversation were taken back; absent where nothing says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undone: Option<bool>,
    /// Beginning of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
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

    /// Adds the tokens of a request.
    pub(crate) fn add_usage(&mut self, usage: Usage) {
        *self.usage.get_or_insert_default() += usage;
    }
}
