//! Messages of a conversation in the strict form of the Chat Completions API, which is also the file format for both APIs.
//! Content specific to the Responses API is stored in extra fields. Unknown fields of a loaded file are preserved; files
//! are replaced atomically.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolcrib::call::Payload;
use toolcrib::owner_only;

use super::reply::Reply;
use super::turn::{Call, Turn};
use crate::input;

/// Maximum length of a function name that the APIs accept, in characters.
const MAX_NAME_LEN: usize = 64;

/// A message.
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
    /// Output items besides text and calls, in order, with a [`Placeholder`] for each text and call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) output_items: Vec<Value>,
    /// Parts of a result that consists of more than text.
    #[serde(rename = "output_parts", default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<Value>,
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
    /// Creates a text message.
    pub(crate) fn text(role: Role, text: impl Into<String>) -> Self {
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
            other: Map::new(),
        }
    }

    /// Creates the message of a model's turn.
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

    /// Creates the message with a call's result.
    pub(crate) fn result(call: &Call, reply: Reply) -> Self {
        let mut message = Self::text(Role::Tool, "");
        (message.content, message.output) = (reply.content, reply.output);
        message.name = Some(sent_name(&call.name));
        message.tool_call_id = Some(call.id.clone());
        message
    }

    /// `true` if the message has content that the Chat Completions API does not support.
    pub(super) fn has_extensions(&self) -> bool {
        !self.output_items.is_empty() || self.output.is_some()
    }

    /// Copies the message without extensions.
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

/// Replaces characters that servers reject: a model may call an invalid name, and a rejected name would end the
/// conversation.
fn sent_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = name.chars().take(MAX_NAME_LEN).map(|c| if plain(c) { c } else { '_' }).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// A conversation and its file, if any.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Vec<Message>,
    file: Option<PathBuf>,
    briefing: Briefing,
}

/// Place of the text that the host adds to the system message and does not save.
#[derive(Debug, Default)]
enum Briefing {
    #[default]
    None,
    /// It is the first message.
    Alone,
    /// It is added to the first message, of which this is the own content.
    Added(Value),
}

impl Conversation {
    /// Creates a conversation with initial messages.
    pub(crate) fn new(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Loads a conversation from a file with an array of messages.
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

    /// Sets the file that the conversation is saved to.
    pub(crate) fn saved_to(mut self, file: Option<PathBuf>) -> Self {
        self.file = file;
        self
    }

    /// Adds a text of the host to the system message, or as one. It is sent and never saved.
    pub(crate) fn with_briefing(mut self, text: Option<String>) -> Self {
        let Some(text) = text else { return self };
        match self.messages.first_mut() {
            Some(Message { role: Role::System, content, .. }) if content.is_string() => {
                let own = content.take();
                *content = Value::String(format!("{}\n\n{text}", own.as_str().unwrap_or_default()));
                self.briefing = Briefing::Added(own);
            }
            _ => {
                self.messages.insert(0, Message::text(Role::System, text));
                self.briefing = Briefing::Alone;
            }
        }
        self
    }

    /// Returns the messages without the text of the host.
    fn saved(&self) -> Vec<Cow<'_, Message>> {
        let first = match (&self.briefing, self.messages.first()) {
            (Briefing::None, first) => first.map(Cow::Borrowed),
            (Briefing::Alone, _) | (_, None) => None,
            (Briefing::Added(own), Some(first)) => Some(Cow::Owned(Message { content: own.clone(), ..first.clone() })),
        };
        first.into_iter().chain(self.messages.iter().skip(1).map(Cow::Borrowed)).collect()
    }

    /// Returns the messages, oldest first.
    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Appends a message.
    pub(crate) fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// `true` if the next message is the model's.
    pub(crate) fn awaits_model(&self) -> bool {
        self.messages.last().is_some_and(|last| matches!(last.role, Role::User | Role::Tool))
    }

    /// Returns the identifiers of all calls.
    pub(crate) fn call_ids(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().flat_map(|message| message.tool_calls.iter().flatten()).map(|call| call.id.as_str())
    }

    fn unanswered(&self) -> Option<&str> {
        let answered: Vec<_> = self.messages.iter().filter_map(|message| message.tool_call_id.as_deref()).collect();
        self.call_ids().find(|id| !answered.contains(id))
    }

    /// Saves the conversation, if it has a file, by writing a new file and renaming it.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let mut text = serde_json::to_string_pretty(&self.saved()).context("cannot write the messages as JSON")?;
        text.push('\n');
        replace(path, text.as_bytes()).with_context(|| format!("cannot save the messages in `{}`", path.display()))
    }
}

/// Replaces a file atomically. The temporary file is private, has an unpredictable name, and is removed on failure.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(io::ErrorKind::IsADirectory.into()),
    };
    let mut file = owner_only::temporary_file(folder, ".toolcrib-")?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    owner_only::persist(file, path).map(drop)
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
        let items = vec![json!({ "type": "reasoning" }), Placeholder::Call.into()];
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
        assert!(said.has_extensions() && told.has_extensions() && !told.plain().has_extensions());
    }

    #[test]
    fn a_name_that_servers_refuse_is_sent_as_one_that_they_take() {
        assert_eq!(sent_name("no such.tool\n"), "no_such_tool_");
        assert_eq!(sent_name(""), "unnamed");
        assert_eq!(sent_name(&"ž".repeat(90)), "_".repeat(64));
    }

    #[test]
    fn a_text_of_the_host_is_sent_in_the_system_message_and_not_saved() {
        let user = Message::text(Role::User, "go");
        for before in [vec![], vec![Message::text(Role::System, "be kind")]] {
            let own: Vec<Message> = before.iter().cloned().chain([user.clone()]).collect();
            let conversation = Conversation::new(own.clone()).with_briefing(Some("tools".to_owned()));
            let sent = if before.is_empty() { "tools" } else { "be kind\n\ntools" };
            assert_eq!(
                json!(conversation.messages()),
                json!([
                { "role": "system", "content": sent }, { "role": "user", "content": "go" }])
            );
            assert_eq!(json!(conversation.saved()), json!(own));
            assert_eq!(json!(Conversation::new(own.clone()).with_briefing(None).saved()), json!(own));
        }
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
