//! Runs a command: by default arguments on standard input and one line of JSON on standard output, else as its command line says.

mod answer;

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Outcome, ToolError};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Execution, Pipeline, unless_cancelled};
use crate::policy::Grant;
use crate::sandbox::{GuestInput, GuestOutput, Program};
use crate::tool::{Body, CommandLine};

use super::epilogue::{RefusalsBefore, finish};
use super::wasi_extras::wasi_extras;
use super::{Answer, RunInput};

pub(super) use answer::own_error;

/// Runs a command.
pub(super) fn run(
    pipeline: &Arc<Pipeline>,
    execution: &Execution<'_>,
    program: &Program,
    input: RunInput<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> impl Future<Output = Result<Answer, ToolError>> + Send {
    let (fixed, line) = match &execution.tool.body {
        Body::Command { argv, command_line, .. } => (argv.as_slice(), command_line.as_deref()),
        _ => (&[][..], None),
    };
    let command = CommandInput { fixed, line, grant: &execution.grant };
    run_with(pipeline, execution, (program, command), input, scope, recorder)
}

/// Command line of one run, and its grant.
pub(super) struct CommandInput<'a> {
    pub(super) fixed: &'a [String],
    pub(super) line: Option<&'a CommandLine>,
    pub(super) grant: &'a Grant,
}

/// Runs a program with a command line that is not the tool's own. The future holds each value once, which an `async fn` does not.
pub(super) fn run_with(
    pipeline: &Arc<Pipeline>,
    execution: &Execution<'_>,
    (program, command): (&Program, CommandInput<'_>),
    input: RunInput<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> impl Future<Output = Result<Answer, ToolError>> + Send {
    let CommandInput { fixed, line, grant } = command;
    let RunInput { checked, credentials, limits } = input;
    async move {
        let value = &checked.value;
        let input =
            |line: &CommandLine| Ok((line.arguments(fixed.get(1..).unwrap_or_default(), value)?, line.stdin(value)?));
        let input = line.map(input).transpose();
        let invalid = |why: String| ToolError::new(Outcome::BadArguments, format!("invalid values: {why}"));
        let (more, stdin) = input.map_err(invalid)?.unwrap_or_default();
        let argv: Cow<'_, [String]> = match more.is_empty() {
            true => fixed.into(),
            false => fixed.iter().cloned().chain(more).collect::<Vec<_>>().into(),
        };
        let stdin = Bytes::from(stdin.unwrap_or_else(|| checked.text.clone()));
        let provided = wasi_extras(pipeline, execution, program, scope);
        let before = RefusalsBefore::count(&recorder.usage);
        let call = GuestInput { argv: &argv, stdin, grant, credentials, limits, extras: provided };
        let run = pipeline.sandbox.run(program, call, &recorder.usage);
        let GuestOutput { result: exit, stdout, stderr } = unless_cancelled(scope.turn, pin!(run)).await?;
        let stderr = recorder.decode(stderr);
        let exit = finish(exit, &stderr, scope, recorder, |exit, recorder| {
            recorder.set_exit(*exit);
            stdout.len()
        })?;
        let form = line.and_then(|line| line.output);
        let answer = match line.map_or(exit == 0, |line| line.is_success(exit)) {
            true => answer::of_success(form, stdout, &execution.prepared.masks, recorder),
            false => {
                // A program with a command line can report its failure anywhere.
                let stdout = if line.is_some() { recorder.decode(stdout) } else { String::new() };
                Err(answer::failure(exit, &stderr, &stdout))
            }
        };
        Ok(answer.map_err(|error| before.explain(error, &recorder.usage)))
    }
}
