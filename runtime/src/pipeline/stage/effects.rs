//! Begin of effects that a call holds back until it ends: a rule that asks at the end opens a stage, in which the call and all calls
//! below it write.

use std::borrow::Cow;
use std::sync::Arc;

use crate::error::{Outcome, ToolError};
use crate::pipeline::prepared::ToolEntry;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Execution, HeldEffects, Pipeline};
use crate::policy::Rule;

/// Gives a call the effects that a call above it holds back.
pub(crate) fn join_effects(entry: ToolEntry<'_>, scope: &CallScope<'_>, recorder: &mut CallRecorder<'_>) {
    let above = scope.parent.and_then(|parent| parent.usage.whole().effects.get());
    // What is held back for the whole command stays so.
    if let Some(effects) = above.filter(|_| entry.prepared.grant.stage().is_none()) {
        let _ = recorder.usage.effects.set(effects.clone());
        recorder.name_for_stage(entry.tool, effects.stage.name());
        if scope.parent.is_some_and(|parent| parent.usage.holds_requests()) {
            recorder.usage.hold_requests();
        }
    }
}

/// Holds back the effects of a call, as a rule asks about them at its end.
///
/// # Errors
///
/// [`Outcome::Denied`] if there is no place for a stage, or none can be opened.
pub(super) async fn hold_effects(
    pipeline: &Pipeline,
    execution: &mut Execution<'_>,
    rule: Arc<Rule>,
    recorder: &mut CallRecorder<'_>,
) -> Result<(), ToolError> {
    let holds = rule.holds_requests();
    if recorder.usage.effects.get().is_some() {
        if holds {
            recorder.usage.hold_requests();
        }
        return Ok(());
    }
    if execution.grant.stage().is_some() {
        // All calls write into one stage, and nobody is asked at the end of this one.
        let why = "requests of this call must be held back, and that is not possible beside a stage for all calls";
        return if holds { Err(ToolError::new(Outcome::Denied, why)) } else { Ok(()) };
    }
    let (stages, name) = (pipeline.stages.clone(), recorder.invocation().to_owned());
    let opened = match stages {
        None => Err("the runtime has no place for stages".to_owned()),
        Some(stages) => {
            let open = move || HeldEffects::open(&stages, &name, rule).map_err(|error| error.to_string());
            let opened = tokio::task::spawn_blocking(open).await;
            opened.unwrap_or_else(|_| Err("the stage could not be opened".to_owned()))
        }
    };
    let held = opened.map_err(|why| {
        recorder.log(&format!("stage: {why}\n"));
        ToolError::new(Outcome::Denied, "what this call writes must be held back, and that is not possible here")
    })?;
    let _ = recorder.usage.effects.set(held.effects().clone());
    if holds {
        recorder.usage.hold_requests();
    }
    recorder.name_for_stage(execution.tool, held.stage().name());
    execution.grant = Cow::Owned(execution.prepared.grant_within(Some(held.effects())).into_owned());
    execution.held = Some(Box::new(held));
    Ok(())
}
