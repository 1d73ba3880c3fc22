//! Texts in place of results that a run does not have, and the mark for an answer that broke off. Every call needs a
//! result before the conversation goes on.

use serde_json::json;

use crate::message::{Message, Role};
use crate::turn::Call;

/// Mark at the end of a text that broke off.
pub const BROKEN_OFF: &str = "\n[The answer was interrupted here.]";
/// Mark at the end of a text that still arrives.
const ARRIVING: &str = "\n[The answer was still arriving here.]";

/// Reason for which a call has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingResult {
    /// The call began, and the process ended before it.
    Interrupted,
    /// The call never began, and some of its arguments were not kept.
    Masked,
    /// The call belongs to the run that this one was copied from.
    OfOrigin,
    /// The run stopped before the call.
    Stopped,
    /// The run goes on, and the call has this state.
    InProgress(CallState),
}

/// State of a call that has no result yet, in a run that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// The call has not begun.
    NotBegun,
    /// The call waits for an approval.
    AwaitsApproval,
    /// The call has begun.
    Begun,
}

impl CallState {
    /// Name of the state in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotBegun => "not_begun",
            Self::AwaitsApproval => "awaiting_approval",
            Self::Begun => "begun",
        }
    }

    /// Describes the state after "in progress".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::NotBegun => "not begun yet",
            Self::AwaitsApproval => "waits for an approval",
            Self::Begun => "begun and not ended",
        }
    }
}

impl MissingResult {
    /// Creates the message in place of a call's result.
    pub(crate) fn message(self, call: &Call) -> Message {
        Message::result(call, json!({ "error": self.error() }).to_string().into())
    }

    fn error(self) -> String {
        let error = match self {
            Self::Interrupted => {
                "interrupted: the program ended while this call ran, so it may or may not have happened; it is not repeated. \
                 Find out before you make it again"
            }
            Self::Masked => {
                "not made: the program ended before this call, and its arguments held a secret that is not kept"
            }
            Self::OfOrigin => {
                "not made: this conversation is a copy, and the call belongs to the run that it was copied from, which may \
                 have made it since. Find out before you make it again"
            }
            Self::Stopped => "not made: the run stopped before this call",
            Self::InProgress(state) => {
                return format!("in progress when this conversation was exported: {}", state.in_words());
            }
        };
        error.to_owned()
    }
}

/// Creates the message of an answer that broke off.
pub fn broken_off(text: &str) -> Message {
    Message::text(Role::Assistant, format!("{}{BROKEN_OFF}", text.trim_end()))
}

/// Creates the message of an answer that still arrives.
pub(super) fn arriving(text: &str) -> Message {
    Message::text(Role::Assistant, format!("{}{ARRIVING}", text.trim_end()))
}
