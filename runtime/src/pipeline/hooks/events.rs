//! Runs script hooks for the events of a run that are not calls. Each hook that runs leaves a record of its own.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::call::{HookAction, HookNote, ToolCall};
use crate::error::{Outcome, ToolError};
use crate::flow::Label;
use crate::pipeline::stage::begin_flow_with;
use crate::pipeline::state::{Memory, Pipeline};
use crate::tool::HookPoint;

use super::payload::Answer;
use super::script::{HookContext, ScriptHandler};

/// Runs the script hooks for an event of the run, and returns the payload with their changes and the hooks that changed it.
///
/// # Errors
///
/// The reason of the hook that blocks the event.
pub(crate) fn run_event<'a>(
    pipeline: &'a Arc<Pipeline>,
    event: &'a HookPoint,
    mut payload: Value,
    memory: &'a Arc<Memory>,
) -> BoxFuture<'a, Result<(Value, Vec<HookNote>), String>> {
    Box::pin(async move {
        let mut notes = Vec::new();
        for hook in pipeline.hooks.scripts(memory.hooks.iter()) {
            let shared = Arc::new(payload);
            let applies = hook.applies(event, None, &shared).await;
            payload = Arc::unwrap_or_clone(shared);
            if !applies {
                continue;
            }
            // There is no call that could record the hook.
            let call = ToolCall::new(event.to_string(), hook.name(), "");
            let mut recorder = pipeline.unwatched_recorder(call, memory);
            let (tool, prepared) = (&hook.definition.tool, &hook.prepared);
            let definition = recorder.is_logged().then(|| prepared.definition(tool));
            recorder.resolved(tool, &prepared.grant, &prepared.input, definition);
            recorder.set_program(hook.digest().unwrap_or_default(), 0);
            begin_flow_with(pipeline, (tool, &prepared.grant), (&memory.label(), &Label::default()), memory, &recorder);
            recorder.usage.flow.start();
            let usage = recorder.usage.clone();
            let handler = ScriptHandler::new(hook, HookContext::new(pipeline, memory, &usage));
            // The state of an interpreter is large.
            let answer = Box::pin(handler.handle(event, &payload)).await;
            recorder.log(&handler.into_log());
            // The model reads the payload of an event.
            let answer = match (answer, recorder.usage.flow.withholding()) {
                (Ok(Answer::Modify(_) | Answer::Block(_)), Some(rule)) => {
                    Err(format!("`{}` withholds its answer from the model", rule.pattern().as_str()))
                }
                (answer, _) => answer,
            };
            let (verdict, action) = match &answer {
                Ok(Answer::Pass | Answer::Allow) => ("pass", None),
                Ok(Answer::Modify(modified)) => ("modify", (*modified != payload).then_some(HookAction::ChangedEvent)),
                Ok(Answer::Block(_)) => ("block", Some(HookAction::Blocked)),
                Ok(Answer::Delegate(_)) | Err(_) => ("failed", Some(HookAction::Blocked)),
            };
            if action.is_some() {
                let digest = hook.digest().map(str::to_owned);
                recorder
                    .add_hook(HookNote::new(hook.name(), verdict).action(action).source(hook.path()).digest(digest));
            }
            let ended = match &answer {
                Ok(Answer::Block(reason)) => Err(ToolError::new(Outcome::Denied, reason.clone())),
                Ok(_) => Ok(String::new()),
                Err(error) => Err(ToolError::new(Outcome::Failed, error.clone())),
            };
            let recorded = recorder.close(ended).await;
            let name = hook.name();
            if recorded.receipt.outcome == Outcome::Unlogged {
                return Err(format!("blocked by hook {name:?}, which cannot be logged"));
            }
            match answer {
                Ok(Answer::Pass | Answer::Allow) => {}
                Ok(Answer::Modify(modified)) => {
                    payload = modified;
                    notes.extend(recorded.receipt.hooks);
                }
                Ok(Answer::Block(reason)) => return Err(format!("blocked by hook {name:?}: {reason}")),
                Ok(Answer::Delegate(_)) => {
                    return Err(format!("blocked by hook {name:?}, which failed: only calls can be delegated"));
                }
                Err(error) => return Err(format!("blocked by hook {name:?}, which failed: {error}")),
            }
        }
        Ok((payload, notes))
    })
}
