//! Conversation messages and the places that store them: the file of `--save-messages`, which is replaced atomically,
//! and the kept run, which gets each message as it comes.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use toolcrib::flow::Label;
use toolcrib_base::input;
use toolcrib_base::whole_file::{self, Readers};

use super::compaction::{self, Compaction};
use super::keeper::Keeper;
use super::message::{Message, Role};
use super::turn::Call;
use crate::runs::{BROKEN_OFF, KeptRun, MissingResult};

/// A conversation and the places where it is stored, if any.
#[derive(Debug, Default)]
pub struct Conversation {
    messages: Vec<Message>,
    file: Option<PathBuf>,
    briefing: Briefing,
    keeper: Option<Keeper>,
    /// Number of the first messages that the keeper has.
    written: usize,
    /// Calls of the last answer that have not begun.
    pending: Vec<Call>,
    /// Summary in place of the first messages.
    compaction: Option<Compaction>,
    /// `true` if the keeper has the summary.
    is_summary_written: bool,
    /// Index of a result with what its call may have changed outside the conversation.
    changes: Vec<(usize, String)>,
}

/// Last part of a conversation, from a user message on, after it was dropped.
#[derive(Debug)]
pub(crate) struct DroppedExchange {
    /// Text of the user's message.
    pub(crate) prompt: String,
    /// Changes outside the conversation that its calls may have made.
    pub(crate) changes: Vec<String>,
}

/// Place of the text that the host adds to the system message and does not save.
#[derive(Debug, Default)]
enum Briefing {
    #[default]
    None,
    /// It is the first message.
    Alone,
    /// It is added to the first message; this is that message's own content.
    Added(Value),
}

impl Conversation {
    /// Creates a conversation with initial messages.
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Creates the conversation of a kept run. The keeper of that run writes what stands for interrupted parts.
    pub(crate) fn resumed(run: &KeptRun) -> Self {
        Self {
            messages: run.messages.clone(),
            written: run.messages.len(),
            pending: run.pending.clone(),
            changes: run.changes.clone(),
            compaction: run.compaction.clone(),
            is_summary_written: true,
            ..Self::default()
        }
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

    /// Sets the keeper that adds the messages to the kept run. A keeper of a new file gets all messages.
    pub fn kept_by(mut self, keeper: Option<Keeper>) -> Self {
        if keeper.as_ref().is_some_and(Keeper::is_new) {
            self.written = 0;
            self.is_summary_written = false;
        }
        self.keeper = keeper;
        self
    }

    /// Adds a text of the host to the system message, or as one. It is sent and never saved.
    pub fn with_briefing(mut self, text: Option<String>) -> Self {
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
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the messages that a model gets: after a compaction, a summary in place of the first ones.
    pub fn sent(&self) -> Cow<'_, [Message]> {
        match &self.compaction {
            None => Cow::Borrowed(&self.messages),
            Some(compaction) => {
                Cow::Owned(compaction::with_summary(&self.messages, self.replaced(), &compaction.summary))
            }
        }
    }

    /// Returns the summary in place of the first messages.
    pub(crate) fn compaction(&self) -> Option<&Compaction> {
        self.compaction.as_ref()
    }

    /// Returns the number of the first messages that a summary replaces, with one that holds only the host's text.
    pub(crate) fn replaced(&self) -> usize {
        let of_host = self.messages.len() - self.own_len();
        self.compaction.as_ref().map_or(0, |compaction| compaction.messages + of_host)
    }

    /// Replaces the messages before `until` with a summary; the kept run has them all.
    pub(crate) fn compact(&mut self, until: usize, summary: String) {
        let of_host = self.messages.len() - self.own_len();
        self.compaction = Some(Compaction { messages: until - of_host, summary });
        self.is_summary_written = false;
    }

    /// Appends a message.
    pub(crate) fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Appends a message of the user. Calls that have not begun are then not made.
    pub(crate) fn push_user(&mut self, message: Message) {
        let error = "not made: the run had stopped before this call, and the user has written since";
        let not_made = json!({ "error": error }).to_string();
        for call in self.take_pending() {
            self.push_result(Message::result(&call, not_made.clone().into()), None);
        }
        self.messages.push(message);
    }

    /// Adds the result of a call in call order, with what the call may have changed.
    pub(crate) fn push_result(&mut self, message: Message, change: Option<String>) {
        let of_host = self.messages.len() - self.own_len();
        let own = Message::insert_result(&mut self.messages, message) - of_host;
        self.changes.iter_mut().filter(|(index, _)| *index >= own).for_each(|(index, _)| *index += 1);
        self.changes.extend(change.map(|change| (own, change)));
        // The keeper skips the results that it has.
        self.written = self.written.min(own);
    }

    /// Sets the calls of the last answer that have not begun.
    pub(crate) fn set_pending(&mut self, calls: Vec<Call>) {
        self.pending = calls;
    }

    /// Returns the calls of the last answer that have not begun.
    pub(crate) fn pending(&self) -> &[Call] {
        &self.pending
    }

    /// Takes the calls of the last answer that have not begun.
    pub(crate) fn take_pending(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.pending)
    }

