//! Validates the arguments of a call: by the schema and value rules, by the operator's rules, and by the tool's own check.
//! Everything is validated once before the hooks, and once more after a hook has changed the arguments.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use toolcrib_foundation::text::{MAX_MESSAGE, prefix};

use crate::call::{Behavior, Decision, Reason, ToolCall};
use crate::error::{Outcome, ToolError};
use crate::observe::EventKind;
use crate::pipeline::prepared::compute::at_once;
use crate::pipeline::prepared::{PreparedTool, ToolEntry, script_of};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Execution, InvocationFields, Pipeline, RichRunner, Runner, payload};
use crate::policy::{Grant, RuleDecision, visible_arguments};
use crate::sandbox::Program;
use crate::schema::CheckedArguments;
use crate::tool::{Body, ScriptLanguage, SkillFile};

use super::effects::hold_effects;

/// Validates the arguments that the model sent, and loads the code that runs the call. Also returns the judgement of the
/// operator's rules: nothing of the tool runs for a denied call, but a hook may still change its arguments.
///
/// # Errors
///
/// [`Outcome::BadArguments`] for wrong arguments, [`Outcome::BadComponent`] for code that cannot run, and
/// [`Outcome::Deadline`] if either takes longer than the call may.
pub(crate) async fn validate<'p>(
    pipeline: &'p Arc<Pipeline>,
    (entry, grant): (ToolEntry<'p>, Cow<'p, Arc<Grant>>),
    call: &ToolCall,
    scope: &CallScope<'p>,
    recorder: &mut CallRecorder<'p>,
) -> Result<(Execution<'p>, CheckedArguments, RuleDecision), ToolError> {
    let ToolEntry { tool, prepared, .. } = entry;
    let checked = prepared.check(&call.arguments, recorder).await?;
    recorder.set_arguments(&checked);
    let runner = runner(pipeline, entry, (call, &checked), scope, recorder).await?;
    let mut execution = Execution { tool, prepared, grant, held: None, runner };
    let judged = judge(pipeline, &mut execution, &checked, recorder).await?;
    if !matches!(judged, RuleDecision::Deny(_)) {
        check_by_tool(pipeline, &execution, &checked, scope, recorder).await?;
    }
    recorder.emit(EventKind::Validated);
    if recorder.shows_arguments() {
        recorder.set_observable(prepared.input.mask_sensitive(&checked.value));
    }
    Ok((execution, checked, judged))
}

/// Validates the arguments that the hooks left, and refuses a call that a rule denies. The first judgement holds for
/// unchanged arguments: rules look at the tool, its grant and the arguments alone.
///
/// # Errors
///
/// [`Outcome::Denied`], or the error of a check.
pub(crate) async fn revalidate(
    pipeline: &Arc<Pipeline>,
    execution: &mut Execution<'_>,
    checked: &CheckedArguments,
    judged: RuleDecision,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<RuleDecision, ToolError> {
    let changed = recorder.is_mutated();
    execution.prepared.recheck(checked, changed, recorder).await?;
    let judged = if changed { judge(pipeline, execution, checked, recorder).await? } else { judged };
    if let RuleDecision::Deny(rule) = &judged {
        recorder.decide(Decision::new(Behavior::Deny, Reason::Rule, rule.to_string()));
        return Err(ToolError::new(Outcome::Denied, "denied by an operator rule"));
    }
    if changed {
        check_by_tool(pipeline, execution, checked, scope, recorder).await?;
    }
    Ok(judged)
}

/// Loads the code that runs a call.
async fn runner<'p>(
    pipeline: &'p Arc<Pipeline>,
    entry: ToolEntry<'p>,
    (call, checked): (&ToolCall, &CheckedArguments),
    scope: &CallScope<'p>,
    recorder: &mut CallRecorder<'p>,
) -> Result<Runner<'p>, ToolError> {
    let programs = &pipeline.programs;
    Ok(match &entry.tool.body {
        Body::Command { .. } => Runner::Command(programs.program_in_time(entry, recorder).await?),
        Body::Typed(typed) => Runner::Typed(programs.program_in_time(entry, recorder).await?, typed),
        Body::Script(script) => {
            Runner::Script(Box::pin(pipeline.interpreters.interpreter(entry.prepared)).await?, script)
        }
        Body::Remote(remote) => Runner::Remote(remote),
        Body::Skill(skill) => Runner::Skill(skill),
        Body::SkillScripts(skill) => {
            // A call waits here for the compilation of the interpreter, which is not its own time.
            Box::pin(prepare_script(pipeline, entry.prepared, script_of(skill, &checked.value)?)).await?;
            Runner::SkillScripts(skill)
        }
        Body::Builtin(builtin) => Runner::Host(*builtin),
        Body::Rich(rich) => {
            let program = programs.program_in_time(entry, recorder).await?;
            let invocation = InvocationFields::new(&pipeline.contexts, entry.tool, call, scope, recorder);
            Runner::Rich(Box::new(RichRunner { program, rich, invocation }))
        }
        Body::Interpreter(_) | Body::Absent => {
            return Err(ToolError::new(Outcome::BadComponent, "the tool has no program"));
        }
    })
}

