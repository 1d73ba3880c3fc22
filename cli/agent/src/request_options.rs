//! Options of every model request in a run.

use std::sync::Arc;

use serde_json::Value;
use toolcrib::{Session, Tool};
use toolcrib_settings::config::ConversationLimits;

use super::api::{Api, model_names};
use super::budget::Budget;
use super::conversation::Conversation;
use super::message::Message;
use super::request::{Request, Sampling};

/// Options of every model request in a run.
#[derive(Debug, Clone)]
pub struct RequestOptions {
    /// API of the server.
    pub api: Api,
    /// `true` to offer tools that take text as custom tools if the API supports them.
    pub custom_tools: bool,
    /// Name of the model.
    pub model: String,
    /// Sampling parameters.
    pub sampling: Sampling,
    /// `true` to stream answers.
    pub stream: bool,
    /// Maximum number of steps.
    pub max_steps: u32,
    /// Budgets of the run, shared with its subagents.
    pub budget: Arc<Budget>,
    /// Limits of the conversation.
    pub limits: ConversationLimits,
}

impl RequestOptions {
    /// Creates the request for the message after `messages` with `tools`.
    pub fn request<'a>(&'a self, messages: &'a [Message], tools: &'a [Value]) -> Request<'a> {
        let RequestOptions { api, sampling, stream, .. } = *self;
        Request {
            api,
            origin: "",
            model: &self.model,
            messages,
            tools,
            sampling,
            stream,
            stream_usage: stream && api == Api::Chat,
            reasoning: api == Api::Responses,
            max_tokens: None,
        }
    }

    /// Creates a request without tools for one answer of at most `tokens`.
    pub(crate) fn question<'a>(&'a self, conversation: &'a Conversation, tokens: u32) -> Request<'a> {
        Request { max_tokens: Some(tokens), reasoning: false, ..self.request(conversation.messages(), &[]) }
    }

    /// Returns the features of the model's API by the names that tool definitions use.
    pub fn abilities(&self) -> impl Iterator<Item = String> {
        let custom = self.api == Api::Responses && self.custom_tools;
        let abilities = [("custom_tools", custom), ("media_results", self.api == Api::Responses)];
        abilities.into_iter().filter(|(_, can)| *can).map(|(name, _)| name.to_owned())
    }

    /// Returns the current tool definitions of a session.
    pub fn definitions(&self, session: &Session) -> Vec<Value> {
        let names = model_names(session);
        let definition = |tool: &Tool| self.api.definition(tool, names.get(&tool.name), self.custom_tools);
        session.tools().into_iter().map(definition).collect()
    }
}