    /// Drops the last message of the user with everything after it; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The kept run cannot be written.
    pub(crate) fn undo(&mut self) -> anyhow::Result<Option<DroppedExchange>> {
        let Some(at) = self.messages.iter().rposition(|message| message.role == Role::User) else { return Ok(None) };
        let own = at - (self.messages.len() - self.own_len());
        self.pending.clear();
        let prompt = self.messages[at].shown_text();
        self.messages.truncate(at);
        if let Some(keeper) = &self.keeper {
            keeper.undo(own)?;
        }
        self.written = self.written.min(own);
        self.compaction.take_if(|compaction| !compaction.survives(own));
        let (kept, dropped) = std::mem::take(&mut self.changes).into_iter().partition(|(index, _)| *index < own);
        self.changes = kept;
        let changes = Vec::into_iter(dropped).map(|(_, change)| change).collect();
        self.save()?;
        Ok(Some(DroppedExchange { prompt, changes }))
    }

    /// Returns the keeper, if the run is kept.
    pub(crate) fn keeper(&self) -> Option<&Keeper> {
        self.keeper.as_ref()
    }

    /// Returns the number of messages, excluding a system message that holds only the host's text.
    fn own_len(&self) -> usize {
        self.messages.len() - usize::from(matches!(self.briefing, Briefing::Alone))
    }

    /// `true` if the next message is the model's, or the result of a call that is still to be made.
    pub fn awaits_model(&self) -> bool {
        let is_open = |last: &Message| matches!(last.role, Role::User | Role::Tool);
        !self.pending.is_empty() || self.messages.last().is_some_and(is_open)
    }

    /// Returns the number of model answers.
    pub fn answers(&self) -> usize {
        self.messages.iter().filter(|message| message.role == Role::Assistant).count()
    }

    /// `true` if the last message is an answer that broke off.
    pub(crate) fn is_broken_off(&self) -> bool {
        let is_broken_off = |last: &Message| last.role == Role::Assistant && last.shown_text().ends_with(BROKEN_OFF);
        self.messages.last().is_some_and(is_broken_off)
    }

    /// Returns the identifiers of all calls.
    pub(crate) fn call_ids(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().flat_map(|message| message.tool_calls.iter().flatten()).map(|call| call.id.as_str())
    }

    fn unanswered(&self) -> Option<&str> {
        let answered: Vec<_> = self.messages.iter().filter_map(|message| message.tool_call_id.as_deref()).collect();
        self.call_ids().find(|id| !answered.contains(id))
    }

    /// Adds the new messages and the label of the session to the kept run, and waits until they are on the disk.
    pub(crate) fn keep(&mut self, label: &Label) -> anyhow::Result<()> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        keeper.label(label)?;
        let own = self.saved();
        for (index, message) in own.iter().enumerate().skip(self.written) {
            let change = self.changes.iter().find(|(changed, _)| *changed == index).map(|(_, change)| change.clone());
            keeper.message(message, change)?;
        }
        if let Some(compaction) = self.compaction.as_ref().filter(|_| !self.is_summary_written) {
            keeper.compacted(compaction)?;
        }
        keeper.sync()?;
        self.written = own.len();
        self.is_summary_written = true;
        Ok(())
    }

    /// Saves the conversation, if it has a file, by writing a new file and renaming it.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let mut messages: Vec<_> = self.saved().into_iter().map(Cow::into_owned).collect();
        for call in &self.pending {
            Message::insert_result(&mut messages, MissingResult::Stopped.message(call));
        }
        let mut text = serde_json::to_string_pretty(&messages).context("cannot write the messages as JSON")?;
        text.push('\n');
        let saved = whole_file::replace(path, text.as_bytes(), Readers::Owner);
        saved.with_context(|| format!("cannot save the messages in `{}`", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::Turn;

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
