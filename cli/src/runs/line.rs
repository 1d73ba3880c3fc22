//! Lines of the file of a run. Members may be added under the same version.
//!
//! | `type` | meaning |
//! |---|---|
//! | `run` | the first line: identifier, time, model and folder of the run |
//! | `message` | a message of the conversation; results of one step in the order in which the calls ended |
//! | `calls` | the calls of the last message begin now; without this line none of them has begun |
//! | `asked` | a call of them waits for an approval, and so has not begun |
//! | `begun` | this call was approved and begins now |
//! | `text` | more text of an answer that still arrives |
//! | `void` | the text of the answer so far is void, since the request is repeated |
//! | `usage` | tokens of a request |
//! | `undo` | the conversation is cut to its first messages |
//! | `resumed` | another process goes on with the run |
//! | `end` | the process has ended the run, with its reason |

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::turn::Usage;

/// Version of the format. It changes if an earlier program could misread a file.
pub(crate) const RUN_VERSION: u32 = 1;

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
    },
    Calls {
        ids: Vec<String>,
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

/// Figures of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
}
