//! Conversation message in the strict form of the Chat Completions API. Content specific to the Responses API is in
//! extra fields, and unknown fields are preserved.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolcrib::call::Payload;

use super::answer::push_text;
use super::reply::Reply;
use super::turn::{Call, Turn};

/// Maximum length of a function name that the APIs accept, in characters.
const MAX_NAME_LEN: usize = 64;

/// A message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Message {
    /// Author of the message.
    pub role: Role,
    #[serde(default)]
    pub(super) content: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool_calls: Option<Vec<MessageCall>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<String>,
    /// Output items besides text and calls, in order, with a [`Placeholder`] for each text and call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) output_items: Vec<Value>,
    /// Parts of a result with more than text.
    #[serde(rename = "output_parts", default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<Value>,
    /// Server and model that sent the other members, which go back to no other; `None` for members from a user.
    #[serde(rename = "made_by", default, skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<String>,
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

/// Position of a message's text or call among its output items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placeholder {
    Text,
    Call,
}

impl Placeholder {
    /// Parses an item as a placeholder; `None` for an actual output item.
    pub(super) fn of(item: &Value) -> Option<Self> {
        match item.as_str()? {
            "text" => Some(Self::Text),
            "call" => Some(Self::Call),
            _ => None,
        }
    }
}

impl From<Placeholder> for Value {
    fn from(placeholder: Placeholder) -> Self {
        match placeholder {
            Placeholder::Text => "text".into(),
            Placeholder::Call => "call".into(),
        }
    }
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions of the operator.
    System,
    /// Instructions of the operator, as some models call them.
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Result of a call.
    Tool,
}

impl Role {
    /// Returns `true` for instructions of the operator.
    pub(crate) fn is_system(self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MessageCall {
    pub(super) id: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) function: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) custom: Option<Value>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl Message {
    /// Creates a text message.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::with_content(role, Value::String(text.into()))
    }

    /// Creates a message from a text or from parts.
    pub(crate) fn with_content(role: Role, content: Value) -> Self {
        Self {
            role,
            content,
            name: None,
            tool_calls: None,
            tool_call_id: None,
            output_items: Vec::new(),
            output: None,
            origin: None,
            other: Map::new(),
        }
    }

    /// Creates the message of a model's turn.
    pub(crate) fn assistant(turn: &Turn) -> Self {
        let mut calls: Vec<_> = turn.calls.iter().map(MessageCall::from).collect();
        for (call, foreign) in calls.iter_mut().zip(&turn.foreign.calls) {
            call.other = foreign.clone();
        }
        let mut message = Self::text(Role::Assistant, turn.text.clone());
        message.output_items = turn.items.clone();
        if !turn.foreign.is_empty() {
            message.origin = Some(turn.foreign.origin.clone());
            message.other = turn.foreign.message.clone();
        }
        if !calls.is_empty() {
            message.tool_calls = Some(calls);
            if turn.text.is_empty() {
                message.content = Value::Null;
            }
        }
        message
    }

    /// Creates the message with a call's result.
    pub(crate) fn result(call: &Call, reply: Reply) -> Self {
        let mut message = Self::text(Role::Tool, "");
        (message.content, message.output) = (reply.content, reply.output);
        message.name = Some(sent_name(&call.name));
        message.tool_call_id = Some(call.id.clone());
        message
    }

    /// Inserts the result of a call in the last answer, in call order; returns its index.
    pub(crate) fn insert_result(messages: &mut Vec<Self>, result: Self) -> usize {
        let answer = messages.iter().rposition(|message| message.role == Role::Assistant);
        let calls = answer.and_then(|at| messages[at].tool_calls.as_deref()).unwrap_or_default();
        let place = |message: &Self| calls.iter().position(|call| Some(call.id.as_str()) == message.answered_call());
        let own = place(&result);
        let is_later = |message: &Self| place(message).is_some_and(|at| own.is_some_and(|own| at > own));
        let first = answer.map_or(0, |at| at + 1);
        let at = messages[first..].iter().position(is_later).map_or(messages.len(), |at| first + at);
        messages.insert(at, result);
        at
    }

    /// Returns the calls of the message, with the names as they were sent.
    pub fn calls(&self) -> Vec<Call> {
        let call = |call: &MessageCall| {
            let (payload, fields, member) = match &call.custom {
                Some(custom) => (Payload::Text, Some(custom), "input"),
                None => (Payload::Object, call.function.as_ref(), "arguments"),
            };
            let text =
                |member: &str| fields.and_then(|fields| fields.get(member)?.as_str()).unwrap_or_default().to_owned();
            Call { id: call.id.clone(), name: text("name"), arguments: text(member), payload }
        };
        self.tool_calls.iter().flatten().map(call).collect()
    }

    /// Returns the ID of the call this message answers.
    pub fn answered_call(&self) -> Option<&str> {
        self.tool_call_id.as_deref()
    }

    /// Returns the text of the message.
    pub fn shown_text(&self) -> String {
        let mut text = String::new();
        push_text(&mut text, &self.content);
        text
    }

