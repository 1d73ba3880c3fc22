//! The calls of one step with their replies to the model.

use std::collections::HashMap;

use serde_json::json;
use toolcrib::call::Payload;
use toolcrib::{Session, ToolCall, ToolResult};
use toolcrib_sources::calls::Calls;

use super::api::{Api, model_names};
use super::message::Message;
use super::previews::Previews;
use super::repeats::Repeats;
use super::reply::Reply;
use super::turn::Call;

/// The calls of one step, while they run.
pub(crate) struct Batch {
    api: Api,
    calls: Vec<Call>,
    /// Replies of calls that have ended, with what these may have changed, by identifier.
    ended: HashMap<String, (Reply, Option<String>)>,
    /// Number of calls with a returned result.
    returned: usize,
    running: Calls,
    /// Previews of the calls.
    pub(super) previews: Previews,
}

impl Batch {
    /// Starts the calls of a model behind `api`.
    pub(crate) fn start(session: &Session, api: Api, calls: Vec<Call>) -> Self {
        let names = model_names(session);
        let made = |Call { id, name, arguments, payload }: &Call| match payload {
            Payload::Object => ToolCall::new(id, names.own(name), arguments),
            Payload::Text => ToolCall::text(id, names.own(name), arguments),
        };
        let made = calls.iter().map(made).collect();
        let previews = Previews::of(calls.iter().map(|call| call.id.as_str()));
        Self { previews, api, ended: HashMap::new(), returned: 0, running: Calls::start(session, made), calls }
    }

    /// Returns the number of calls.
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Awaits the next call in order with its result.
    pub(crate) async fn next(&mut self) -> Option<(&Call, ToolResult)> {
        let result = self.running.next().await?;
        self.returned += 1;
        Some((&self.calls[self.returned - 1], result))
    }

    /// Cancels all calls: from here on none begins.
    pub(crate) fn cancel(&self) {
        self.running.cancel();
    }

    /// Stops all calls, and waits until each has its record.
    pub(crate) async fn stop(&mut self) {
        self.running.stop().await;
    }

    /// Notes a call's result, with what the call may have changed, when it ends; returns its message for the model if
    /// the call is one of these and was not noted before.
    pub(crate) fn note(
        &mut self,
        id: &str,
        result: &ToolResult,
        change: Option<String>,
        repeats: &mut Repeats,
    ) -> Option<Message> {
        let call = self.calls.iter().find(|call| call.id == id)?;
        if self.ended.contains_key(id) {
            return None;
        }
        let mut reply = self.api.reply(result);
        let repeated = repeats.note(&call.name, &call.arguments, &result.content(), change.is_some());
        repeated.iter().for_each(|note| reply.add_note(note));
        self.ended.insert(id.to_owned(), (reply.clone(), change));
        Some(Message::result(call, reply))
    }

    /// Returns the calls without a result that wait, and the message of every other call for the model, with what the call may
    /// have changed; unfinished calls get an error.
    pub(crate) fn replies(mut self, waits: impl Fn(&str) -> bool) -> (Vec<Call>, Vec<(Message, Option<String>)>) {
        let has_result = |call: &Call| self.ended.contains_key(&call.id);
        let (waiting, others): (Vec<_>, Vec<_>) =
            self.calls.into_iter().partition(|call| !has_result(call) && waits(&call.id));
        let reply = |call: Call| {
            let (reply, change) = self.ended.remove(&call.id).unwrap_or_else(|| {
                let error = "interrupted before the call ended; it may or may not have happened";
                let change = Some(format!("{} (interrupted)", call.name));
                (json!({ "error": error }).to_string().into(), change)
            });
            (Message::result(&call, reply), change)
        };
        (waiting, others.into_iter().map(reply).collect())
    }
}
