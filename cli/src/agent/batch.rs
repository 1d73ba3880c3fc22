//! The calls of one step of the model, each with what the model is told of it. It knows nothing of the conversation.

use serde_json::json;
use toolcrib::call::Payload;
use toolcrib::{Session, ToolCall, ToolResult};

use super::api::Api;
use super::reply::Reply;
use super::turn::Call;
use crate::calls::Calls;

/// The calls of one step, while they run.
pub(crate) struct Batch {
    api: Api,
    calls: Vec<Call>,
    told: Vec<Reply>,
    running: Calls,
}

impl Batch {
    /// Starts the calls of a model behind `api`.
    pub(crate) fn start(session: &Session, api: Api, calls: Vec<Call>) -> Self {
        let made = |Call { id, name, arguments, payload }: &Call| match payload {
            Payload::Object => ToolCall::new(id, name, arguments),
            Payload::Text => ToolCall::text(id, name, arguments),
        };
        let made = calls.iter().map(made).collect();
        Self { api, told: Vec::with_capacity(calls.len()), running: Calls::start(session, made), calls }
    }

    /// How many calls it holds.
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// The next call in order with its result, as soon as it has ended.
    pub(crate) async fn next(&mut self) -> Option<(&Call, ToolResult)> {
        let result = self.running.next().await?;
        self.told.push(self.api.reply(&result));
        Some((&self.calls[self.told.len() - 1], result))
    }

    /// Every call with what the model gets for it.
    pub(crate) fn replies(self) -> impl Iterator<Item = (Call, Reply)> {
        let interrupted =
            std::iter::repeat_with(|| json!({ "error": "interrupted before the call ended" }).to_string().into());
        self.calls.into_iter().zip(self.told.into_iter().chain(interrupted))
    }
}
