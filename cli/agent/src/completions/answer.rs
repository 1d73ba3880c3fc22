//! Assembles a Chat Completions answer from what compatible servers really send, whole or as parts of a stream.

use serde_json::{Map, Value, json};
use toolcrib::call::Payload;

use crate::answer::{AnswerBuilder, AnswerError, MAX_CALLS, arguments, error_in, is_json, push_text, scalar, usage};
use crate::turn::{Call, ForeignMembers, LENGTH, Turn, Usage};

/// Members of a message that are read, or have no place in a request.
const KNOWN: [&str; 11] = [
    "role",
    "content",
    "refusal",
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "audio",
    "output_items",
    "output_parts",
    "made_by",
];
/// Members of a call that are read.
const KNOWN_OF_CALL: [&str; 7] = ["index", "id", "type", "function", "custom", "name", "arguments"];
/// Name parts for texts that arrive in fragments.
const FRAGMENTED: [&str; 3] = ["reason", "think", "thought"];

/// An answer while it arrives.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    text: String,
    refusal: String,
    calls: Vec<Partial>,
    finish: Option<String>,
    usage: Option<Usage>,
    begun: bool,
    foreign: Map<String, Value>,
}

/// A call while it arrives.
#[derive(Debug, Default)]
struct Partial {
    index: Option<u64>,
    call: Call,
    object: Object,
    foreign: Map<String, Value>,
}

/// Adds the members of an object that are not known, joined to those that arrived before.
fn collect(known: &[&str], from: &Map<String, Value>, to: &mut Map<String, Value>) {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    for (name, value) in from.iter().filter(|(name, value)| !known.contains(&name.as_str()) && !is_empty(value)) {
        match (to.get_mut(name), value) {
            (Some(Value::String(text)), Value::String(more)) if FRAGMENTED.iter().any(|part| name.contains(part)) => {
                text.push_str(more);
            }
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more.iter().cloned()),
            _ => drop(to.insert(name.clone(), value.clone())),
        }
    }
}

/// Progress within the JSON object of a call's arguments, tracked so that no fragment is read twice.
#[derive(Debug, Default)]
struct Object {
    depth: u64,
    in_text: bool,
    escaped: bool,
    ended: bool,
}

