//! A model's turn, normalized across servers: text, calls with unique identifiers, and usage.

use std::collections::HashSet;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib::call::Payload;

/// Maximum length of an identifier accepted from a server, in bytes.
const MAX_ID_LEN: usize = 256;
/// Maximum length of a tool's name in a call, in characters. No tool has a longer one.
const MAX_NAME_LEN: usize = 256;

/// Reasons for which a model stopped: the token limit, or a content filter.
pub(crate) const LENGTH: &str = "length";
pub(crate) const FILTER: &str = "content_filter";
/// Beginning of the reason for an answer that ended early in another way; a server's reason follows, if it gave one.
pub(crate) const INCOMPLETE: &str = "incomplete";

/// An answer of a model.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Turn {
    /// Text; empty if the turn has only calls.
    pub(crate) text: String,
    /// Calls in order.
    pub(crate) calls: Vec<Call>,
    /// Finish reason in the server's terms.
    pub(crate) finish: Option<String>,
    /// Token usage, if reported.
    pub(crate) usage: Option<Usage>,
    /// Other items of the answer, sent back unchanged, with the positions of its text and calls; see
    /// [`super::message::Message`].
    pub(crate) items: Vec<Value>,
    /// Members of the answer that only its server knows.
    pub(crate) foreign: ForeignMembers,
}

/// Members of a message and its calls that this program does not know, such as the model's reasoning. They go back
/// unchanged to the server and the model that sent them, which may refuse the conversation without them, and to no
/// other.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ForeignMembers {
    /// Server and model, as [`super::request::Request::origin`] names them.
    pub(crate) origin: String,
    pub(crate) message: Map<String, Value>,
    /// Members of each call, in call order.
    pub(crate) calls: Vec<Map<String, Value>>,
}

impl ForeignMembers {
    /// Returns `true` if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.message.is_empty() && self.calls.iter().all(Map::is_empty)
    }
}

/// A call requested by the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// The identifier that ties the result to the call.
    pub id: String,
    /// The tool's name; empty where the model gave none.
    pub name: String,
    /// The arguments as text, which need not be JSON; or the text itself.
    pub arguments: String,
    /// Kind of `arguments`.
    pub payload: Payload,
}

impl Call {
    /// Replaces missing arguments with an empty object.
    pub(crate) fn with_default_arguments(mut self) -> Self {
        if self.payload == Payload::Object && self.arguments.trim().is_empty() {
            self.arguments = "{}".to_owned();
        }
        self
    }
}

/// Tokens used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
    pub(crate) total_tokens: u64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.total_tokens = self.total_tokens.saturating_add(other.total_tokens);
    }
}

/// Separator between a call ID and the number of a nested call: IDs from the model have none, so that a nested call
/// cannot stand for one.
const NESTED: char = '/';

/// Assigns a unique identifier to every call of a conversation.
///
/// A server's own identifier is kept. One that is empty, absurdly long or was used before, or that the call of a tool could have
/// ([`NESTED`]), is replaced by `call_N`, with N the number of the call in the run: the same answers always get the same
/// identifiers.
#[derive(Debug, Default)]
pub(crate) struct Identifiers {
    used: HashSet<String>,
    calls: u64,
}

impl Identifiers {
    /// Starts with the identifiers already used in a conversation.
    pub(crate) fn knowing<'a>(used: impl IntoIterator<Item = &'a str>) -> Self {
        Self { used: used.into_iter().map(str::to_owned).collect(), calls: 0 }
    }

    /// Replaces IDs that are missing, overlong, duplicate or formed like nested calls, and cuts overlong tool names.
    pub(crate) fn settle(&mut self, calls: &mut [Call]) {
        for call in calls {
            self.calls += 1;
            if let Some((end, _)) = call.name.char_indices().nth(MAX_NAME_LEN) {
                call.name.truncate(end);
                call.name.push('…');
            }
            let id = &call.id;
            if id.is_empty() || id.len() > MAX_ID_LEN || id.contains(NESTED) || self.used.contains(id) {
                let free = (self.calls..).map(|n| format!("call_{n}")).find(|id| !self.used.contains(id));
                call.id = free.unwrap_or_default();
            }
            self.used.insert(call.id.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(ids: &[&str]) -> Vec<String> {
        let mut calls: Vec<Call> = ids.iter().map(|id| Call { id: (*id).into(), ..Call::default() }).collect();
        Identifiers::default().settle(&mut calls);
        calls.into_iter().map(|call| call.id).collect()
    }

    #[test]
    fn an_overlong_name_is_cut() {
        let mut calls = ["a".repeat(MAX_NAME_LEN), "é".repeat(4_000_000)].map(|name| Call { name, ..Call::default() });
        Identifiers::default().settle(&mut calls);
        assert_eq!(calls.map(|call| call.name.chars().count()), [MAX_NAME_LEN, MAX_NAME_LEN + 1]);
    }

    #[test]
    fn empty_and_repeated_identifiers_become_numbers() {
        assert_eq!(settled(&["", "x", "x", ""]), ["call_1", "x", "call_3", "call_4"]);
        assert_eq!(settled(&["call_2", "", ""]), ["call_2", "call_3", "call_4"]);
        assert_eq!(settled(&[&"x".repeat(300)]), ["call_1"]);
    }

    #[test]
    fn no_call_of_a_model_has_the_identifier_of_a_nested_call() {
        assert_eq!(settled(&["a", "a/1", "/", "b"]), ["a", "call_2", "call_3", "b"]);
    }

    #[test]
    fn an_identifier_of_an_earlier_turn_is_not_given_again() {
        let mut identifiers = Identifiers::knowing(["call_1"]);
        let mut calls = [Call::default(), Call::default()];
        identifiers.settle(&mut calls);
        assert_eq!(calls.map(|call| call.id), ["call_2", "call_3"]);
    }
}
