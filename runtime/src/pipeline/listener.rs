//! Hooks that are scripts: asked like an embedder's own, in a sandbox of their own. EventKind one answers is taken strictly, and
//! what cannot be understood blocks like a refusal.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::call::{Denial, ToolCall};
use crate::error::{Outcome, ToolError};
use crate::hook::{Modification, Review, Verdict};
use crate::policy::Command;
use crate::sandbox::{Act, Usage};
use crate::schema::{self, Clock, step, watched};
use crate::tool::{Body, Glob, HookPoint, Limits, ScriptedHook, Service};

use super::ready::{Ready, aside};
use super::script::{Answered, Asked};
use super::{Memory, Pipeline};

/// The most characters of a reason.
const MAX_REASON_LEN: usize = 2000;
/// The longest that the patterns of one hook are tried on large arguments.
const MAX_GLOBS_TIME: Duration = Duration::from_secs(1);

/// A hook's script, with what is settled for it.
pub(crate) struct Scripted {
    pub(crate) hook: ScriptedHook,
    pub(crate) ready: Ready,
}

/// EventKind a script answers to an event.
enum Answer {
    Allow,
    Pass,
    Block(String),
    Modify(Value),
    Delegate(Value),
}

impl Scripted {
    pub(super) fn name(&self) -> &str {
        &self.hook.tool.name
    }

    /// The digest of its script.
    pub(super) fn digest(&self) -> Option<&str> {
        match &self.hook.tool.body {
            Body::Script(script) => Some(&script.digest),
            _ => None,
        }
    }

    /// Returns true where it hears this event of this tool, whatever the arguments.
    fn hears(&self, event: &HookPoint, tool: &str) -> bool {
        let tools = &self.hook.when.tools;
        self.hook.event == *event && (tools.is_empty() || tools.iter().any(|glob| glob.is_match(tool)))
    }

    /// Tells if it is asked about a command that a script runs. Where that may hold arguments that no condition sees, it is
    /// asked whatever its conditions on arguments say.
    pub(super) async fn applies_to_command(&self, tool: &str, command: &Command) -> bool {
        (command.is_opaque && self.hears(&HookPoint::ToolPre, tool))
            || self.applies(&HookPoint::ToolPre, tool, &command.arguments).await
    }

    /// Returns true where it is asked about this event of this tool, as far as that is known without running it, and where
    /// the arguments are too large to tell that in time.
    pub(super) async fn applies(&self, event: &HookPoint, tool: &str, arguments: &Arc<Value>) -> bool {
        if !self.hears(event, tool) {
            return false;
        }
        let globs = &self.hook.when.arguments;
        if globs.is_empty() {
            return true;
        }
        if let Some(fit) = watched(&Clock::brief(), || fit(globs, arguments, schema::LARGE)).ok().flatten() {
            return fit;
        }
        let (globs, arguments) = (globs.clone(), arguments.clone());
        let job = aside(Instant::now() + MAX_GLOBS_TIME, move || fit(&globs, &arguments, usize::MAX));
        job.await.flatten().unwrap_or(true)
    }

    /// Judges a call before it runs.
    pub(super) async fn before(&self, around: &mut Around<'_>, call: &Payload<'_>) -> Result<Verdict, String> {
        Ok(match self.ask(around, &HookPoint::ToolPre, &call.proposed()).await? {
            Answer::Pass => Verdict::Pass,
            Answer::Allow => Verdict::Allow,
            Answer::Block(reason) => Verdict::Block(reason),
            Answer::Modify(payload) => Verdict::Modify(Modification {
                arguments: call.modified(payload)?,
                // It names no source for what a model may not set, and so cannot set it either.
                mutation_source: None,
                reason: None,
            }),
            Answer::Delegate(task) => Verdict::Delegate(self.task(task)?),
        })
    }

    /// Judges an answer.
    pub(super) async fn after(
        &self,
        around: &mut Around<'_>,
        call: &Payload<'_>,
        outcome: Outcome,
        answer: Result<&str, &ToolError>,
    ) -> Result<Review, String> {
        let content = answer.map_or_else(ToolError::content, str::to_owned);
        let payload = call.ended(&content, outcome);
        Ok(match self.ask(around, &HookPoint::ToolPost, &payload).await? {
            Answer::Pass | Answer::Allow => Review::Pass,
            Answer::Block(reason) => Review::Block(reason),
            Answer::Modify(modified) => Review::Replace(replaced(modified, &payload)),
            Answer::Delegate(_) => return Err("it delegates after the call has run".to_owned()),
        })
    }

    /// A task, where it may hand on any.
    fn task(&self, task: Value) -> Result<Value, String> {
        let denied = |denial: Denial| {
            let hint = denial.flag.map(|flag| format!("; `{flag}` would allow it")).unwrap_or_default();
            format!("it delegates, which it is not granted{hint}")
        };
        self.ready.grant.rights().check(Service::Delegate, None).map(|()| task).map_err(denied)
    }