impl Answer {
    fn add_message(&mut self, message: &Map<String, Value>, whole: bool) -> Result<(), AnswerError> {
        let get = |field: &str| message.get(field).unwrap_or(&Value::Null);
        push_text(&mut self.text, get("content"));
        push_text(&mut self.refusal, get("refusal"));
        collect(&KNOWN, message, &mut self.foreign);
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
    fn add_call(&mut self, fragment: &Value, place: usize, whole: bool) -> Result<(), AnswerError> {
        let id = scalar(&fragment["id"]);
        let (called, arguments, payload) = match (&fragment["custom"], &fragment["function"]) {
            (custom @ Value::Object(_), _) => (custom, arguments(&custom["input"]), Payload::Text),
            (_, function @ Value::Object(_)) => (function, arguments(&function["arguments"]), Payload::Object),
            _ => (fragment, arguments(&fragment["arguments"]), Payload::Object),
        };
        let name = scalar(&called["name"]);
        let index = fragment["index"].as_u64();
        let opened = if whole { None } else { self.opened(index, &id, place > 0 && !name.is_empty()) };
        let opened = opened.filter(|at| {
            // Some servers number every call 0, or repeat an identifier: a second name with arguments of its own, where
            // the arguments so far are complete, is a second call.
            name.is_empty() || arguments.is_empty() || !self.calls[*at].object.ended
        });
        match opened {
            None if self.calls.len() == MAX_CALLS => return Err(AnswerError::TooManyItems),
            None => {
                let mut object = Object::default();
                object.read(&arguments);
                let mut partial =
                    Partial { index, call: Call { id, name, arguments, payload }, object, ..Partial::default() };
                partial.collect(fragment);
                self.calls.push(partial);
            }
            Some(at) => {
                self.calls[at].collect(fragment);
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

    fn turn(self) -> Turn {
        let of_calls = self.calls.iter().map(|partial| partial.foreign.clone()).collect();
        let foreign = ForeignMembers { origin: String::new(), message: self.foreign, calls: of_calls };
        let calls = self.calls.into_iter().map(|partial| partial.call.with_default_arguments()).collect();
        let text = if self.text.is_empty() { self.refusal } else { self.text };
        Turn { text, calls, finish: self.finish, usage: self.usage, items: Vec::new(), foreign }
    }
}

impl Partial {
    fn collect(&mut self, fragment: &Value) {
        if let Some(members) = fragment.as_object() {
            collect(&KNOWN_OF_CALL, members, &mut self.foreign);
        }
    }
}

impl AnswerBuilder for Answer {
    fn add(&mut self, part: &Value) -> Result<&str, AnswerError> {
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

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn whole(self: Box<Self>) -> Result<Turn, AnswerError> {
        let text_last = self.calls.last().is_some_and(|partial| partial.call.payload == Payload::Text);
        match self.finish.as_deref() {
            _ if !self.begun && self.text.is_empty() => Err(AnswerError::Empty),
            Some(LENGTH) if text_last => Err(AnswerError::TruncatedCall),
            _ => Ok(self.turn()),
        }
    }

    /// A stream that neither says why the model stopped nor announces its end was cut, and so was one whose arguments
    /// break off without a reason; of a text nobody can tell.
    fn streamed(self: Box<Self>, done: bool) -> Result<Turn, AnswerError> {
        let broken = |Partial { call, .. }: &Partial| match call.payload {
            Payload::Object => !call.arguments.is_empty() && !is_json(&call.arguments),
            Payload::Text => true,
        };
        if self.finish.is_none() && (!done || self.calls.iter().any(broken)) {
            return Err(AnswerError::Truncated);
        }
        self.whole()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, name: &str, arguments: &str) -> Call {
        Call { id: id.into(), name: name.into(), arguments: arguments.into(), payload: Payload::Object }
    }

    fn streamed(deltas: &[Value]) -> Result<Vec<Call>, AnswerError> {
        let mut answer = Box::<Answer>::default();
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
    fn members_that_only_the_server_knows_are_collected_and_fragments_joined() {
        let mut answer = Box::<Answer>::default();
        for delta in [
            json!({"role": "assistant", "reasoning_content": "let me ", "annotations": [], "provider": "p"}),
            json!({"reasoning_content": "see", "content": "", "provider": "p", "details": [1]}),
            json!({"reasoning_content": null, "details": [2], "tool_calls": [
                {"index": 0, "id": "a", "function": {"name": "one", "arguments": "{"}, "extra_content": {"s": "x"}}]}),
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}),
        ] {
            answer.add(&json!({ "choices": [{ "delta": delta }] })).unwrap();
        }
        let foreign = answer.streamed(true).unwrap().foreign;
        let message = json!({"reasoning_content": "let me see", "provider": "p", "details": [1, 2]});
        assert_eq!(Value::Object(foreign.message), message);
        assert_eq!(foreign.calls.len(), 1);
        assert_eq!(Value::Object(foreign.calls[0].clone()), json!({"extra_content": {"s": "x"}}));
        let mut whole = Box::<Answer>::default();
        whole.add(&json!({"choices": [{"message": {"content": "hi", "refusal": null, "annotations": []}}]})).unwrap();
        assert!(whole.whole().unwrap().foreign.is_empty());
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
        assert_eq!(Answer::default().add(&answer(MAX_CALLS)), Ok(""));
        assert_eq!(Answer::default().add(&answer(MAX_CALLS + 1)), Err(AnswerError::TooManyItems));
    }

    #[test]
    fn arguments_that_break_off_without_a_reason_are_a_cut_stream() {
        let broken = [json!([{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\":"}}])];
        assert_eq!(streamed(&broken), Err(AnswerError::Truncated));
    }

    #[test]
    fn a_custom_call_carries_text_and_one_that_may_be_cut_is_none() {
        let parts = |finish: Option<&str>| {
            let mut answer = Box::<Answer>::default();
            for custom in [json!({ "name": "patch", "input": "*** " }), json!({ "input": "{" })] {
                let call = json!({ "index": 0, "id": "a", "type": "custom", "custom": custom });
                answer.add(&json!({ "choices": [{ "delta": { "tool_calls": [call] } }] }))?;
            }
            answer.add(&json!({ "choices": [{ "finish_reason": finish }] }))?;
            answer.streamed(true).map(|turn| turn.calls)
        };
        let wanted = Call { payload: Payload::Text, ..call("a", "patch", "*** {") };
        assert_eq!(parts(Some("tool_calls")), Ok(vec![wanted]));
        assert_eq!(parts(Some("length")), Err(AnswerError::TruncatedCall));
        assert_eq!(parts(None), Err(AnswerError::Truncated), "nobody says that it is complete");
    }
}
