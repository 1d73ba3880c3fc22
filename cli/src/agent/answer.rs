//! Puts an answer together from what compatible servers really send: whole, or as the parts of a stream. Every field may
//! be missing, null or of another type than documented; unknown fields are ignored. A whole answer is a stream of one
//! part, so there is one way to read either. It knows nothing of HTTP, and runs nothing.

use serde_json::{Map, Value, json};

use super::turn::{Call, Turn, Usage};

/// The most calls that an answer may hold: more than any model makes, and few enough to look through for each fragment.
pub(crate) const MOST_CALLS: usize = 512;

/// Why an answer is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// The stream ended before the answer did.
    Cut,
    /// There is no message in it.
    Empty,
    /// It holds more than [`MOST_CALLS`] calls.
    Flood,
    /// The server reports an error in place of an answer.
    Error { code: Option<u16>, message: String },
}

/// An answer while it arrives.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    text: String,
    refusal: String,
    calls: Vec<Partial>,
    finish: Option<String>,
    usage: Option<Usage>,
    begun: bool,
}

/// A call while it arrives.
#[derive(Debug, Default)]
struct Partial {
    index: Option<u64>,
    call: Call,
    object: Object,
}

/// How far the object has come that a call's arguments are, known without reading them anew with every fragment.
#[derive(Debug, Default)]
struct Object {
    depth: u64,
    in_text: bool,
    escaped: bool,
    ended: bool,
}

impl Answer {
    /// Adds one part, or the whole, and returns the text that is new in it.
    pub(crate) fn add(&mut self, part: &Value) -> Result<&str, Unusable> {
        if let Some(error) = error_in(part) {
            return Err(error);
        }
        if let Some(usage) = usage(&part["usage"]) {
            self.usage = Some(usage);
        }
        let seen = self.text.len();
        let choice = &part["choices"][0];
        if let Some(finish) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.finish = Some(finish.to_owned());
        }
        if let Some(delta) = choice["delta"].as_object() {
            self.begun = true;
            self.add_message(delta, false)?;
        } else if let (Some(message), false) =
            (choice["message"].as_object().or(part["message"].as_object()), self.begun)
        {
            self.begun = true;
            self.add_message(message, true)?;
        } else if let (Some(text), false) = (choice["text"].as_str(), self.begun) {
            self.text.push_str(text);
        }
        Ok(&self.text[seen..])
    }

    fn add_message(&mut self, message: &Map<String, Value>, whole: bool) -> Result<(), Unusable> {
        let get = |field: &str| message.get(field).unwrap_or(&Value::Null);
        push_text(&mut self.text, get("content"));
        push_text(&mut self.refusal, get("refusal"));
        match get("tool_calls") {
            Value::Array(calls) => {
                calls.iter().enumerate().try_for_each(|(place, call)| self.add_call(call, place, whole))
            }
            Value::Null => match get("function_call") {
                old @ Value::Object(_) => self.add_call(&json!({ "index": 0, "function": old }), 0, whole),
                _ => Ok(()),
            },
            call => self.add_call(call, 0, whole),
        }
    }

    /// Adds a call or a fragment of one. Its place in its part counts only where the server gives no index.
    fn add_call(&mut self, fragment: &Value, place: usize, whole: bool) -> Result<(), Unusable> {
        let function = if fragment["function"].is_object() { &fragment["function"] } else { fragment };
        let id = scalar(&fragment["id"]);
        let name = scalar(&function["name"]);
        let arguments = match &function["arguments"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let index = fragment["index"].as_u64();
        let opened = if whole { None } else { self.opened(index, &id, place > 0 && !name.is_empty()) };
        let opened = opened.filter(|at| {
            // Some servers number every call 0, or repeat an identifier: a second name with arguments of its own, where
            // the arguments so far are complete, is a second call.
            name.is_empty() || arguments.is_empty() || !self.calls[*at].object.ended
        });
        match opened {
            None if self.calls.len() == MOST_CALLS => return Err(Unusable::Flood),
            None => {
                let mut object = Object::default();
                object.read(&arguments);
                self.calls.push(Partial { index, call: Call { id, name, arguments }, object });
            }
            Some(at) => {
                let Partial { call, object, .. } = &mut self.calls[at];
                object.read(&arguments);
                if call.id.is_empty() {
                    call.id = id;
                }
                if call.name != name && call.arguments.is_empty() {
                    call.name.push_str(&name);
                }
                call.arguments.push_str(&arguments);
            }
        }
        Ok(())
    }

    /// The call that a fragment continues, if it is not the first of a new one.
    fn opened(&self, index: Option<u64>, id: &str, next_in_part: bool) -> Option<usize> {
        let other = |known: &str| !id.is_empty() && !known.is_empty() && known != id;
        match index {
            Some(_) => self
                .calls
                .iter()
                .rposition(|partial| partial.index == index)
                .filter(|at| !other(&self.calls[*at].call.id)),
            None if next_in_part => None,
            None if !id.is_empty() => self.calls.iter().rposition(|partial| partial.call.id == id),
            None => self.calls.len().checked_sub(1),
        }
    }

    /// Whether the server has said that the answer is complete.
    pub(crate) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The answer of a server that sent it whole.
    pub(crate) fn whole(self) -> Result<Turn, Unusable> {
        if !self.begun && self.text.is_empty() { Err(Unusable::Empty) } else { Ok(self.turn()) }
    }

    /// The answer of a stream that has ended; `done` says whether its end was announced.
    ///
    /// A stream that neither says why the model stopped nor announces its end was cut, and so was one whose arguments
    /// break off without a reason: nothing of it may be executed.
    pub(crate) fn streamed(self, done: bool) -> Result<Turn, Unusable> {
        let broken = |partial: &Partial| !partial.call.arguments.is_empty() && !is_json(&partial.call.arguments);
        if self.finish.is_none() && (!done || self.calls.iter().any(broken)) {
            return Err(Unusable::Cut);
        }
        self.whole()
    }

    fn turn(self) -> Turn {
        let calls = self.calls.into_iter().map(|Partial { mut call, .. }| {
            if call.arguments.trim().is_empty() {
                call.arguments = "{}".to_owned();
            }
            call
        });
        let text = if self.text.is_empty() { self.refusal } else { self.text };
        Turn { text, calls: calls.collect(), finish: self.finish, usage: self.usage }
    }
}

