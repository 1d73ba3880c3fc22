//! The calls of one step with their replies to the model.

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
    replies: Vec<Reply>,
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
        Self { api, replies: Vec::with_capacity(calls.len()), running: Calls::start(session, made), calls }
    }

    /// Returns the number of calls.
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Awaits the next call in order with its result.
    pub(crate) async fn next(&mut self) -> Option<(&Call, ToolResult)> {
        let result = self.running.next().await?;
        self.replies.push(self.api.reply(&result));
        Some((&self.calls[self.replies.len() - 1], result))
    }

    /// Returns every call with its reply; unfinished calls get an error.
    pub(crate) fn replies(self) -> impl Iterator<Item = (Call, Reply)> {
        let interrupted =
            std::iter::repeat_with(|| json!({ "error": "interrupted before the call ended" }).to_string().into());
        self.calls.into_iter().zip(self.replies.into_iter().chain(interrupted))
    }
}
