//! Running scripts: a tool's, with the contract of a command's answer, and a hook's.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

use crate::delegate::Task;
use crate::error::{Error, Outcome, ToolError};
use crate::observe::EventKind;
use crate::sandbox::{
    Act, Entry, Interpreter, Invocation, Provided, Said, ScriptText, Services as Answers, Usage, Wrong,
};
use crate::source::{Diagnostic, Severity};
use crate::tool::{Body, Limits, Script};

use super::ready::Ready;
use super::run::{Given, Work};
use super::services::Desk;
use super::ticket::Ticket;
use super::{Context, Memory, Pipeline, Scripted, answer, contract, secret, unless_cancelled};

/// A hook's script that is asked.
pub(super) struct Asked<'a> {
    pub(super) name: &'a str,
    pub(super) script: &'a Script,
    pub(super) ready: &'a Ready,
    pub(super) memory: &'a Arc<Memory>,
    /// EventKind it does is counted and told with this.
    pub(super) usage: &'a Arc<Usage>,
    /// How deep the call is that it is asked about.
    pub(super) depth: u32,
    /// When it has to have answered.
    pub(super) until: Instant,
    /// Whether whoever asks holds a slot already.
    pub(super) within_slot: bool,
}

/// EventKind it said, and what it wrote for people.
pub(super) struct Answered {
    /// `None` where its condition does not hold; else the JSON of what it returned, or why there is none.
    pub(super) answer: Result<Option<String>, String>,
    pub(super) log: String,
}

impl Pipeline {
    /// Runs a tool's script. The inner result is the script's own.
    pub(super) async fn script(
        self: &Arc<Self>,
        work: &Work<'_>,
        (interpreter, script): (&Interpreter, &Script),
        given: Given<'_>,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<Result<Option<String>, ToolError>, ToolError> {
        let Given { checked, credentials, limits } = given;
        let name = &work.tool.name;
        let desk = Desk::of_tool(self, work.tool, work.ready, context.memory, limits, &ticket.usage).at(context.depth);
        let services: Arc<dyn Answers> = Arc::new(desk);
        let (grant, provided) = (&work.ready.grant, Provided::default());
        let call = Invocation { argv: &[], stdin: Bytes::new(), grant, credentials, limits, provided };
        let text = ScriptText { name, source: &script.source };
        let act = Act::Run { arguments: &checked.text };
        let said = self.sandbox.interpret(interpreter, text, act, call, Some(services), &ticket.usage);
        let Said { answer, stderr } = unless_cancelled(context.turn, said).await?;
        let mut log = ticket.text(stderr);
        if let Ok(Err(wrong)) = &answer {
            log.push_str(&placed(wrong, script, &work.tool.origin.path));
        }
        ticket.log(log);
        secret::refuse_leak(ticket)?;
        // EventKind fails right after a request failed, fails for that reason.
        let answer = answer.map_err(|error| ticket.usage.ledger().blame(error))?;
        let bytes = answer.as_ref().map_or(0, |answer| answer.as_ref().map_or(0, String::len));
        ticket.tell(EventKind::Progress { bytes: bytes as u64 });
        if let Some(turn) = context.turn {
            turn.spend(bytes)?;
        }
        // A script cannot go on after a refusal: it ends for that reason.
        let refused = answer.is_err() && !ticket.usage.refusals().is_empty();
        Ok(contract::script_answer(answer).map_err(|error| match refused {
            true => ToolError { outcome: Outcome::Denied, ..error },
            false => error,
        }))
    }

    /// Asks a hook's script, when there is a slot.
    pub(super) async fn ask_script(self: &Arc<Self>, asked: Asked<'_>, act: Act<'_>) -> Answered {
        let mut log = Vec::new();
        let answer = self.asked(asked, act, &mut log).await.map_err(|error| error.message);
        Answered { answer, log: String::from_utf8_lossy(&log).into_owned() }
    }

