//! Runs a plain function that a component exports, by its types.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::ToolError;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::services::CallServices;
use crate::pipeline::state::{CallScope, Execution, Pipeline, unless_cancelled};
use crate::sandbox::{GuestInput, GuestOutput, Program};
use crate::tool::typed::Typed;

use super::epilogue::{RefusalsBefore, answered_bytes, finish};
use super::parts::show_while;
use super::wasi_extras::wasi_extras;
use super::{Answer, RunInput};

/// Runs a function.
pub(super) async fn run(
    pipeline: &Arc<Pipeline>,
    execution: &Execution<'_>,
    (program, typed): (&Program, &Typed),
    RunInput { checked, credentials, limits }: RunInput<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Answer, ToolError> {
    let (services, mut parts) = CallServices::for_component(pipeline, &execution.grant, program, scope, recorder);
    let (grant, provided) = (&execution.grant, wasi_extras(pipeline, execution, program, scope));
    let call = GuestInput { argv: &[], stdin: Bytes::new(), grant, credentials, limits, extras: provided };
    let (usage, before) = (recorder.usage.clone(), RefusalsBefore::count(&recorder.usage));
    let run = pipeline.sandbox.run_typed(program, &typed.function, &checked.value, call, services, &usage);
    let GuestOutput { result: ended, stderr: log, .. } =
        show_while(&mut parts, recorder, unless_cancelled(scope.turn, pin!(run))).await?;
    let log = recorder.decode(log);
    let answer = finish(ended, &log, scope, recorder, |_, recorder| answered_bytes(&recorder.usage));
    answer.map_err(|error| before.explain(error, &usage))
}
