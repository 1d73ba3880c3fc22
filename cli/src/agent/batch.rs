//! The calls of one step of the model, each with what the model is told of it. It knows nothing of the conversation.

use serde_json::json;
use toolcrib::{Session, ToolCall, ToolResult};

use super::turn::Call;
use crate::calls::Calls;

/// The calls of one step, while they run.
pub(crate) struct Batch {
    calls: Vec<Call>,
    told: Vec<String>,
    running: Calls,
}

impl Batch {
    /// Starts the calls.
    pub(crate) fn start(session: &Session, calls: Vec<Call>) -> Self {
        let made = calls.iter().map(|call| ToolCall::new(&call.id, &call.name, &call.arguments)).collect();
        Self { told: Vec::with_capacity(calls.len()), running: Calls::start(session, made), calls }
    }

    /// How many calls it holds.
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// The next call in order with its result, as soon as it has ended.
    pub(crate) async fn next(&mut self) -> Option<(&Call, ToolResult)> {
        let result = self.running.next().await?;
        self.told.push(result.content().into_owned());
        Some((&self.calls[self.told.len() - 1], result))
    }

    /// Every call with what the model gets for it.
    pub(crate) fn replies(self) -> impl Iterator<Item = (Call, String)> {
        let interrupted =
            std::iter::repeat_with(|| json!({ "error": "interrupted before the call ended" }).to_string());
        self.calls.into_iter().zip(self.told.into_iter().chain(interrupted))
    }
}