    async fn ask(&self, around: &mut Around<'_>, event: &HookPoint, payload: &Value) -> Result<Answer, String> {
        let Body::Script(script) = &self.hook.tool.body else { return Err("it has no script".to_owned()) };
        let (event, payload) = (event.to_string(), payload.to_string());
        let when = self.hook.when.expression.as_deref();
        let act = Act::Handle { when, event: &event, payload: &payload };
        let Around { pipeline, memory, usage, depth, until, within_slot, .. } = *around;
        let asked = Asked { name: self.name(), script, ready: &self.ready, memory, usage, depth, until, within_slot };
        // The states of an interpreter would make every call's own larger.
        let Answered { answer: said, log } = Box::pin(pipeline.ask_script(asked, act)).await;
        around.log.push_str(&log);
        match said.map_err(|why| clipped(&why))? {
            Some(text) => answer(&text),
            None => Ok(Answer::Pass),
        }
    }
}

/// EventKind surrounds a hook that is asked.
pub(super) struct Around<'a> {
    pub(super) pipeline: &'a Arc<Pipeline>,
    pub(super) memory: &'a Arc<Memory>,
    /// The usage of the call that it is asked about, where it is about one.
    pub(super) usage: &'a Arc<Usage>,
    /// How deep the call is that it is asked about.
    pub(super) depth: u32,
    /// When they have to have answered.
    pub(super) until: Instant,
    /// Whether whoever asks holds a slot already.
    pub(super) within_slot: bool,
    /// EventKind they wrote for people.
    pub(super) log: String,
}

impl<'a> Around<'a> {
    pub(super) fn new(pipeline: &'a Arc<Pipeline>, memory: &'a Arc<Memory>, usage: &'a Arc<Usage>) -> Self {
        let until = Instant::now() + Limits::default().deadline;
        Self { pipeline, memory, usage, depth: memory.depth, until, within_slot: false, log: String::new() }
    }
}

/// Holds the texts of arguments against patterns; `None` where one has more bytes than `most`.
fn fit(globs: &[(String, Glob)], arguments: &Value, most: usize) -> Option<bool> {
    for (name, glob) in globs {
        let fits = match arguments.get(name) {
            None => false,
            Some(Value::String(text)) if text.len() > most => return None,
            Some(Value::String(text)) => step(text.len()) && glob.is_match(text),
            Some(value) => {
                let text = written(value, most)?;
                step(text.len()) && glob.is_match(&text)
            }
        };
        if !fits {
            return Some(false);
        }
    }
    Some(true)
}

/// The JSON of a value; `None` where it has more bytes than `most`.
fn written(value: &Value, most: usize) -> Option<String> {
    /// Takes so many bytes, and then fails.
    struct Room(Vec<u8>, usize);

    impl Write for Room {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() + bytes.len() > self.1 || !step(bytes.len()) {
                return Ok(0);
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut room = Room(Vec::new(), most);
    serde_json::to_writer(&mut room, value).ok()?;
    String::from_utf8(room.0).ok()
}

/// As much of a hook's reason as a model is told.
fn clipped(reason: &str) -> String {
    match reason.char_indices().nth(MAX_REASON_LEN) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.to_owned(),
    }
}

/// EventKind a hook is told of a call.
pub(super) struct Payload<'a> {
    pub(super) id: &'a str,
    pub(super) tool: &'a str,
    /// EventKind the model sent.
    pub(super) sent: &'a str,
    /// The arguments as they stand.
    pub(super) arguments: &'a Value,
}

impl Payload<'_> {
    /// The call in both of the documented names for its arguments: the text and what it says.
    fn proposed(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.tool,
            "arguments": self.arguments.to_string(),
            "args": self.arguments,
            "sent": self.sent,
        })
    }

    fn ended(&self, content: &str, outcome: Outcome) -> Value {
        let mut payload = self.proposed();
        payload["content"] = json!(content);
        payload["result"] = schema::parse(content).unwrap_or_else(|_| json!(content));
        payload["is_error"] = json!(outcome != Outcome::Ok);
        payload["outcome"] = json!(outcome);
        payload
    }

    /// The arguments in a modified payload: `args`, or `arguments` where that alone was changed. A payload with anything
    /// else in it is the arguments themselves.
    fn modified(&self, payload: Value) -> Result<Value, String> {
        const OWN: [&str; 5] = ["id", "name", "arguments", "args", "sent"];
        let Value::Object(mut fields) = payload else { return Err("its `payload` is no object".to_owned()) };
        if fields.keys().any(|key| !OWN.contains(&key.as_str())) {
            return Ok(Value::Object(fields));
        }
        let text = match fields.get("arguments") {
            Some(Value::String(text)) => schema::parse(text).ok(),
            Some(Value::Object(_)) => fields.get("arguments").cloned(),
            _ => None,
        };
        let text = text.filter(Value::is_object);
        match (fields.remove("args").filter(Value::is_object), text) {
            (Some(args), Some(text)) if args == *self.arguments => Ok(text),
            (Some(args), _) => Ok(args),
            (None, Some(text)) => Ok(text),
            (None, None) => Ok(Value::Object(fields)),
        }
    }
}

