//! Runs the hooks of a call in order, each once. A hook that fails blocks the call, and every change of the arguments is
//! recorded and checked.

mod events;
mod payload;
mod script;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::call::{Behavior, Decision, HookAction, HookNote, Mutation, Reason, ToolCall, clipped};
use crate::error::{Outcome, ToolError};
use crate::hook::{FinishedCall, Hook, HookPhase, Modification, ProposedCall, Review, Verdict};
use crate::observe::{EventKind, HookEvent};
use crate::pipeline::prepared::ToolEntry;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::stage::quoted;
use crate::pipeline::state::{CallScope, ChainedHook, Memory, Pipeline};
use crate::policy::{Command, visible_arguments};
use crate::sandbox::Usage;
use crate::schema::CheckedArguments;
use crate::tool::{HookPoint, Tool};

use script::{HookContext, ScriptHandler};

pub(crate) use events::run_event;

/// Maximum time of all script hooks together, before a call and again after it.
const MAX_TIME: Duration = Duration::from_secs(30);
/// Maximum number of changed arguments that a record names for one hook.
const MAX_NAMED_FIELDS: usize = 64;

/// Positions of hooks in a call, as receipts name them.
const BEFORE: &str = "before";
const AFTER: &str = "after";

/// Outcome of the hooks for a call that may go on.
#[derive(Default)]
pub(crate) struct HookOutcome<'a> {
    /// Name of the hook that allowed the call without a question.
    pub(crate) allowed_by: Option<&'a str>,
    /// Task of another agent that takes over the call.
    pub(crate) delegated: Option<Value>,
}

/// Handler of a hook for one call.
enum Handler<'a> {
    Embedder(&'a dyn Hook),
    Script(ScriptHandler<'a>),
}

impl<'a> Handler<'a> {
    fn new(hook: &'a ChainedHook, context: HookContext<'a>) -> Self {
        match hook {
            ChainedHook::Embedder(hook) => Self::Embedder(hook.as_ref()),
            ChainedHook::Script(script) => Self::Script(ScriptHandler::new(script, context)),
        }
    }

    fn hook(&self) -> &(dyn Hook + 'a) {
        match self {
            Self::Embedder(hook) => *hook,
            Self::Script(handler) => handler,
        }
    }

    /// Returns the text that a script wrote for people.
    fn into_log(self) -> String {
        match self {
            Self::Embedder(_) => String::new(),
            Self::Script(handler) => handler.into_log(),
        }
    }
}

/// Returns `true` if a hook judges calls of a tool with these arguments.
async fn applies(hook: &ChainedHook, phase: HookPhase, tool: &Tool, arguments: &Arc<Value>) -> bool {
    match (hook, phase) {
        (ChainedHook::Embedder(hook), phase) => hook.applies(tool, phase),
        (ChainedHook::Script(script), phase) => {
            let event = match phase {
                HookPhase::Before => HookPoint::ToolPre,
                HookPhase::After => HookPoint::ToolPost,
            };
            match visible_arguments(tool, arguments) {
                Ok(visible) => script.applies(&event, Some(tool), &visible).await,
                // Arguments that do not fit the command line meet every condition.
                Err(_) => script.is_for(&event, Some(tool)),
            }
        }
    }
}

/// Runs the hooks before a call. They can change its arguments.
///
/// # Errors
///
/// [`Outcome::Denied`] if a hook blocks the call or fails.
pub(crate) async fn before<'a>(
    pipeline: &'a Arc<Pipeline>,
    entry: ToolEntry<'a>,
    call: &ToolCall,
    checked: &mut CheckedArguments,
    scope: &CallScope<'a>,
    recorder: &mut CallRecorder<'_>,
) -> Result<HookOutcome<'a>, ToolError> {
    match pipeline.hooks.all(scope.memory.hooks.iter()) {
        hooks if hooks.is_empty() => Ok(HookOutcome::default()),
        hooks => Box::pin(run_before(pipeline, hooks, entry, call, checked, scope, recorder)).await,
    }
}