    /// Returns the text of the message with the names and arguments in its calls.
    pub(crate) fn searched_text(&self) -> String {
        let calls = self.calls().into_iter().map(|call| format!("\n{} {}", call.name, call.arguments));
        self.shown_text() + &calls.collect::<String>()
    }

    /// Returns `true` if the message has content that the Chat Completions API does not support.
    pub(super) fn has_extensions(&self) -> bool {
        !self.output_items.is_empty() || self.output.is_some() || self.origin.is_some()
    }

    /// Copies the message without extensions, and without the members that another server or model than this one sent.
    pub(super) fn plain(&self, origin: &str) -> Self {
        let mut plain = Self { output_items: Vec::new(), output: None, origin: None, ..self.clone() };
        if self.origin.as_deref().is_some_and(|sender| sender != origin) {
            plain.other.clear();
            plain.tool_calls.iter_mut().flatten().for_each(|call| call.other.clear());
        }
        plain
    }
}

impl From<&Call> for MessageCall {
    fn from(Call { id, name, arguments, payload }: &Call) -> Self {
        let name = sent_name(name);
        let (kind, function, custom) = match payload {
            Payload::Object => ("function", Some(json!({ "name": name, "arguments": arguments })), None),
            Payload::Text => ("custom", None, Some(json!({ "name": name, "input": arguments }))),
        };
        Self { id: id.clone(), kind: kind.to_owned(), function, custom, other: Map::new() }
    }
}

/// Replaces characters that servers reject in a name, as a conversation has it: a model may call an invalid name, and a rejected
/// name would end the conversation.
pub fn sent_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = name.chars().take(MAX_NAME_LEN).map(|c| if plain(c) { c } else { '_' }).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::ForeignMembers;

    #[test]
    fn what_is_sent_is_what_the_interface_documents() {
        let call = Call { id: "c1".into(), name: "fs_list_dir".into(), arguments: "{}".into(), ..Call::default() };
        let turn = Turn { calls: vec![call.clone()], ..Turn::default() };
        assert_eq!(
            json!([Message::assistant(&turn), Message::result(&call, "[]".to_owned().into())]),
            json!([
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "c1", "type": "function", "function": { "name": "fs_list_dir", "arguments": "{}" } }] },
                { "role": "tool", "content": "[]", "name": "fs_list_dir", "tool_call_id": "c1" },
            ])
        );
    }

    #[test]
    fn what_one_api_alone_has_words_for_is_kept_and_not_told_to_the_other() {
        let call = Call { id: "c1".into(), name: "patch".into(), arguments: "a".into(), payload: Payload::Text };
        let items = vec![json!({ "type": "reasoning" }), Placeholder::Call.into()];
        let said = Message::assistant(&Turn { calls: vec![call.clone()], items, ..Turn::default() });
        let told = Message::result(&call, Reply { content: json!("b"), output: Some(json!([1])) });
        let mut plain = json!([
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "custom", "custom": { "name": "patch", "input": "a" } }] },
            { "role": "tool", "content": "b", "name": "patch", "tool_call_id": "c1" },
        ]);
        assert_eq!(json!([said.plain("s"), told.plain("s")]), plain);
        plain[0]["output_items"] = json!([{ "type": "reasoning" }, "call"]);
        plain[1]["output_parts"] = json!([1]);
        assert_eq!(json!([said, told]), plain);
        assert!(said.has_extensions() && told.has_extensions() && !told.plain("s").has_extensions());
    }

    #[test]
    fn members_of_a_server_go_back_to_it_and_to_no_other() {
        let call = Call { id: "c1".into(), name: "a".into(), arguments: "{}".into(), ..Call::default() };
        let member = |name: &str| Map::from_iter([(name.to_owned(), json!("x"))]);
        let foreign = ForeignMembers {
            origin: "https://a.example m".into(),
            message: member("reasoning_content"),
            calls: vec![member("signature")],
        };
        let message = Message::assistant(&Turn { calls: vec![call], foreign, ..Turn::default() });
        let back = json!(message.plain("https://a.example m"));
        assert_eq!((&back["reasoning_content"], &back["tool_calls"][0]["signature"]), (&json!("x"), &json!("x")));
        assert!(back.get("made_by").is_none(), "{back}");
        for other in ["https://b.example m", "https://a.example n", ""] {
            let plain = json!(message.plain(other));
            assert!(!plain.to_string().contains('x'), "{other}: {plain}");
        }
        let kept: Message = serde_json::from_value(json!(message)).unwrap();
        assert_eq!(json!(kept.plain("https://a.example m")), back, "also after the run was kept");
        let own: Message = serde_json::from_value(json!({"role": "user", "content": "hi", "cache": 1})).unwrap();
        assert_eq!(json!(own.plain("any"))["cache"], 1, "members from a user stay");
    }

    #[test]
    fn a_name_that_servers_refuse_is_sent_as_one_that_they_take() {
        assert_eq!(sent_name("no such.tool\n"), "no_such_tool_");
        assert_eq!(sent_name(""), "unnamed");
        assert_eq!(sent_name(&"ž".repeat(90)), "_".repeat(64));
    }
}