/// The answer in a modified payload: `result`, or `content` where that alone was changed, or the whole.
fn replaced(modified: Value, payload: &Value) -> Value {
    let Value::Object(mut fields) = modified else { return modified };
    let changed = |fields: &mut Map<String, Value>, name: &str| {
        fields.remove(name).filter(|value| payload.get(name) != Some(value))
    };
    let names_either = fields.contains_key("result") || fields.contains_key("content");
    let (result, content) = (changed(&mut fields, "result"), changed(&mut fields, "content"));
    match (result, content) {
        (Some(result), _) => result,
        (None, Some(Value::String(text))) => schema::parse(&text).unwrap_or(Value::String(text)),
        (None, Some(content)) => content,
        (None, None) if names_either => payload["result"].clone(),
        (None, None) => Value::Object(fields),
    }
}

/// Reads what a script said.
fn answer(text: &str) -> Result<Answer, String> {
    let mut fields = match schema::parse(text).map_err(|error| format!("its answer is no JSON: {error}"))? {
        Value::Null => return Ok(Answer::Pass),
        Value::Object(fields) => fields,
        _ => return Err("its answer is neither None nor a dict with `action`".to_owned()),
    };
    let action = fields.remove("action");
    match action.as_ref().and_then(Value::as_str) {
        Some("allow") => Ok(Answer::Allow),
        Some("block") => {
            let reason = fields.remove("reason");
            Ok(Answer::Block(clipped(reason.as_ref().and_then(Value::as_str).unwrap_or("no reason was given"))))
        }
        Some("modify") => {
            let payload = fields.remove("payload").ok_or("its answer modifies, and has no `payload`")?;
            Ok(Answer::Modify(payload))
        }
        Some("delegate") => Ok(Answer::Delegate(Value::Object(fields))),
        _ => Err(format!(
            "its `action` must be allow, block, modify or delegate, found {}",
            action.map_or_else(|| "none".to_owned(), |action| action.to_string().chars().take(80).collect())
        )),
    }
}

impl Pipeline {
    /// Tells the scripts that hear it of an event that is no call's. EventKind they make of its payload comes back.
    ///
    /// # Errors
    ///
    /// Why one of them blocks it.
    pub(super) async fn heard(
        self: &Arc<Self>,
        event: &HookPoint,
        mut payload: Value,
        memory: &Arc<Memory>,
    ) -> Result<Value, String> {
        for hook in self.hooks.scripted(memory) {
            let stated = Arc::new(payload);
            let applies = hook.applies(event, "", &stated).await;
            payload = Arc::unwrap_or_clone(stated);
            if !applies {
                continue;
            }
            // No call is under way that would tell of it: it leaves a record of its own.
            let call = ToolCall::new(event.to_string(), hook.name(), "");
            let mut ticket = self.unwatched(&call);
            ticket.found(&hook.hook.tool, &hook.ready.grant);
            ticket.program(hook.digest().unwrap_or_default(), 0);
            let usage = ticket.usage.clone();
            let mut around = Around::new(self, memory, &usage);
            let said = hook.ask(&mut around, event, &payload).await;
            ticket.log(around.log);
            let ended = match &said {
                Ok(Answer::Block(reason)) => Err(ToolError::new(Outcome::Denied, reason.clone())),
                Ok(_) => Ok(String::new()),
                Err(error) => Err(ToolError::new(Outcome::Failed, error.clone())),
            };
            let signed = ticket.close(call, ended);
            let name = hook.name();
            if signed.receipt.outcome == Outcome::Unlogged {
                return Err(format!("blocked by hook {name:?}, which cannot be signed for"));
            }
            match said {
                Ok(Answer::Pass | Answer::Allow) => {}
                Ok(Answer::Modify(modified)) => payload = modified,
                Ok(Answer::Block(reason)) => return Err(format!("blocked by hook {name:?}: {reason}")),
                Ok(Answer::Delegate(_)) => {
                    return Err(format!("blocked by hook {name:?}, which failed: only calls can be delegated"));
                }
                Err(error) => return Err(format!("blocked by hook {name:?}, which failed: {error}")),
            }
        }
        Ok(payload)
    }
}
