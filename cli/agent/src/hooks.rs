//! Hook events of a run besides its calls. Hooks may replace a text; a hook that blocks ends the run. Payloads are built
//! only if a hook handles the event.
//!
//! | event | payload, always with `depth` | replaceable |
//! |---|---|---|
//! | `run.start` | `model`, `tools`, `max_steps`, `messages` | |
//! | `model.pre` | `step`, `model`, `messages` | |
//! | `model.post` | `step`, `content`, `tool_calls` of `id`, `name`, `arguments`, and `custom` where these are text | `content` |
//! | `run.end` | `reason`, `answer` | `answer`, where there is one |
//!
//! No hook runs after an interruption or an error.

use std::fmt;

use serde_json::{Value, json};
use toolcrib::Session;
use toolcrib::call::{HookNote, Payload};
use toolcrib::tool::HookPoint;

use super::RequestOptions;
use super::conversation::Conversation;
use super::event::Ending;
use super::turn::{Call, Turn};

/// Text after the hooks.
#[derive(Debug, PartialEq)]
pub(super) struct ReviewedText {
    pub(super) text: String,
    /// Hooks that changed the event; empty if the text is unchanged.
    pub(super) hooks: Vec<HookNote>,
}

/// A hook has blocked the run.
#[derive(Debug)]
pub(super) struct Blocked(String);

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run blocked: {}", self.0)
    }
}

impl std::error::Error for Blocked {}

/// `true` if a hook handles answers before they are shown.
pub(super) fn hear_answers(session: &Session) -> bool {
    session.hears(&HookPoint::ModelPost) || session.hears(&HookPoint::RunEnd)
}

/// Runs the hooks for the start of the run.
pub(super) async fn begun(
    session: &Session,
    options: &RequestOptions,
    conversation: &Conversation,
    tools: &[&str],
) -> Result<(), Blocked> {
    let payload = || {
        let RequestOptions { model, max_steps, .. } = options;
        json!({ "model": model, "tools": tools, "max_steps": max_steps, "messages": conversation.messages() })
    };
    tell(session, HookPoint::RunStart, payload).await.map(drop)
}

/// Runs the hooks before a model request.
pub(super) async fn asking(
    session: &Session,
    options: &RequestOptions,
    conversation: &Conversation,
    step: u32,
) -> Result<(), Blocked> {
    let payload = || json!({ "step": step, "model": options.model, "messages": *conversation.sent() });
    tell(session, HookPoint::ModelPre, payload).await.map(drop)
}

/// Runs the hooks after a model answer and returns the text.
pub(super) async fn answered(session: &Session, step: u32, turn: &Turn) -> Result<ReviewedText, Blocked> {
    let payload = || {
        let called = |Call { id, name, arguments, payload }: &Call| {
            let mut called = json!({ "id": id, "name": name, "arguments": arguments });
            if *payload == Payload::Text {
                called["custom"] = json!(true);
            }
            called
        };
        let calls: Vec<Value> = turn.calls.iter().map(called).collect();
        json!({ "step": step, "content": turn.text, "tool_calls": calls })
    };
    text_of(tell(session, HookPoint::ModelPost, payload).await?, "content", &turn.text)
}

/// Runs the hooks for the end of the run and returns the answer.
pub(super) async fn ended(
    session: &Session,
    reason: Ending,
    answer: Option<&str>,
) -> Result<Option<ReviewedText>, Blocked> {
    let payload = || json!({ "reason": reason, "answer": answer });
    let changed = tell(session, HookPoint::RunEnd, payload).await?;
    answer.map(|answer| text_of(changed, "answer", answer)).transpose()
}

/// Runs the hooks for an event; `None` if no hook handles it.
async fn tell(
    session: &Session,
    event: HookPoint,
    payload: impl FnOnce() -> Value,
) -> Result<Option<(Value, Vec<HookNote>)>, Blocked> {
    if !session.hears(&event) {
        return Ok(None);
    }
    let mut payload = payload();
    payload["depth"] = json!(session.depth());
    session.event_with_hooks(&event, payload).await.map(Some).map_err(|blocked| Blocked(blocked.reason))
}

/// Returns the text of a member after the hooks.
fn text_of(changed: Option<(Value, Vec<HookNote>)>, member: &str, before: &str) -> Result<ReviewedText, Blocked> {
    let (changed, hooks) = changed.unwrap_or_default();
    match changed.get(member) {
        Some(Value::String(text)) if text != before => Ok(ReviewedText { text: text.clone(), hooks }),
        None | Some(Value::String(_)) => Ok(ReviewedText { text: before.to_owned(), hooks: Vec::new() }),
        Some(_) => Err(Blocked(format!("a hook replaced `{member}` with something other than text"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_is_taken() {
        let of = |changed: Option<Value>| {
            let reviewed = text_of(changed.map(|changed| (changed, Vec::new())), "content", "before");
            reviewed.map(|reviewed| reviewed.text).map_err(|blocked| blocked.to_string())
        };
        assert_eq!(of(None).as_deref(), Ok("before"));
        assert_eq!(of(Some(json!({ "other": 1 }))).as_deref(), Ok("before"));
        assert_eq!(of(Some(json!({ "content": "after" }))).as_deref(), Ok("after"));
        for wrong in [json!(null), json!(7), json!(["a"])] {
            let wanted = "run blocked: a hook replaced `content` with something other than text";
            assert_eq!(of(Some(json!({ "content": wrong }))), Err(wanted.to_owned()));
        }
    }
}
