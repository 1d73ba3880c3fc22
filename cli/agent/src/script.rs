//! A model that says what a file says, for demonstrations and tests: no server, no key, the same loop.
//!
//! ```json
//! {
//!   "prompt": "what to ask when the command line does not say",
//!   "system": "likewise",
//!   "turns": [
//!     { "content": "text", "tool_calls": [{ "name": "fs_list_dir", "arguments": { "path": "." } }] },
//!     { "content": "the answer" }
//!   ],
//!   "agents": [{ "turns": [{ "content": "the answer to the first task that is handed on" }] }]
//! }
//! ```
//!
//! Every turn has `content`, `tool_calls` or both; the loop ends with the first turn without calls. A call has a `name`,
//! which may be missing as a model may forget it, and optionally `arguments` (an object, or text that is passed on as it
//! is, JSON or not) or, for a tool that takes text, `input`, and an `id`. A turn cannot refer to results: it says the same
//! whatever the tools answer. Where a tool hands tasks on, or asks the model itself, each agent or answer plays the next
//! of `agents`, in the order in which they come. Unknown fields are errors.

use std::fmt::Display;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::vec;

use anyhow::{Context, anyhow, bail};
use serde_json::{Map, Value, json};
use toolcrib_base::input;
use toolcrib_base::render::{self, Advice};

use super::answer::AnswerBuilder;
use super::completions::Answer;
use super::event::Event;
use super::report::Report;
use super::request::Request;
use super::turn::Turn;

/// A script, and how far it has been played.
#[derive(Debug, Clone)]
pub struct Script {
    path: PathBuf,
    /// Prompt if the command line has none.
    pub(crate) prompt: Option<String>,
    /// System message if the command line has none.
    pub(crate) system: Option<String>,
    turns: Vec<Value>,
    next: usize,
    /// Turns of the agents that have no task yet.
    agents: Arc<Mutex<vec::IntoIter<Vec<Value>>>>,
}

impl Script {
    /// Reads and checks a script.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let text = input::file(path).with_context(|| format!("cannot read the script `{}`", path.display()))?;
        Self::parse(&text, path)
    }

    /// Parses a script; `path` is its name in messages.
    ///
    /// # Errors
    ///
    /// The first mistake, with its place.
    pub fn parse(text: &str, path: &Path) -> anyhow::Result<Self> {
        let place = Place(path.display().to_string());
        let value: Value = serde_json::from_str(text).with_context(|| format!("script `{place}` is not JSON"))?;
        let fields = place.object(&value, &["prompt", "system", "turns", "agents"])?;
        let agents = match fields.get("agents") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(agents)) => agents
                .iter()
                .enumerate()
                .map(|(index, agent)| {
                    let place = place.agent(index);
                    turns(&place, place.object(agent, &["turns"])?)
                })
                .collect::<anyhow::Result<_>>()?,
            found => return Err(place.field("agents", found, "an array of objects with `turns`")),
        };
        Ok(Self {
            path: path.to_owned(),
            prompt: place.text(fields, "prompt")?,
            system: place.text(fields, "system")?,
            turns: turns(&place, fields)?,
            next: 0,
            agents: Arc::new(Mutex::new(agents.into_iter())),
        })
    }

    /// Returns the script after its first turns, which an earlier process played.
    pub fn after(self, turns: usize) -> Self {
        Self { next: self.next + turns, ..self }
    }

    /// Returns the script of the next agent that gets a task.
    pub(crate) fn next_agent(&self) -> Option<Self> {
        let turns = self.agents.lock().unwrap_or_else(PoisonError::into_inner).next()?;
        Some(Self { path: self.path.clone(), prompt: None, system: None, turns, next: 0, agents: self.agents.clone() })
    }

    /// Plays the next turn, by the way that a server's answer takes.
    pub(crate) fn answer(&mut self, request: Request<'_>, step: u32, report: &mut Report) -> anyhow::Result<Turn> {
        let turn = self.turns.get(self.next).ok_or_else(|| {
            let (path, turns) = (self.path.display(), render::counted(self.turns.len(), "turn"));
            anyhow!("script `{path}` has {turns} but the loop needs another: end it with a turn without `tool_calls`")
        })?;
        self.next += 1;
        let mut answer = Box::<Answer>::default();
        let invalid = || {
            let message = format!("turn {} of the script `{}` is invalid", self.next, self.path.display());
            Advice::new(message, "a turn has `content`, `tool_calls` or both; `toolcrib run --help` shows a script")
        };
        let text = answer.add(turn).map_err(|_| invalid())?;
        if request.stream {
            for word in text.split_inclusive(' ') {
                report.emit(&Event::Text { step, delta: word })?;
            }
        }
        answer.whole().map_err(|_| invalid().into())
    }
}

/// The turns of an agent.
fn turns(place: &Place, fields: &Map<String, Value>) -> anyhow::Result<Vec<Value>> {
    match fields.get("turns") {
        Some(Value::Array(turns)) if !turns.is_empty() => {
            turns.iter().enumerate().map(|(index, turn)| message(&place.turn(index), turn)).collect()
        }
        Some(Value::Array(_)) => bail!("{place}: `turns` is empty; add at least the turn that answers"),
        found => Err(place.field("turns", found, "an array of turns")),
    }
}

