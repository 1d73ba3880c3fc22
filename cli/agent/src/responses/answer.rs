//! Assembles a Responses API answer, whole or from a stream of events. Servers leave out events, number every item 0 or
//! give an item a new identifier in each event: what is said last of an item holds, and what the whole response says
//! holds before all.

use serde_json::Value;
use toolcrib::call::Payload;

use super::item::{Item, What};
use crate::answer::{AnswerBuilder, AnswerError, MAX_CALLS, arguments, error_in, scalar, usage};
use crate::message::Placeholder;
use crate::turn::{Call, FILTER, INCOMPLETE, LENGTH, Turn, Usage};

const COMPLETED: &str = "completed";

/// An answer while it arrives.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    items: Vec<Item>,
    /// The text so far, in the order in which it came.
    text: String,
    finish: Option<String>,
    usage: Option<Usage>,
}

impl Answer {
    /// The item that an event is about; a new one, `otherwise`, where it is about none so far.
    fn item(&mut self, index: Option<u64>, id: &str, otherwise: What) -> Result<&mut Item, AnswerError> {
        let same_id = |item: &Item| !id.is_empty() && item.id == id;
        let open_there = |item: &Item| !item.is_done && (index.is_none() || item.index == index);
        let known = self.items.iter().rposition(same_id).or_else(|| self.items.iter().rposition(open_there));
        let at = match known {
            Some(at) => at,
            None => {
                self.push(Item { index, id: id.to_owned(), status: None, is_done: false, what: otherwise })?;
                self.items.len() - 1
            }
        };
        Ok(&mut self.items[at])
    }

    fn push(&mut self, item: Item) -> Result<(), AnswerError> {
        if self.items.len() == MAX_CALLS {
            return Err(AnswerError::TooManyItems);
        }
        self.items.push(item);
        Ok(())
    }

    /// Hears one event of a stream.
    fn hear(&mut self, kind: &str, event: &Value) -> Result<(), AnswerError> {
        let (index, id) = (event["output_index"].as_u64(), scalar(&event["item_id"]));
        let delta = || event["delta"].as_str().unwrap_or_default();
        match kind {
            "output_item.added" => {
                let item = Item::read(&event["item"], index);
                let again = self.items.iter().any(|known| !item.id.is_empty() && known.id == item.id);
                if again { Ok(()) } else { self.push(item) }
            }
            "output_item.done" => {
                let read = Item::read(&event["item"], index);
                let item = self.item(index, &read.id, What::read(&Value::Null))?;
                let shown = matches!(&item.what, What::Message { text, .. } if !text.is_empty());
                item.what.take(read.what);
                (item.status, item.is_done) = (read.status, true);
                if let (What::Message { text, .. }, false) = (&item.what, shown) {
                    let text = text.clone();
                    self.text.push_str(&text);
                }
                Ok(())
            }
            "output_text.delta" | "output_text.done" => {
                if let What::Message { text, .. } = &mut self.item(index, &id, What::message())?.what {
                    let whole = event["text"].as_str().filter(|_| text.is_empty());
                    let new = whole.unwrap_or(delta());
                    text.push_str(new);
                    self.text.push_str(new);
                }
                Ok(())
            }
            "refusal.delta" => {
                if let What::Message { refusal, .. } = &mut self.item(index, &id, What::message())?.what {
                    refusal.push_str(delta());
                }
                Ok(())
            }
            "function_call_arguments.delta" | "function_call_arguments.done" => {
                self.carry(index, &id, Payload::Object, event)
            }
            "custom_tool_call_input.delta" | "custom_tool_call_input.done" => {
                self.carry(index, &id, Payload::Text, event)
            }
            "completed" | "done" => self.end(COMPLETED, &event["response"]),
            INCOMPLETE | "failed" | "cancelled" => self.end(kind, &event["response"]),
            _ => Ok(()),
        }
    }