async fn run_before<'a>(
    pipeline: &'a Arc<Pipeline>,
    hooks: Vec<&'a ChainedHook>,
    entry: ToolEntry<'a>,
    call: &ToolCall,
    checked: &mut CheckedArguments,
    scope: &CallScope<'a>,
    recorder: &mut CallRecorder<'_>,
) -> Result<HookOutcome<'a>, ToolError> {
    let tool = entry.tool;
    let mut outcome = HookOutcome::default();
    let since = Instant::now();
    for hook in hooks {
        if !applies(hook, HookPhase::Before, tool, &checked.value).await {
            continue;
        }
        let context = HookContext::of_call(pipeline, scope, since + MAX_TIME, &recorder.usage);
        // It can keep what it sees.
        recorder.usage.flow.leave();
        let handler = Handler::new(hook, context);
        let proposed = ProposedCall {
            invocation: recorder.invocation(),
            call_id: &call.id,
            tool,
            model_input: &call.arguments,
            arguments: &checked.value,
            owner: scope.memory.owner().map(AsRef::as_ref),
        };
        let verdict = handler.hook().before(proposed).await;
        let log = handler.into_log();
        recorder.log(&log);
        let name = hook.name();
        let (word, why) = match &verdict {
            Ok(Verdict::Pass) => ("pass", None),
            Ok(Verdict::Allow) => ("allow", None),
            Ok(Verdict::Block(reason)) => ("block", Some(reason.as_str())),
            Ok(Verdict::Modify(change)) => ("modify", change.reason.as_deref()),
            Ok(Verdict::Delegate(_)) => ("delegate", None),
            Err(error) => ("failed", Some(error.message())),
        };
        recorder.emit(EventKind::HookRan(HookEvent {
            hook: name,
            phase: HookPhase::Before,
            verdict: word,
            reason: why,
        }));
        let action = match verdict {
            Ok(Verdict::Pass) => Ok(None),
            // A script can be untrusted: only an embedder's hook replaces the answer of a person.
            Ok(Verdict::Allow) => {
                outcome.allowed_by = hook.script().is_none().then_some(name);
                Ok(outcome.allowed_by.map(|_| HookAction::Allowed))
            }
            Ok(Verdict::Modify(change)) => {
                // Earlier verdicts were about other arguments.
                outcome = HookOutcome::default();
                let changed = modify(name, change, entry, checked, recorder).await;
                changed.map(|changed| changed.then_some(HookAction::ChangedArguments))
            }
            Ok(Verdict::Delegate(task)) => {
                outcome.delegated = Some(task);
                Ok(Some(HookAction::Delegated))
            }
            Ok(Verdict::Block(reason)) => {
                recorder.decide(Decision::new(Behavior::Deny, Reason::Hook, name));
                Err(refusal(format!("tool blocked: blocked by hook {name:?}: {reason}")))
            }
            Err(error) => {
                recorder.decide(Decision::new(Behavior::Deny, Reason::HookFailed, name));
                Err(refusal(format!("tool blocked: blocked by hook {name:?}, which failed: {error}")))
            }
        };
        record(recorder, hook, BEFORE, word, &action);
        action?;
    }
    // Hooks spend the time of the call.
    recorder.budget.spend(since.elapsed());
    Ok(outcome)
}

