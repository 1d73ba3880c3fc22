//! Calls of rich tools. The functions `run` and `prepare` have the grant of their tool; the others have no grant and no
//! services.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, InstancePre};

use crate::error::{Outcome, ToolError};
use crate::sandbox::bindings::{Answer, Exports, GuestFailure, GuestPart, Invocation, Opinion, Presentation};
use crate::sandbox::guest_io::{GuestInput, GuestOutput, Streams};
use crate::sandbox::program::{Program, ProgramKind, Sandbox};
use crate::sandbox::services::HostServices;
use crate::sandbox::state::{CallState, StoreConfig};
use crate::sandbox::trap;
use crate::sandbox::usage::Usage;
use crate::tool::Limits;

use super::execute::{FreshStore, Params, Returned, call_export, early_exit};

/// Error for a tool that exits instead of returning.
pub(super) const TOOL_EXITED: &str = "the tool exited before its call returned";

impl Sandbox {
    /// Runs a call. Dropping the future stops the guest.
    pub(crate) async fn run_rich(
        &self,
        program: &Program,
        invocation: Invocation<'_>,
        input: GuestInput<'_>,
        services: Arc<dyn HostServices>,
        usage: &Arc<Usage>,
    ) -> GuestOutput<Result<Answer, GuestFailure>> {
        let function =
            (|exports: &Exports| Some(exports.run), |answer: &Answer| bytes(&answer.content, &answer.display));
        self.call_granted(program, function, (invocation,), input, services, usage).await
    }

    /// Prepares a tool for a session.
    pub(crate) async fn prepare_rich(
        &self,
        program: &Program,
        (tool, context): (&str, &str),
        input: GuestInput<'_>,
        services: Arc<dyn HostServices>,
        usage: &Arc<Usage>,
    ) -> GuestOutput<Result<String, GuestFailure>> {
        let function = (|exports: &Exports| exports.prepare, |prepared: &String| prepared.len());
        self.call_granted(program, function, (tool, context), input, services, usage).await
    }

    /// Calls an export under the grant of its tool, and counts its result's bytes.
    async fn call_granted<P: Params, T: Returned>(
        &self,
        program: &Program,
        (export, bytes): (impl Fn(&Exports) -> Option<ComponentExportIndex>, impl Fn(&T) -> usize),
        params: P,
        input: GuestInput<'_>,
        services: Arc<dyn HostServices>,
        usage: &Arc<Usage>,
    ) -> GuestOutput<Result<T, GuestFailure>>
    where
        Result<T, GuestFailure>: Returned,
    {
        let limits = input.limits;
        let streams = Streams::merged(limits, usage);
        let result = match self.granted(&input, &streams, Some(services), usage) {
            Ok(config) => self.call_rich(program, export, params, config, limits, usage).await,
            Err(error) => Err(error),
        };
        let result = result.and_then(|answer: Result<T, GuestFailure>| {
            answer.as_ref().map_or(Ok(()), |answer| usage.count_answer(bytes(answer), limits.stdout))?;
            Ok(answer)
        });
        streams.into_output(trap::refused_write(result, Result::is_ok, usage, limits))
    }

    /// Checks a call with the tool's own check. The inner error is the tool's own.
    pub(crate) async fn check_rich(
        &self,
        program: &Program,
        invocation: Invocation<'_>,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<Result<(), String>, ToolError> {
        let config = self.bare(None, limits, usage);
        self.call_rich(program, |exports| exports.check, (invocation,), config, limits, usage).await
    }

    /// Returns a tool's description of a call that is about to run.
    pub(crate) async fn preview_rich(
        &self,
        program: &Program,
        invocation: Invocation<'_>,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<Option<String>, ToolError> {
        let config = self.bare(None, limits, usage);
        self.call_rich(program, |exports| exports.preview, (invocation,), config, limits, usage).await
    }

    /// Returns a tool's claim on a call.
    pub(crate) async fn claim_rich(
        &self,
        program: &Program,
        invocation: Invocation<'_>,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<Opinion, ToolError> {
        let config = self.bare(None, limits, usage);
        self.call_rich(program, |exports| exports.claim, (invocation,), config, limits, usage).await
    }

    /// Returns a tool's presentation of a call's outcome.
    pub(crate) async fn present_rich(
        &self,
        program: &Program,
        (invocation, outcome): (Invocation<'_>, Result<&Answer, &GuestFailure>),
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<Presentation, ToolError> {
        let (config, params) = (self.bare(None, limits, usage), (invocation, outcome));
        let presented = self.call_rich(program, |exports| exports.present, params, config, limits, usage);
        let presented: Presentation = presented.await?;
        usage.count_answer(bytes(presented.content.iter().flatten(), &presented.display), limits.stdout)?;
        Ok(presented)
    }

    async fn call_rich<P: Params, R: Returned>(
        &self,
        program: &Program,
        export: impl Fn(&Exports) -> Option<ComponentExportIndex>,
        params: P,
        config: StoreConfig,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<R, ToolError> {
        let (component, export) = rich_export(program, export)?;
        let store = FreshStore { config, counts_fuel: program.counts_fuel, limits, usage };
        let run = async |store: &mut Store<CallState>| call_export(store, component, export, params).await;
        self.execute(store, |_| early_exit(TOOL_EXITED), run).await
    }
}

fn rich_export(
    program: &Program,
    export: impl Fn(&Exports) -> Option<ComponentExportIndex>,
) -> Result<(&InstancePre<CallState>, ComponentExportIndex), ToolError> {
    let rich = match &program.kind {
        ProgramKind::Rich(rich) => export(&rich.exports).map(|export| (&rich.pre, export)),
        _ => None,
    };
    rich.ok_or_else(|| ToolError::new(Outcome::BadComponent, "the tool's component does not export this function"))
}

fn bytes<'a>(content: impl IntoIterator<Item = &'a GuestPart>, display: &'a [GuestPart]) -> usize {
    content.into_iter().chain(display).map(GuestPart::len).sum()
}
