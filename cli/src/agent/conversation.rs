//! The messages of a conversation, in the strict form of the Chat Completions API, in which they are kept in a file
//! whichever API they came by. What only the Responses API has words for stands in fields beside. A file that was loaded
//! is kept whole, fields that nobody here knows included; it is written whole or not at all. It decides nothing.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolcrib::call::Payload;

use super::reply::Reply;
use super::turn::{Call, Turn};
use crate::input;

/// The longest name of a function that the APIs take, in characters.
const MAX_NAME_LEN: usize = 64;

/// One message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(super) role: Role,
    #[serde(default)]
    pub(super) content: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool_calls: Option<Vec<MessageCall>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<String>,
    /// What a model gave beside text and calls, each thing in its place among these: see [`Stand`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) output_items: Vec<Value>,
    /// The parts of a result, where it has more than its text.
    #[serde(rename = "output_parts", default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<Value>,
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

/// What stands in the place of a message's own text and calls among what else a model gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    Text,
    Call,
}

impl Stand {
    /// What `item` stands for, if it is not itself what was given.
    pub(super) fn of(item: &Value) -> Option<Self> {
        match item.as_str()? {
            "text" => Some(Self::Text),
            "call" => Some(Self::Call),
            _ => None,
        }
    }
}

impl From<Stand> for Value {
    fn from(stand: Stand) -> Self {
        match stand {
            Stand::Text => "text".into(),
            Stand::Call => "call".into(),
        }
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
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
    /// What `role` says.
    pub(crate) fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: Value::String(text.into()),
            name: None,
            tool_calls: None,
            tool_call_id: None,
            output_items: Vec::new(),
            output: None,
            other: Map::new(),
        }
    }

    /// What the model answered, as it is told to the model again.
    pub(crate) fn assistant(turn: &Turn) -> Self {
        let calls: Vec<_> = turn.calls.iter().map(MessageCall::from).collect();
        let mut message = Self::text(Role::Assistant, turn.text.clone());
        message.output_items = turn.items.clone();
        if !calls.is_empty() {
            message.tool_calls = Some(calls);
            if turn.text.is_empty() {
                message.content = Value::Null;
            }
        }
        message
    }

    /// The result of a call.
    pub(crate) fn result(call: &Call, reply: Reply) -> Self {
        let mut message = Self::text(Role::Tool, "");
        (message.content, message.output) = (reply.content, reply.output);
        message.name = Some(sent_name(&call.name));
        message.tool_call_id = Some(call.id.clone());
        message
    }

    /// Whether it holds what the Chat Completions API has no words for.
    pub(super) fn says_more(&self) -> bool {
        !self.output_items.is_empty() || self.output.is_some()
    }

    /// The same without that.
    pub(super) fn plain(&self) -> Self {
        Self { output_items: Vec::new(), output: None, ..self.clone() }
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

/// A name as servers accept it: a model may call what no tool is named, and a refused name would end the conversation.
fn sent_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = name.chars().take(MAX_NAME_LEN).map(|c| if plain(c) { c } else { '_' }).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// A conversation, and the file in which it is kept, if it is.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Vec<Message>,
    file: Option<PathBuf>,
}

impl Conversation {
    /// A conversation that opens with these messages.
    pub(crate) fn new(messages: Vec<Message>) -> Self {
        Self { messages, file: None }
    }

    /// The conversation in a file: an array of messages.
    pub(crate) fn load(path: &Path) -> anyhow::Result<Self> {
        let place = path.display();
        let text = input::file(path).with_context(|| format!("cannot read `{place}`"))?;
        let parsed: Value = serde_json::from_str(&text).with_context(|| format!("`{place}` is not JSON"))?;
        let Value::Array(values) = parsed else {
            bail!("`{place}` is not an array of messages: load what `--save-messages` wrote");
        };
        let read = |(index, value)| {
            serde_json::from_value(value).with_context(|| format!("`{place}`: messages[{index}] is not a message"))
        };
        let messages: Vec<Message> = values.into_iter().enumerate().map(read).collect::<anyhow::Result<_>>()?;
        let conversation = Self::new(messages);
        if let Some(id) = conversation.unanswered() {
            bail!("`{place}`: tool call `{id}` has no answer; add its `tool` message or remove the call");
        }
        Ok(conversation)
    }

    /// Keeps the conversation in a file from now on.
    pub(crate) fn kept_in(mut self, file: Option<PathBuf>) -> Self {
        self.file = file;
        self
    }

    /// The messages, oldest first.
    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Adds a message at the end.
    pub(crate) fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Whether it is for the model to speak.
    pub(crate) fn awaits_the_model(&self) -> bool {
        self.messages.last().is_some_and(|last| matches!(last.role, Role::User | Role::Tool))
    }

    /// The identifiers of every call in it.
    pub(crate) fn call_ids(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().flat_map(|message| message.tool_calls.iter().flatten()).map(|call| call.id.as_str())
    }

    fn unanswered(&self) -> Option<&str> {
        let answered: Vec<_> = self.messages.iter().filter_map(|message| message.tool_call_id.as_deref()).collect();
        self.call_ids().find(|id| !answered.contains(id))
    }

    /// Writes the file, if there is one: the messages go to a new file beside it, which then takes its name.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let mut text = serde_json::to_string_pretty(&self.messages).context("cannot write the messages as JSON")?;
        text.push('\n');
        replace(path, text.as_bytes()).with_context(|| format!("cannot save the messages in `{}`", path.display()))
    }
}

/// Puts `bytes` in the place of a file. The new file is its owner's alone, under a name that nobody could foresee until
/// it is whole, and gone again where anything fails.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(io::ErrorKind::IsADirectory.into()),
    };
    let mut file = tempfile::Builder::new().prefix(".toolcrib-").suffix(".new").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let items = vec![json!({ "type": "reasoning" }), Stand::Call.into()];
        let said = Message::assistant(&Turn { calls: vec![call.clone()], items, ..Turn::default() });
        let told = Message::result(&call, Reply { content: json!("b"), output: Some(json!([1])) });
        let mut plain = json!([
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "custom", "custom": { "name": "patch", "input": "a" } }] },
            { "role": "tool", "content": "b", "name": "patch", "tool_call_id": "c1" },
        ]);
        assert_eq!(json!([said.plain(), told.plain()]), plain);
        plain[0]["output_items"] = json!([{ "type": "reasoning" }, "call"]);
        plain[1]["output_parts"] = json!([1]);
        assert_eq!(json!([said, told]), plain);
        assert!(said.says_more() && told.says_more() && !told.plain().says_more());
    }

    #[test]
    fn a_name_that_servers_refuse_is_sent_as_one_that_they_take() {
        assert_eq!(sent_name("no such.tool\n"), "no_such_tool_");
        assert_eq!(sent_name(""), "unnamed");
        assert_eq!(sent_name(&"ž".repeat(90)), "_".repeat(64));
    }

    #[test]
    fn a_call_without_an_answer_is_found() {
        let call = Call { id: "c1".into(), ..Call::default() };
        let turn = Turn { calls: vec![call.clone()], ..Turn::default() };
        let mut conversation = Conversation::new(vec![Message::assistant(&turn)]);
        assert_eq!(conversation.unanswered(), Some("c1"));
        conversation.push(Message::result(&call, "{}".to_owned().into()));
        assert_eq!(conversation.unanswered(), None);
    }
}