    /// Adds to what a call carries, or takes the whole of it.
    fn carry(&mut self, index: Option<u64>, id: &str, payload: Payload, event: &Value) -> Result<(), AnswerError> {
        let item = self.item(index, id, What::call(payload))?;
        match (&mut item.what, event["delta"].as_str()) {
            (What::Call(call), Some(delta)) => call.arguments.push_str(delta),
            (what @ What::Call(_), None) => {
                let carried = if payload == Payload::Text { &event["input"] } else { &event["arguments"] };
                let name = scalar(&event["name"]);
                what.take(What::Call(Call { name, arguments: arguments(carried), payload, ..Call::default() }));
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the whole response, at the end of a stream or in its place.
    fn end(&mut self, announced: &str, response: &Value) -> Result<(), AnswerError> {
        if let Some(error) = error_in(response) {
            return Err(error);
        }
        let status = match response["status"].as_str() {
            Some(status @ (INCOMPLETE | "failed" | "cancelled")) => status,
            _ => announced,
        };
        self.usage = usage(&response["usage"]).or(self.usage);
        self.finish = Some(match (status, response["incomplete_details"]["reason"].as_str()) {
            (INCOMPLETE, Some("max_output_tokens" | "max_tokens")) => LENGTH.to_owned(),
            (INCOMPLETE, Some("content_filter")) => FILTER.to_owned(),
            (INCOMPLETE, Some(reason)) => format!("{INCOMPLETE}: {reason}"),
            (INCOMPLETE | COMPLETED, _) => status.to_owned(),
            _ => return Err(AnswerError::Error { code: None, message: format!("the response is `{status}`") }),
        });
        match (&response["output"], &response["output_text"]) {
            (Value::Array(items), _) if !items.is_empty() => {
                self.items.clear();
                items.iter().try_for_each(|item| self.push(Item::read(item, None)))?;
            }
            (_, Value::String(text)) if self.items.is_empty() => {
                let what = What::Message { text: text.clone(), refusal: String::new() };
                self.push(Item { index: None, id: String::new(), status: None, is_done: true, what })?;
            }
            _ => {}
        }
        if self.text.is_empty() {
            self.text = self.joined(|text, _| text);
        }
        Ok(())
    }

    /// Joins one of the two texts in all messages.
    fn joined<'a>(&'a self, which: impl Fn(&'a str, &'a str) -> &'a str) -> String {
        let joined = |item: &'a Item| match &item.what {
            What::Message { text, refusal } => Some(which(text, refusal)),
            _ => None,
        };
        self.items.iter().filter_map(joined).collect()
    }

    /// Returns `true` if the server stopped the model within a call with text, which looks complete wherever it is cut.
    fn is_cut_in_text(&self) -> bool {
        let is_text = |item: &Item| matches!(&item.what, What::Call(call) if call.payload == Payload::Text);
        let last = self.items.len().saturating_sub(1);
        let is_cut = |(at, item): (usize, &Item)| match &item.status {
            Some(status) => status != COMPLETED,
            None => at == last,
        };
        let stopped = self.finish.as_deref() != Some(COMPLETED);
        stopped && self.items.iter().enumerate().any(|(at, item)| is_text(item) && is_cut((at, item)))
    }
}

impl AnswerBuilder for Answer {
    fn add(&mut self, part: &Value) -> Result<&str, AnswerError> {
        let seen = self.text.len();
        match part["type"].as_str() {
            Some("error") => return Err(AnswerError::error(part)),
            _ if error_in(part).is_some() => return Err(AnswerError::error(part)),
            Some(kind) if self.finish.is_none() => {
                self.hear(kind.strip_prefix("response.").unwrap_or(kind), part)?;
            }
            Some(_) => {}
            None if matches!(part["status"].as_str(), Some("queued" | "in_progress")) => {
                return Err(AnswerError::Truncated);
            }
            None if part["output"].is_array() || part["output_text"].is_string() || part["status"].is_string() => {
                self.end(COMPLETED, part)?;
            }
            None => {}
        }
        Ok(&self.text[seen..])
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn is_over(&self) -> bool {
        self.is_finished()
    }

    fn whole(self: Box<Self>) -> Result<Turn, AnswerError> {
        if self.finish.is_none() {
            return Err(AnswerError::Empty);
        }
        if self.is_cut_in_text() {
            return Err(AnswerError::TruncatedCall);
        }
        let (text, refusal) = (self.joined(|text, _| text), self.joined(|_, refusal| refusal));
        let mut turn = Turn {
            text: if text.is_empty() { refusal } else { text },
            finish: self.finish,
            usage: self.usage,
            ..Turn::default()
        };
        for Item { what, .. } in self.items {
            turn.items.push(match what {
                What::Message { .. } => Placeholder::Text.into(),
                What::Call(call) => {
                    turn.calls.push(call.with_default_arguments());
                    Placeholder::Call.into()
                }
                What::Other(item) => item,
            });
        }
        if turn.items.iter().all(|item| Placeholder::of(item).is_some()) {
            turn.items.clear();
        }
        Ok(turn)
    }

    /// A stream was cut where the end of the response was not told, whatever else announced an end.
    fn streamed(self: Box<Self>, _done: bool) -> Result<Turn, AnswerError> {
        if self.finish.is_none() { Err(AnswerError::Truncated) } else { self.whole() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, name: &str, arguments: &str, payload: Payload) -> Call {
        Call { id: id.into(), name: name.into(), arguments: arguments.into(), payload }
    }

    fn read_all(events: &[Value]) -> Result<(Turn, String), AnswerError> {
        let (mut answer, mut shown) = (Box::<Answer>::default(), String::new());
        for event in events {
            shown += answer.add(event)?;
        }
        Ok((answer.streamed(true)?, shown))
    }

    fn whole(body: &Value) -> Result<Turn, AnswerError> {
        let mut answer = Box::<Answer>::default();
        answer.add(body)?;
        answer.whole()
    }

    fn message(text: &str) -> Value {
        json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
    }

    #[test]
    fn a_whole_response_becomes_text_calls_and_what_is_given_back() {
        let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" });
        let turn = whole(&json!({
            "id": "resp_1", "object": "response", "status": "completed", "error": null, "incomplete_details": null,
            "output": [
                reasoning,
                message("let me see"),
                { "type": "function_call", "id": "fc_1", "call_id": "a", "name": "one", "arguments": "{\"x\":1}", "status": "completed" },
                { "type": "custom_tool_call", "id": "ctc_1", "call_id": "b", "name": "patch", "input": "*** Begin" },
            ],
            "usage": { "input_tokens": 5, "input_tokens_details": {}, "output_tokens": 2, "total_tokens": 7 },
        }));
        let calls =
            vec![call("a", "one", "{\"x\":1}", Payload::Object), call("b", "patch", "*** Begin", Payload::Text)];
        let usage = Some(Usage { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 });
        let items = vec![reasoning, "text".into(), "call".into(), "call".into()];
        let answer = Turn { text: "let me see".into(), finish: Some("completed".into()), ..Turn::default() };
        assert_eq!(turn, Ok(Turn { calls, usage, items, ..answer }));
    }

    #[test]
    fn text_is_found_wherever_a_server_puts_it() {
        for (body, wanted) in [
            (json!({ "output": [message("hello")], "status": null, "usage": "none" }), "hello"),
            (json!({ "output": [{ "content": "hello" }] }), "hello"),
            (json!({ "output": [{ "type": "message", "content": ["hel", { "text": "lo" }] }] }), "hello"),
            (json!({ "output": [{ "type": "message", "content": [{ "type": "refusal", "refusal": "no" }] }] }), "no"),
            (json!({ "output": [], "output_text": "hello" }), "hello"),
            (json!({ "status": "completed" }), ""),
        ] {
            assert_eq!(whole(&body).map(|turn| turn.text), Ok(wanted.to_owned()), "{body}");
        }
        assert_eq!(whole(&json!({ "id": "resp_1" })), Err(AnswerError::Empty));
        assert_eq!(whole(&json!({ "choices": [{ "message": { "content": "hello" } }] })), Err(AnswerError::Empty));
        assert_eq!(whole(&json!({ "status": "in_progress", "output": [] })), Err(AnswerError::Truncated));
    }

    #[test]
    fn how_a_response_ended_is_told() {
        let ended = |reason: &str| {
            let body =
                json!({ "status": "incomplete", "incomplete_details": { "reason": reason }, "output": [message("a")] });
            whole(&body).map(|turn| turn.finish.unwrap_or_default())
        };
        assert_eq!(ended("max_output_tokens").as_deref(), Ok("length"));
        assert_eq!(ended("content_filter").as_deref(), Ok("content_filter"));
        assert_eq!(ended("weather").as_deref(), Ok("incomplete: weather"));
        let error = |code, message: &str| Err(AnswerError::Error { code, message: message.to_owned() });
        for (body, wanted) in [
            (
                json!({ "status": "failed", "error": { "code": "server_error", "message": "later" } }),
                error(Some(500), "later"),
            ),
            (json!({ "status": "failed", "error": null, "output": [] }), error(None, "the response is `failed`")),
            (json!({ "type": "error", "code": "rate_limit_exceeded", "message": "slow" }), error(Some(429), "slow")),
            (
                json!({ "type": "response.failed", "response": { "error": { "code": "x", "message": "no" } } }),
                error(None, "no"),
            ),
            (
                json!({ "type": "response.completed", "response": { "status": "cancelled" } }),
                error(None, "the response is `cancelled`"),
            ),
        ] {
            assert_eq!(whole(&body), wanted, "{body}");
        }
    }

    #[test]
    fn events_come_together_however_items_are_numbered() {
        let wanted = vec![call("a", "one", "{\"x\":1}", Payload::Object), call("b", "patch", "a{", Payload::Text)];
        let one =
            json!({ "type": "function_call", "id": "fc_1", "call_id": "a", "name": "one", "arguments": "{\"x\":1}" });
        let patch =
            json!({ "type": "custom_tool_call", "id": "ctc_1", "call_id": "b", "name": "patch", "input": "a{" });
        let opened = |item: &Value| {
            let mut item = item.clone();
            let carried = if item["type"] == "function_call" { "arguments" } else { "input" };
            item[carried] = json!("");
            item
        };
        let arguments = |kind: &str, more: Value| {
            let mut event = json!({ "type": format!("response.{kind}") });
            more.as_object().into_iter().flatten().for_each(|(name, value)| event[name.as_str()] = value.clone());
            event
        };
        let added = |at: Option<u64>, item: &Value| json!({ "type": "response.output_item.added", "output_index": at, "item": opened(item) });
        let done = |at: Option<u64>, item: &Value| json!({ "type": "response.output_item.done", "output_index": at, "item": item });
        let function = |more: Value| arguments("function_call_arguments.delta", more);
        let custom = |more: Value| arguments("custom_tool_call_input.delta", more);
        let end = json!({ "type": "response.completed", "response": { "status": "completed", "output": [] } });
        let full = json!({ "type": "response.completed", "response": { "output": [one, patch] } });
        let cases = [
            // As documented, one within the other.
            vec![
                json!({ "type": "response.created", "response": { "status": "in_progress", "output": [], "error": null } }),
                added(Some(0), &one),
                added(Some(1), &patch),
                function(json!({ "output_index": 0, "item_id": "fc_1", "delta": "{\"x\"" })),
                custom(json!({ "output_index": 1, "item_id": "ctc_1", "delta": "a{" })),
                function(json!({ "output_index": 0, "item_id": "fc_1", "delta": ":1}" })),
                arguments(
                    "function_call_arguments.done",
                    json!({ "output_index": 0, "item_id": "fc_1", "arguments": "{\"x\":1}" }),
                ),
                arguments(
                    "custom_tool_call_input.done",
                    json!({ "output_index": 1, "item_id": "ctc_1", "input": "a{" }),
                ),
                done(Some(0), &one),
                done(Some(1), &patch),
                full.clone(),
            ],
            // Every item numbered 0, identifiers that hold.
            vec![
                added(Some(0), &one),
                added(Some(0), &patch),
                function(json!({ "output_index": 0, "item_id": "fc_1", "delta": "{\"x\":1}" })),
                custom(json!({ "output_index": 0, "item_id": "ctc_1", "delta": "a{" })),
                end.clone(),
            ],
            // Another identifier in each event.
            vec![
                added(Some(0), &one),
                added(Some(1), &patch),
                function(json!({ "output_index": 0, "item_id": "r1", "delta": "{\"x\":" })),
                custom(json!({ "output_index": 1, "item_id": "r2", "delta": "a" })),
                function(json!({ "output_index": 0, "item_id": "r3", "delta": "1}" })),
                custom(json!({ "output_index": 1, "item_id": "r4", "delta": "{" })),
                end.clone(),
            ],
            // Neither numbers nor deltas; nothing but the end.
            vec![done(None, &one), done(None, &patch), end.clone()],
            vec![full],
        ];
        for (case, events) in cases.iter().enumerate() {
            assert_eq!(read_all(events).map(|(turn, _)| turn.calls), Ok(wanted.clone()), "case {case}");
        }
        for (case, events) in cases.iter().enumerate() {
            assert_eq!(read_all(&events[..events.len() - 1]), Err(AnswerError::Truncated), "case {case}, cut");
        }
    }

    #[test]
    fn text_is_told_once_whichever_event_brings_it() {
        let delta = |text: &str| json!({ "type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": text });
        let text =
            json!({ "type": "response.output_text.done", "item_id": "msg_1", "output_index": 0, "text": "hello" });
        let done = json!({ "type": "response.output_item.done", "output_index": 0, "item": message("hello") });
        let full = json!({ "type": "response.completed", "response": { "output": [message("hello")] } });
        let end = json!({ "type": "response.completed", "response": { "status": "completed" } });
        for events in [
            vec![delta("hel"), delta("lo"), text.clone(), done.clone(), full.clone()],
            vec![delta("hel"), delta("lo"), end.clone()],
            vec![text, end.clone()],
            vec![done, end],
            vec![full.clone()],
            vec![delta("hel"), delta("lo"), full],
        ] {
            let (turn, shown) = read_all(&events).expect("an answer");
            assert_eq!((turn.text.as_str(), shown.as_str()), ("hello", "hello"), "{events:?}");
        }
    }

    #[test]
    fn a_text_that_the_limit_of_tokens_may_have_cut_is_not_executed() {
        let body = |status: Option<&str>, last: bool| {
            let custom =
                json!({ "type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "a", "status": status });
            let output = if last { json!([message("x"), custom]) } else { json!([custom, message("x")]) };
            whole(&json!({ "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" }, "output": output }))
                .map(|turn| turn.calls.len())
        };
        assert_eq!(body(Some("incomplete"), false), Err(AnswerError::TruncatedCall));
        assert_eq!(body(None, true), Err(AnswerError::TruncatedCall));
        assert_eq!(body(Some("completed"), true), Ok(1));
        assert_eq!(body(None, false), Ok(1));
    }

    #[test]
    fn more_items_than_any_model_gives_are_refused() {
        let added = |n: usize| json!({ "type": "response.output_item.added", "item": { "type": "function_call", "id": n.to_string() } });
        let events: Vec<Value> = (0..=MAX_CALLS).map(added).collect();
        assert_eq!(read_all(&events), Err(AnswerError::TooManyItems));
        assert_eq!(whole(&json!({ "output": vec![message("a"); MAX_CALLS + 1] })), Err(AnswerError::TooManyItems));
    }
}