impl Object {
    /// Reads on.
    fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = self.in_text,
                b'"' => self.in_text = !self.in_text,
                b'{' if !self.in_text => self.depth += 1,
                b'}' if !self.in_text => {
                    self.depth = self.depth.saturating_sub(1);
                    self.ended |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

/// The error that a server reports in the place of an answer, or in the midst of a stream.
fn error_in(part: &Value) -> Option<Unusable> {
    let error = match &part["error"] {
        Value::Null | Value::Bool(false) => return None,
        Value::String(text) if text.is_empty() => return None,
        Value::Object(fields) if fields.is_empty() => return None,
        error => error,
    };
    let code = [&error["code"], &error["status"], &part["code"]].into_iter().find_map(|code| scalar(code).parse().ok());
    Some(Unusable::Error { code, message: message_of(part) })
}

/// What a server says went wrong, from whichever field it uses.
pub(crate) fn message_of(body: &Value) -> String {
    let body = body.get(0).unwrap_or(body);
    let places = [&body["error"]["message"], &body["error"], &body["message"], &body["detail"], body];
    match places.into_iter().find(|place| !place.is_null()) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// Text: a string, or parts that each are a string or hold one.
fn push_text(text: &mut String, content: &Value) {
    match content {
        Value::String(content) => text.push_str(content),
        Value::Array(parts) => parts.iter().for_each(|part| push_text(text, part)),
        Value::Object(part) => match part.get("text").or(part.get("refusal")) {
            Some(Value::String(content)) => text.push_str(content),
            Some(Value::Object(nested)) => push_text(text, nested.get("value").unwrap_or(&Value::Null)),
            _ => {}
        },
        _ => {}
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    let count = |names: [&str; 2]| {
        let found = names.into_iter().find_map(|name| usage[name].as_f64());
        // A float is cast with saturation, so an absurd count stays a count.
        found.map(|count| count as u64)
    };
    let prompt = count(["prompt_tokens", "input_tokens"]);
    let completion = count(["completion_tokens", "output_tokens"]);
    let total = count(["total_tokens", "total_tokens"]);
    prompt.or(completion).or(total)?;
    let (prompt_tokens, completion_tokens) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    let total_tokens = total.unwrap_or(prompt_tokens.saturating_add(completion_tokens));
    Some(Usage { prompt_tokens, completion_tokens, total_tokens })
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, name: &str, arguments: &str) -> Call {
        Call { id: id.into(), name: name.into(), arguments: arguments.into() }
    }

    fn streamed(deltas: &[Value]) -> Result<Vec<Call>, Unusable> {
        let mut answer = Answer::default();
        for delta in deltas {
            answer.add(&json!({ "choices": [{ "delta": { "tool_calls": delta } }] }))?;
        }
        answer.streamed(true).map(|turn| turn.calls)
    }

    #[test]
    fn fragments_of_a_call_find_it_however_it_is_numbered() {
        let wanted = Ok(vec![call("a", "one", r#"{"x":1}"#), call("b", "two", r#"{"y":2}"#)]);
        let cases = [
            // As documented.
            vec![
                json!([{"index":0,"id":"a","function":{"name":"one","arguments":""}}]),
                json!([{"index":0,"function":{"arguments":"{\"x\":"}}]),
                json!([{"index":1,"id":"b","function":{"name":"two","arguments":""}}]),
                json!([{"index":0,"function":{"arguments":"1}"}}, {"index":1,"function":{"arguments":"{\"y\":2}"}}]),
            ],
            // No index, whole calls, in one part or in two.
            vec![
                json!([{"id":"a","function":{"name":"one","arguments":{"x":1}}}, {"id":"b","function":{"name":"two","arguments":{"y":2}}}]),
            ],
            vec![
                json!([{"id":"a","function":{"name":"one","arguments":"{\"x\":1}"}}]),
                json!([{"id":"b","function":{"name":"two","arguments":"{\"y\":2}"}}]),
            ],
            // No index, the identifier only where a call begins.
            vec![
                json!([{"id":"a","function":{"name":"one","arguments":"{\"x\""}}]),
                json!([{"function":{"arguments":":1}"}}]),
                json!([{"id":"b","function":{"name":"two"}}]),
                json!({"function":{"arguments":"{\"y\":2}"}}),
            ],
            // Index 0 for every call.
            vec![
                json!([{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\":1}"}}]),
                json!([{"index":0,"id":"b","function":{"name":"two","arguments":"{\"y\":"}}]),
                json!([{"index":0,"function":{"arguments":"2}"}}]),
            ],
            // The name and the identifier repeated in every part.
            vec![
                json!([{"index":0,"id":"a","function":{"name":"one","arguments":""}}]),
                json!([{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\":"}}]),
                json!([{"index":0,"id":"a","function":{"name":"one","arguments":"1}"}}]),
                json!([{"index":1,"id":"b","function":{"name":"two","arguments":"{\"y\":2}"}}]),
            ],
        ];
        for (case, deltas) in cases.iter().enumerate() {
            assert_eq!(streamed(deltas), wanted, "case {case}");
        }
    }

    #[test]
    fn calls_without_index_or_identifier_are_told_apart_where_their_arguments_end() {
        let deltas = [
            json!([{"index":0,"function":{"name":"one","arguments":"{\"x\":1}"}}]),
            json!([{"index":0,"function":{"name":"one","arguments":"{\"x\":2}"}}]),
        ];
        let wanted = vec![call("", "one", r#"{"x":1}"#), call("", "one", r#"{"x":2}"#)];
        assert_eq!(streamed(&deltas), Ok(wanted));
    }

    #[test]
    fn arguments_end_where_their_object_does() {
        let ended = |fragments: &[&str]| {
            let mut object = Object::default();
            fragments.iter().for_each(|fragment| object.read(fragment));
            object.ended
        };
        for whole in [&["{}"][..], &["{\"a\":{", "}", "}"], &["{\"", "}\\", "\"{\":[1]", "} "]] {
            assert!(ended(whole), "{whole:?}");
        }
        for open in [&[""][..], &["{"], &["{\"a\":{}"], &["{\"a\":\"}"], &["{\"a\":\"\\", "\"}"]] {
            assert!(!ended(open), "{open:?}");
        }
    }

    #[test]
    fn more_calls_than_any_model_makes_are_refused() {
        let calls = |count: usize| vec![json!({ "function": { "name": "one", "arguments": "{}" } }); count];
        let answer = |count| json!({ "choices": [{ "message": { "tool_calls": calls(count) } }] });
        assert_eq!(Answer::default().add(&answer(MOST_CALLS)), Ok(""));
        assert_eq!(Answer::default().add(&answer(MOST_CALLS + 1)), Err(Unusable::Flood));
    }

    #[test]
    fn arguments_that_break_off_without_a_reason_are_a_cut_stream() {
        let broken = [json!([{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\":"}}])];
        assert_eq!(streamed(&broken), Err(Unusable::Cut));
    }

    #[test]
    fn an_error_in_the_place_of_an_answer_is_told_with_its_code() {
        let error = |code, message: &str| Err(Unusable::Error { code, message: message.into() });
        for (body, wanted) in [
            (json!({"error":{"code":502,"message":"upstream"}}), error(Some(502), "upstream")),
            (json!({"error":"no such model"}), error(None, "no such model")),
            (json!({"error":{"code":"rate_limited","message":"slow down"},"choices":[]}), error(None, "slow down")),
            (json!({"error":null,"choices":[]}), Ok("")),
        ] {
            assert_eq!(Answer::default().add(&body), wanted, "{body}");
        }
    }
}