    async fn asked(
        self: &Arc<Self>,
        asked: Asked<'_>,
        act: Act<'_>,
        log: &mut Vec<u8>,
    ) -> Result<Option<String>, ToolError> {
        let Asked { name, script, ready, memory, usage, depth, until, within_slot } = asked;
        let interpreter = self.interpreter(ready).await?;
        let left = until.saturating_duration_since(Instant::now());
        let limits = &Limits { deadline: ready.limits.deadline.min(left), ..ready.limits };
        let slots = match within_slot {
            true => None,
            false => Some(self.slots(ready, limits, depth).await?),
        };
        let usage = Usage::within(usage);
        let services: Arc<dyn Answers> = Arc::new(Desk::of_hook(self, ready, memory, limits, &usage).at(depth));
        let (grant, provided) = (&ready.grant, Provided::default());
        let call = Invocation { argv: &[], stdin: Bytes::new(), grant, credentials: None, limits, provided };
        let text = ScriptText { name, source: &script.source };
        let Said { answer, stderr } =
            self.sandbox.interpret(&interpreter, text, act, call, Some(services), &usage).await;
        drop(slots);
        *log = stderr;
        answer?.map_err(|wrong| ToolError::new(Outcome::Failed, wrong.message))
    }

    /// Hands a call over to another agent, as a hook said.
    pub(super) async fn delegated(
        &self,
        task: Value,
        ready: &Ready,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<String, ToolError> {
        let failed = |why: String| ToolError::new(Outcome::Failed, format!("the call was delegated: {why}"));
        let memory = context.memory;
        let task = Task::read(task, context.depth + 1, &memory.agents).map_err(failed)?;
        let delegate =
            self.delegate.as_ref().ok_or_else(|| failed("no agent is configured for delegation".to_owned()))?;
        if let Some(turn) = context.turn {
            turn.come().await?;
        }
        ticket.usage.delegated.fetch_add(1, Relaxed);
        let left = ticket.left_of(&ready.limits)?.deadline;
        let said = tokio::time::timeout(left, delegate.delegate(task));
        let said = unless_cancelled(context.turn, said).await?;
        let late = |_| ToolError::new(Outcome::Deadline, "the agent to which the call was delegated timed out");
        said.map_err(late)?.map(|said| answer::quoted(said.to_string())).map_err(failed)
    }
}

impl Pipeline {
    /// Everything that is wrong with scripts and can be known without running them.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the interpreter cannot run.
    pub(crate) async fn check_scripts(&self) -> Result<Vec<Diagnostic>, Error> {
        let tools = self.registry.tools().iter().zip(&self.ready).map(|(tool, ready)| (tool, ready, Entry::Run, None));
        let hooks = self
            .hooks
            .of_sources()
            .map(|Scripted { hook, ready }| (&hook.tool, ready, Entry::Handle, hook.when.expression.as_deref()));
        let mut problems = Vec::new();
        for (tool, ready, entry, when) in tools.chain(hooks) {
            let Body::Script(script) = &tool.body else { continue };
            let path = &tool.origin.path;
            let broken = |reason: String| Error::Component { path: path.to_path_buf(), reason };
            let interpreter = self.interpreter(ready).await.map_err(|error| broken(error.message))?;
            let text = ScriptText { name: &tool.name, source: &script.source };
            let limits = Limits::default();
            let wrong = self.sandbox.check_script(&interpreter, text, entry, when, &limits).await;
            let wrong = wrong.unwrap_or_else(|error| vec![Wrong::anywhere(error.message)]);
            problems.extend(wrong.into_iter().map(|wrong| Diagnostic {
                severity: Severity::Error,
                path: path.to_path_buf(),
                place: wrong.place().and_then(|place| script.in_file(place)),
                message: told(&tool.name, entry, &wrong, script),
            }));
        }
        Ok(problems)
    }
}

/// EventKind is wrong, with the tool or hook, and the place in the script where there is none in the file. The format's own texts
/// name the script themselves.
fn told(name: &str, entry: Entry, wrong: &Wrong, script: &Script) -> String {
    let whose = if entry == Entry::Run { "tool" } else { "hook" };
    let begins = format!("{whose} script {name:?}");
    match wrong.place() {
        _ if wrong.message.starts_with(&begins) => wrong.message.clone(),
        Some(place) if script.place.is_none() => {
            format!("{begins}: line {}, column {}: {}", place.line, place.column, wrong.message)
        }
        _ => format!("{begins}: {}", wrong.message),
    }
}

/// Where in its file a script went wrong, for people.
fn placed(wrong: &Wrong, script: &Script, file: &std::path::Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    match wrong.place().map(|place| script.in_file(place).map_or((place, " of the script"), |place| (place, ""))) {
        Some((place, whose)) => format!("{name}:{}:{}{whose}: {}\n", place.line, place.column, wrong.message),
        None => format!("{name}: {}\n", wrong.message),
    }
}
