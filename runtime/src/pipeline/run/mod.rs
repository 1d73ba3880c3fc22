//! Runs a call in the sandbox, with one file for each kind of runner. The common end of all runs is in
//! `epilogue`.

mod callable;
mod code;
mod command;
mod delegate;
mod epilogue;
mod host;
mod parts;
mod remote;
mod rich;
mod script;
mod script_check;
mod skill;
mod skill_script;
mod typed;
mod wasi_extras;
mod worker;

use std::sync::Arc;
use std::time::Instant;

use crate::error::ToolError;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::stage::Scheduled;
use crate::pipeline::state::{CallScope, Execution, Pipeline, Runner};
use crate::policy::Credentials;
use crate::schema::CheckedArguments;
use crate::tool::{Builtin, Limits};

pub(crate) use delegate::delegate;
pub(crate) use script_check::check_scripts;

/// Answer of a tool: its line, `None` if it wrote none, or its own error.
type Answer = Result<Option<String>, ToolError>;

/// Input of a run.
struct RunInput<'a> {
    checked: &'a CheckedArguments,
    credentials: Option<&'a Arc<Credentials>>,
    limits: &'a Limits,
}

pub(crate) use callable::stub_language;
pub(crate) use worker::run_at_worker;

/// End of a run.
pub(crate) enum Finished {
    /// Answer of a tool, which is mapped.
    Tool(Answer),
    /// Answer of the host, which is final.
    Host(Result<String, ToolError>),
}

/// Runs a scheduled call. Only the kind that is used most is a part of the call's future; the others have a place of their own, so
/// that each of its moves takes less.
///
/// # Errors
///
/// The error that stopped the tool.
pub(crate) async fn run(
    pipeline: &Arc<Pipeline>,
    execution: &Execution<'_>,
    (checked, credentials): (&CheckedArguments, Option<&Arc<Credentials>>),
    Scheduled { limits, permit, .. }: Scheduled<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Finished, ToolError> {
    let input = RunInput { checked, credentials, limits: &limits };
    let answer = match &execution.runner {
        Runner::Host(Builtin::RunCode) => {
            // The calls of a program take places of their own.
            drop(permit);
            let run = code::run(pipeline, execution.prepared, &checked.value, limits, scope, recorder);
            return Ok(Finished::Host(Box::pin(run).await));
        }
        Runner::Host(builtin) => {
            // A tool of the host can wait for long, and needs no sandbox.
            drop(permit);
            let answer = host::run(pipeline, *builtin, &checked.value, scope, recorder).await;
            // Another call may have ended meanwhile.
            recorder.usage.flow.join_seen();
            recorder.budget.set_end(Instant::now() + execution.prepared.limits.deadline);
            return Ok(Finished::Host(answer));
        }
        Runner::Command(program) => command::run(pipeline, execution, program, input, scope, recorder).await,
        Runner::Rich(runner) => Box::pin(rich::run(pipeline, execution, runner, input, scope, recorder)).await,
        Runner::Typed(program, typed) => {
            Box::pin(typed::run(pipeline, execution, (program, typed), input, scope, recorder)).await
        }
        Runner::Script(interpreter, script) => {
            Box::pin(script::run(pipeline, execution, (interpreter, script), input, scope, recorder)).await
        }
        Runner::Remote(remote) => Box::pin(remote::run(pipeline, execution, remote, input, scope, recorder)).await,
        Runner::Skill(skill) => Box::pin(skill::read(execution, skill, input, scope, recorder)).await,
        Runner::SkillScripts(skill) => {
            Box::pin(skill_script::run(pipeline, execution, skill, input, scope, recorder)).await
        }
    };
    answer.map(Finished::Tool)
}
