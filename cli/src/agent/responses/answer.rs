//! Puts an answer of the Responses API together, whole or from a stream of events. Servers leave out events, number every
//! item 0 or give an item a new identifier in each event: what is said last of an item holds, and what the whole
//! response says holds before all.

use serde_json::Value;
use toolcrib::call::Payload;

use crate::agent::answer::{Arriving, MOST_CALLS, Unusable, arguments, error_in, push_text, scalar, usage};
use crate::agent::conversation::Stand;
use crate::agent::turn::{Call, FILTER, LENGTH, Turn, Usage};

const COMPLETED: &str = "completed";
const INCOMPLETE: &str = "incomplete";

/// An answer while it arrives.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    items: Vec<Item>,
    /// The text so far, in the order in which it came.
    text: String,
    finish: Option<String>,
    usage: Option<Usage>,
}

/// An item of output while it arrives.
#[derive(Debug)]
struct Item {
    index: Option<u64>,
    id: String,
    /// What has become of it, in the server's word.
    status: Option<String>,
    /// Whether the server has given all of it.
    is_done: bool,
    what: What,
}

#[derive(Debug)]
enum What {
    Message {
        text: String,
        refusal: String,
    },
    Call(Call),
    /// Something that is given back as it is.
    Other(Value),
}

impl What {
    fn message() -> Self {
        Self::Message { text: String::new(), refusal: String::new() }
    }

    fn call(payload: Payload) -> Self {
        Self::Call(Call { payload, ..Call::default() })
    }

    fn read(item: &Value) -> Self {
        let call = |carried: &Value, payload| {
            let id = [&item["call_id"], &item["id"]].into_iter().map(scalar).find(|id| !id.is_empty());
            let (id, name) = (id.unwrap_or_default(), scalar(&item["name"]));
            Self::Call(Call { id, name, arguments: arguments(carried), payload })
        };
        let named = || item.get("name").is_some() || item.get("arguments").is_some();
        match item["type"].as_str() {
            None if item["input"].is_string() => call(&item["input"], Payload::Text),
            None if named() => call(&item["arguments"], Payload::Object),
            Some("function_call") => call(&item["arguments"], Payload::Object),
            Some("custom_tool_call") => call(&item["input"], Payload::Text),
            Some("message") | None => {
                let (mut text, mut refusal) = (String::new(), String::new());
                match &item["content"] {
                    Value::Array(parts) => parts.iter().for_each(|part| match part["refusal"].as_str() {
                        Some(said) => refusal.push_str(said),
                        None => push_text(&mut text, part),
                    }),
                    content => push_text(&mut text, content),
                }
                Self::Message { text, refusal }
            }
            Some(_) => Self::Other(item.clone()),
        }
    }

    /// Takes what a later word says of it, where it says anything.
    fn take(&mut self, later: Self) {
        let fill = |old: &mut String, new: String| {
            if !new.is_empty() {
                *old = new;
            }
        };
        match (self, later) {
            (Self::Message { text, refusal }, Self::Message { text: said, refusal: refused }) => {
                fill(text, said);
                fill(refusal, refused);
            }
            (Self::Call(call), Self::Call(later)) => {
                fill(&mut call.id, later.id);
                fill(&mut call.name, later.name);
                fill(&mut call.arguments, later.arguments);
                call.payload = later.payload;
            }
            (old, new) => *old = new,
        }
    }
}

impl Item {
    fn read(item: &Value, index: Option<u64>) -> Self {
        let status = item["status"].as_str().map(str::to_owned);
        Self { index, id: scalar(&item["id"]), status, is_done: false, what: What::read(item) }
    }
}