/// Runs the hooks after a call. They can replace or withhold its answer.
///
/// # Errors
///
/// The error of the call, or [`Outcome::Denied`] if a hook withholds the answer or fails.
pub(crate) async fn after(
    pipeline: &Arc<Pipeline>,
    (tool, call): (&Tool, &ToolCall),
    arguments: &Arc<Value>,
    answer: Result<String, ToolError>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<String, ToolError> {
    match pipeline.hooks.all(scope.memory.hooks.iter()) {
        hooks if hooks.is_empty() => answer,
        hooks => Box::pin(run_after(pipeline, hooks, (tool, call), arguments, answer, scope, recorder)).await,
    }
}

async fn run_after(
    pipeline: &Arc<Pipeline>,
    hooks: Vec<&ChainedHook>,
    (tool, call): (&Tool, &ToolCall),
    arguments: &Arc<Value>,
    mut answer: Result<String, ToolError>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<String, ToolError> {
    let until = Instant::now() + MAX_TIME;
    for hook in hooks {
        if !applies(hook, HookPhase::After, tool, arguments).await {
            continue;
        }
        recorder.usage.flow.leave();
        let handler = Handler::new(hook, HookContext::of_call(pipeline, scope, until, &recorder.usage));
        let finished = FinishedCall {
            invocation: recorder.invocation(),
            call_id: &call.id,
            tool,
            model_input: &call.arguments,
            arguments,
            outcome: answer.as_ref().map_or_else(|error| error.outcome, |_| Outcome::Ok),
            answer: answer.as_deref(),
        };
        let review = handler.hook().after(finished).await;
        let log = handler.into_log();
        recorder.log(&log);
        let name = hook.name();
        let (word, why) = match &review {
            Ok(Review::Pass) => ("pass", None),
            Ok(Review::Block(reason)) => ("block", Some(reason.as_str())),
            Ok(Review::Replace(_)) => ("replace", None),
            Err(error) => ("failed", Some(error.message())),
        };
        recorder.emit(EventKind::HookRan(HookEvent {
            hook: name,
            phase: HookPhase::After,
            verdict: word,
            reason: why,
        }));
        let action = match (review, &mut answer) {
            (Ok(Review::Pass), _) => Ok(None),
            (Ok(Review::Replace(value)), Ok(answer)) => {
                recorder.withhold_output();
                let before = std::mem::replace(answer, replacement(hook, &value));
                Ok((before != *answer).then_some(HookAction::ChangedResult))
            }
            // A failed call remains one.
            (Ok(Review::Replace(value)), Err(error)) => {
                let before = error.content();
                error.json = Some(replacement(hook, &value));
                Ok((before != error.content()).then_some(HookAction::ChangedResult))
            }
            (Ok(Review::Block(reason)), _) => {
                recorder.withhold_output();
                Err(refusal(format!("tool result blocked: blocked by hook {name:?}: {reason}")))
            }
            (Err(error), _) => {
                recorder.withhold_output();
                let why = format!("tool result blocked: blocked by hook {name:?}, which failed: {error}");
                Err(refusal(why))
            }
        };
        record(recorder, hook, AFTER, word, &action);
        action?;
    }
    answer
}

/// Runs the hooks before a command of a script. They can refuse the command but not change it.
///
/// # Errors
///
/// The name of the hook that refuses the command, and its reason.
pub(crate) async fn judge_command(
    pipeline: &Arc<Pipeline>,
    tool: &Tool,
    command: &Command,
    memory: &Arc<Memory>,
    usage: &Arc<Usage>,
) -> Result<(), String> {
    let arguments = &command.arguments;
    let sent = arguments.to_string();
    for hook in pipeline.hooks.all(memory.hooks.iter()) {
        let applies = match hook {
            ChainedHook::Embedder(hook) => hook.applies(tool, HookPhase::Before),
            ChainedHook::Script(script) => script.applies_to_command(tool, command).await,
        };
        if !applies {
            continue;
        }
        // The script that runs the command holds the place.
        let context = HookContext::new(pipeline, memory, usage).of_command();
        let handler = Handler::new(hook, context);
        let (invocation, call_id) = ("", "");
        let owner = memory.owner().map(AsRef::as_ref);
        let proposed = ProposedCall { invocation, call_id, tool, model_input: &sent, arguments, owner };
        let name = hook.name();
        let (word, why) = match handler.hook().before(proposed).await {
            Ok(Verdict::Pass | Verdict::Allow) => continue,
            Ok(Verdict::Block(reason)) => ("block", format!(": {reason}")),
            Ok(Verdict::Modify(_)) => ("modify", ", which tried to change the call".to_owned()),
            Ok(Verdict::Delegate(_)) => ("delegate", ", which tried to change the call".to_owned()),
            Err(error) => ("failed", format!(", which failed: {error}")),
        };
        usage.record_hook(note(hook, BEFORE, word, Some(HookAction::Blocked)));
        return Err(format!("blocked by hook {name:?}{why}"));
    }
    Ok(())
}

/// Replaces a call's arguments by a hook's arguments. Returns `true` if they differ.
async fn modify(
    hook: &str,
    change: Modification,
    entry: ToolEntry<'_>,
    checked: &mut CheckedArguments,
    recorder: &mut CallRecorder<'_>,
) -> Result<bool, ToolError> {
    let Modification { arguments, mutation_source, reason } = change;
    let deny = |recorder: &mut CallRecorder<'_>, why: String| {
        recorder.decide(Decision::new(Behavior::Deny, Reason::HookFailed, hook));
        Err(refusal(format!("tool blocked: blocked by hook {hook:?}, which failed: {why}")))
    };
    let changed = CheckedArguments { text: arguments.to_string(), value: Arc::new(arguments) };
    let has_source = match entry.prepared.check_changed(&changed, recorder).await {
        Ok(could_be_sent) => mutation_source.is_some() || could_be_sent,
        Err(error) => return deny(recorder, format!("its arguments are wrong: {}", error.message)),
    };
    if !has_source {
        return deny(recorder, "it sets a field reserved for the host and names no source for it".to_owned());
    }
    let fields = changed_fields(&checked.value, &changed.value);
    if fields.is_empty() {
        return Ok(false);
    }
    recorder.add_mutation(Mutation { by: hook.to_owned(), mutation_source, fields, reason });
    *checked = changed;
    recorder.set_arguments(checked);
    Ok(true)
}

/// Returns the names of the arguments that were added, changed or removed, as far as a record holds them.
fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    let names =
        |value: &Value| value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let mut fields = names(before);
    fields.extend(names(after).into_iter().filter(|name| before.get(name).is_none()));
    fields.retain(|name| before.get(name) != after.get(name));
    fields.truncate(MAX_NAMED_FIELDS);
    fields.iter().map(|name| clipped(name)).collect()
}