/// A turn as a server would send it.
fn message(place: &Place, turn: &Value) -> anyhow::Result<Value> {
    let fields = place.object(turn, &["content", "tool_calls"])?;
    let content = place.text(fields, "content")?;
    let calls = match fields.get("tool_calls") {
        None | Some(Value::Null) => &Vec::new(),
        Some(Value::Array(calls)) => calls,
        found => return Err(place.field("tool_calls", found, "an array of calls")),
    };
    if content.is_none() && calls.is_empty() {
        bail!("{place}: neither `content` nor `tool_calls`; add what the model says or calls");
    }
    let calls: Vec<Value> =
        calls.iter().enumerate().map(|(index, call)| tool_call(&place.call(index), call)).collect::<Result<_, _>>()?;
    Ok(json!({ "choices": [{ "message": { "role": "assistant", "content": content, "tool_calls": calls } }] }))
}

fn tool_call(place: &Place, call: &Value) -> anyhow::Result<Value> {
    let fields = place.object(call, &["id", "name", "arguments", "input"])?;
    let (id, name) = (place.text(fields, "id")?, place.text(fields, "name")?);
    if let Some(input) = place.text(fields, "input")? {
        if fields.contains_key("arguments") {
            bail!("{place}: both `arguments` and `input`; a call carries an object or text");
        }
        return Ok(json!({ "id": id, "type": "custom", "custom": { "name": name, "input": input } }));
    }
    let arguments = match fields.get("arguments") {
        None => &json!({}),
        Some(arguments @ (Value::Object(_) | Value::String(_))) => arguments,
        found => return Err(place.field("arguments", found, "an object, or text to pass on as it is")),
    };
    Ok(json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }))
}

/// Position in a script.
struct Place(String);

impl Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Place {
    fn turn(&self, index: usize) -> Self {
        Self(format!("{self}: turns[{index}]"))
    }

    fn agent(&self, index: usize) -> Self {
        Self(format!("{self}: agents[{index}]"))
    }

    fn call(&self, index: usize) -> Self {
        Self(format!("{self}.tool_calls[{index}]"))
    }

    fn object<'a>(&self, value: &'a Value, known: &[&str]) -> anyhow::Result<&'a Map<String, Value>> {
        let Value::Object(fields) = value else {
            bail!("{self}: found {}, expected an object with {}", kind(value), list(known));
        };
        match fields.keys().find(|field| !known.contains(&field.as_str())) {
            Some(field) => bail!("{self}: unknown field `{field}`; the fields are {}", list(known)),
            None => Ok(fields),
        }
    }

    fn text(&self, fields: &Map<String, Value>, name: &str) -> anyhow::Result<Option<String>> {
        match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            found => Err(self.field(name, found, "text")),
        }
    }

    fn field(&self, name: &str, found: Option<&Value>, expected: &str) -> anyhow::Error {
        match found {
            Some(found) => anyhow!("{self}: `{name}` is {}; write {expected}", kind(found)),
            None => anyhow!("{self}: `{name}` is missing; write {expected}"),
        }
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_script_is_told_where_it_is_wrong() {
        for (text, wanted) in [
            ("[]", "s.json: found an array, expected an object with `prompt`, `system`, `turns`, `agents`"),
            (r#"{"agents":{}}"#, "s.json: `agents` is an object; write an array of objects with `turns`"),
            (
                r#"{"turns":[{"content":"a"}],"agents":[{"turns":[{"content":"b"}]},{"turns":[]}]}"#,
                "s.json: agents[1]: `turns` is empty; add at least the turn that answers",
            ),
            (r#"{"turns":{}}"#, "s.json: `turns` is an object; write an array of turns"),
            (r#"{}"#, "s.json: `turns` is missing; write an array of turns"),
            (r#"{"turns":[]}"#, "s.json: `turns` is empty; add at least the turn that answers"),
            (
                r#"{"turns":[{}]}"#,
                "s.json: turns[0]: neither `content` nor `tool_calls`; add what the model says or calls",
            ),
            (r#"{"turns":[{"content":7}]}"#, "s.json: turns[0]: `content` is a number; write text"),
            (
                r#"{"turns":[{"content":"a"},{"tool_calls":[{"name":"x","args":{}}]}]}"#,
                "s.json: turns[1].tool_calls[0]: unknown field `args`; the fields are `id`, `name`, `arguments`, `input`",
            ),
            (
                r#"{"turns":[{"tool_calls":[{"name":"x","arguments":[1]}]}]}"#,
                "s.json: turns[0].tool_calls[0]: `arguments` is an array; write an object, or text to pass on as it is",
            ),
            (
                r#"{"turns":[{"tool_calls":[{"name":"x","arguments":{},"input":"a"}]}]}"#,
                "s.json: turns[0].tool_calls[0]: both `arguments` and `input`; a call carries an object or text",
            ),
        ] {
            let found = Script::parse(text, Path::new("s.json")).map(|_| ()).map_err(|error| error.to_string());
            assert_eq!(found, Err(wanted.to_owned()), "{text}");
        }
    }
}