/// Compiles the interpreter for a script of a skill.
async fn prepare_script(
    pipeline: &Pipeline,
    prepared: &PreparedTool,
    (file, language): (&SkillFile, ScriptLanguage),
) -> Result<(), ToolError> {
    match language {
        ScriptLanguage::Starlark => pipeline.interpreters.interpreter(prepared).await.map(|_| ()),
        _ => pipeline.skills.program(&pipeline.programs, prepared, (file, language)).await.map(|_| ()),
    }
}

/// Judges a call by the operator's rules, on a blocking thread for large arguments. A rule that asks at the end of the call opens
/// its stage.
async fn judge(
    pipeline: &Pipeline,
    execution: &mut Execution<'_>,
    checked: &CheckedArguments,
    recorder: &mut CallRecorder<'_>,
) -> Result<RuleDecision, ToolError> {
    let (rules, tool, prepared) = (&pipeline.rules, execution.tool, execution.prepared);
    if let Body::Command { command_line: Some(line), .. } = &tool.body {
        line.check_stdin(&checked.value).map_err(invalid)?;
    }
    let value = visible_arguments(tool, &checked.value).map_err(invalid)?;
    if rules.all_at_end().next().is_some() {
        Box::pin(hold_if_asked(pipeline, execution, (&value, checked.text.len()), recorder)).await?;
    }
    let grant = &execution.grant;
    if let Some(judged) = at_once(checked.text.len(), || rules.decide(tool, grant, &value)) {
        return Ok(judged);
    }
    let (rules, tool, grant) = (rules.clone(), tool.clone(), grant.as_ref().clone());
    Box::pin(prepared.compute_in_time(recorder, move || rules.decide(&tool, &grant, &value))).await
}

/// Holds back the effects of a call if a rule asks about them at its end.
async fn hold_if_asked(
    pipeline: &Pipeline,
    execution: &mut Execution<'_>,
    (value, size): (&Arc<Value>, usize),
    recorder: &mut CallRecorder<'_>,
) -> Result<(), ToolError> {
    let (rules, tool) = (&pipeline.rules, execution.tool);
    let asking = match at_once(size, || rules.at_end(tool, &execution.grant, value).cloned()) {
        Some(asking) => asking,
        None => {
            let (rules, tool) = (rules.clone(), tool.clone());
            let (grant, value) = (execution.grant.as_ref().clone(), value.clone());
            let find = move || rules.at_end(&tool, &grant, &value).cloned();
            execution.prepared.compute_in_time(recorder, find).await?
        }
    };
    match asking {
        Some(rule) => hold_effects(pipeline, execution, rule, recorder).await,
        None => Ok(()),
    }
}

/// Runs the tool's own check of the arguments, without any grant.
///
/// # Errors
///
/// [`Outcome::BadArguments`] with the tool's message, or the error that stopped the check.
async fn check_by_tool(
    pipeline: &Pipeline,
    execution: &Execution<'_>,
    checked: &CheckedArguments,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<(), ToolError> {
    match execution.checker().filter(|program| program.checks()) {
        Some(program) => Box::pin(run_check(pipeline, execution, program, checked, scope, recorder)).await,
        None => Ok(()),
    }
}

async fn run_check(
    pipeline: &Pipeline,
    execution: &Execution<'_>,
    program: &Program,
    checked: &CheckedArguments,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<(), ToolError> {
    let Execution { tool, prepared, .. } = execution;
    let since = Instant::now();
    let limits = recorder.remaining(&prepared.limits)?;
    let permits = pipeline.concurrency.acquire(prepared, scope.memory, &limits, scope.depth).await?;
    let ended = match execution.rich() {
        None => pipeline.sandbox.check(program, &checked.text, &limits, &recorder.usage).await,
        Some(RichRunner { rich, invocation, .. }) => {
            let prepared = scope.memory.prepared(&pipeline.contexts.preparation_key(tool, rich, program));
            if prepared.is_some() {
                // Another call has prepared it, with what it had read.
                recorder.usage.flow.join_shared();
            }
            let invocation = invocation.with(rich, payload(tool, checked), prepared.as_deref());
            pipeline.sandbox.check_rich(program, invocation, &limits, &recorder.usage).await
        }
    };
    let ended = ended.and_then(|ended| ended.map_err(invalid));
    drop(permits);
    // The check and the run share one deadline.
    recorder.budget.spend(since.elapsed());
    ended
}

/// Returns the error for arguments that the tool's own check rejects.
fn invalid(why: String) -> ToolError {
    let why = prefix(&why, MAX_MESSAGE);
    ToolError::new(Outcome::BadArguments, format!("invalid values: {why}"))
}