/// Records the verdict of a hook and its effect; an error means that it blocks. A script is recorded also if it passes: it
/// has run.
fn record(
    recorder: &mut CallRecorder<'_>,
    hook: &ChainedHook,
    point: &'static str,
    verdict: &'static str,
    action: &Result<Option<HookAction>, ToolError>,
) {
    if verdict != "pass" || hook.script().is_some() {
        recorder.add_hook(note(hook, point, verdict, action.as_ref().map_or(Some(HookAction::Blocked), |it| *it)));
    }
}

/// Creates the note of a hook for the receipt.
fn note(hook: &ChainedHook, point: &'static str, verdict: &'static str, action: Option<HookAction>) -> HookNote {
    let note = HookNote::new(hook.name(), verdict).point(point).action(action);
    match hook.script() {
        Some(script) => note.source(script.path()).digest(script.digest().map(str::to_owned)),
        None => note,
    }
}

/// Returns a replaced answer. No script speaks for the host.
fn replacement(hook: &ChainedHook, value: &Value) -> String {
    match hook {
        ChainedHook::Embedder(_) => value.to_string(),
        ChainedHook::Script(_) => quoted(value.to_string()),
    }
}

fn refusal(message: String) -> ToolError {
    ToolError::new(Outcome::Denied, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_names_a_bounded_number_of_changed_arguments() {
        let changed = changed_fields(&json!({"a": 1, "b": 2, "c": 3}), &json!({"a": 1, "b": 3, "d": 4}));
        assert_eq!(changed, ["b", "c", "d"]);
        let many: serde_json::Map<_, _> = (0..1000).map(|n| (format!("{n}{}", "x".repeat(1000)), json!(n))).collect();
        let named = changed_fields(&json!({}), &Value::Object(many));
        assert_eq!(named.len(), MAX_NAMED_FIELDS);
        assert!(named.iter().all(|name| name.chars().count() <= 256));
    }
}