impl Answer {
    /// The item that an event is about; a new one, `otherwise`, where it is about none so far.
    fn item(&mut self, index: Option<u64>, id: &str, otherwise: What) -> Result<&mut Item, Unusable> {
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

    fn push(&mut self, item: Item) -> Result<(), Unusable> {
        if self.items.len() == MOST_CALLS {
            return Err(Unusable::Flood);
        }
        self.items.push(item);
        Ok(())
    }

    /// Hears one event of a stream.
    fn hear(&mut self, kind: &str, event: &Value) -> Result<(), Unusable> {
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
            "function_call_arguments.delta" => self.add_to_call(index, &id, Payload::Object, delta()),
            "custom_tool_call_input.delta" => self.add_to_call(index, &id, Payload::Text, delta()),
            "function_call_arguments.done" => self.end_call(index, &id, Payload::Object, event),
            "custom_tool_call_input.done" => self.end_call(index, &id, Payload::Text, event),
            "completed" | "done" => self.end(COMPLETED, &event["response"]),
            INCOMPLETE | "failed" | "cancelled" => self.end(kind, &event["response"]),
            _ => Ok(()),
        }
    }

    fn add_to_call(&mut self, index: Option<u64>, id: &str, payload: Payload, delta: &str) -> Result<(), Unusable> {
        if let What::Call(call) = &mut self.item(index, id, What::call(payload))?.what {
            call.arguments.push_str(delta);
        }
        Ok(())
    }

    fn end_call(&mut self, index: Option<u64>, id: &str, payload: Payload, event: &Value) -> Result<(), Unusable> {
        let carried = if payload == Payload::Text { &event["input"] } else { &event["arguments"] };
        let later = Call { name: scalar(&event["name"]), arguments: arguments(carried), payload, ..Call::default() };
        let item = self.item(index, id, What::call(payload))?;
        if matches!(item.what, What::Call(_)) {
            item.what.take(What::Call(later));
        }
        Ok(())
    }

    /// Takes the whole response, at the end of a stream or in its place.
    fn end(&mut self, announced: &str, response: &Value) -> Result<(), Unusable> {
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
            (INCOMPLETE, Some(reason)) => reason.to_owned(),
            (INCOMPLETE | COMPLETED, _) => status.to_owned(),
            _ => return Err(Unusable::Error { code: None, message: format!("the response is `{status}`") }),
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
            self.text = self.said(|text, _| text);
        }
        Ok(())
    }

    /// One of the two texts of every message.
    fn said<'a>(&'a self, which: impl Fn(&'a str, &'a str) -> &'a str) -> String {
        let said = |item: &'a Item| match &item.what {
            What::Message { text, refusal } => Some(which(text, refusal)),
            _ => None,
        };
        self.items.iter().filter_map(said).collect()
    }

    /// Whether the server stopped the model within a call that carries text, which looks whole wherever it ends.
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

impl Arriving for Answer {
    fn add(&mut self, part: &Value) -> Result<&str, Unusable> {
        let seen = self.text.len();
        match part["type"].as_str() {
            Some("error") => return Err(Unusable::error(part)),
            _ if error_in(part).is_some() => return Err(Unusable::error(part)),
            Some(kind) if self.finish.is_none() => {
                self.hear(kind.strip_prefix("response.").unwrap_or(kind), part)?;
            }
            Some(_) => {}
            None if matches!(part["status"].as_str(), Some("queued" | "in_progress")) => return Err(Unusable::Cut),
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

    fn whole(self: Box<Self>) -> Result<Turn, Unusable> {
        if self.finish.is_none() {
            return Err(Unusable::Empty);
        }
        if self.is_cut_in_text() {
            return Err(Unusable::CutCall);
        }
        let (text, refusal) = (self.said(|text, _| text), self.said(|_, refusal| refusal));
        let mut turn = Turn {
            text: if text.is_empty() { refusal } else { text },
            finish: self.finish,
            usage: self.usage,
            ..Turn::default()
        };
        for Item { what, .. } in self.items {
            turn.items.push(match what {
                What::Message { .. } => Stand::Text.into(),
                What::Call(call) => {
                    turn.calls.push(call.or_no_arguments());
                    Stand::Call.into()
                }
                What::Other(item) => item,
            });
        }
        if turn.items.iter().all(|item| Stand::of(item).is_some()) {
            turn.items.clear();
        }
        Ok(turn)
    }

    /// A stream was cut where the end of the response was not told, whatever else announced an end.
    fn streamed(self: Box<Self>, _done: bool) -> Result<Turn, Unusable> {
        if self.finish.is_none() { Err(Unusable::Cut) } else { self.whole() }
    }
}
