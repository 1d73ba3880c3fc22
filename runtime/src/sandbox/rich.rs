//! Rich tools in the sandbox: each of their functions is called in a store of its own. The call and the preparing have the
//! grant of their tool; everything else has none, and nobody who answers.

use std::sync::Arc;

use wasmtime::component::{ComponentExportIndex, ComponentNamedList, InstancePre, Lift, Lower};
use wasmtime_wasi::WasiCtx;

use crate::error::{Outcome, ToolError};
use crate::policy::FlagHints;
use crate::tool::Limits;

use super::bindings::{Answer, Asked, Exports, Failure, Opinion, Presentation};
use super::files::{Allowance, Fence};
use super::host::Host;
use super::imports::Provided;
use super::requests::Way;
use super::services::Services;
use super::stdio::{Capped, OverCap};
use super::{Inside, Invocation, Kind, MAX_RANDOM, Program, Sandbox, Usage, trap};

/// A rich tool, linked.
pub(super) struct Linked {
    pub(super) pre: InstancePre<Host>,
    pub(super) exports: Exports,
}

/// What a call left.
pub(crate) struct Told<T> {
    /// What it came to in the tool's own words; or why there is nothing.
    pub(crate) ended: Result<Result<T, Failure>, ToolError>,
    /// What it wrote for people.
    pub(crate) log: Vec<u8>,
}

impl Sandbox {
    /// Runs a call. Dropping the future stops the guest.
    pub(crate) async fn run_rich(
        &self,
        program: &Program,
        asked: Asked<'_>,
        call: Invocation<'_>,
        services: Arc<dyn Services>,
        usage: &Arc<Usage>,
    ) -> Told<Answer> {
        let limits = call.limits;
        let run = |exports: &Exports| Some(exports.run);
        let mut told = self.granted(program, run, (asked,), call, services, usage).await;
        let bytes = |answer: &Answer| answer.content.iter().chain(&answer.display).map(|piece| piece.len()).sum();
        told.ended = told.ended.and_then(|ended| match ended {
            Ok(answer) => usage.answered(bytes(&answer), limits.stdout).map(|()| Ok(answer)),
            Err(failure) => Ok(Err(failure)),
        });
        told
    }

    /// Lets a tool prepare.
    pub(crate) async fn prepare_rich(
        &self,
        program: &Program,
        (tool, context): (&str, &str),
        call: Invocation<'_>,
        services: Arc<dyn Services>,
        usage: &Arc<Usage>,
    ) -> Told<String> {
        let limits = call.limits;
        let prepare = |exports: &Exports| exports.prepare;
        let mut told = self.granted::<_, String>(program, prepare, (tool, context), call, services, usage).await;
        told.ended = told.ended.and_then(|ended| match ended {
            Ok(prepared) => usage.answered(prepared.len(), limits.stdout).map(|()| Ok(prepared)),
            Err(failure) => Ok(Err(failure)),
        });
        told
    }

    async fn granted<P, T>(
        &self,
        program: &Program,
        export: impl Fn(&Exports) -> Option<ComponentExportIndex>,
        given: P,
        call: Invocation<'_>,
        services: Arc<dyn Services>,
        usage: &Arc<Usage>,
    ) -> Told<T>
    where
        P: ComponentNamedList + Lower + Send + Sync,
        T: Lift + wasmtime::component::ComponentType + Send + Sync + 'static,
    {
        let notes = Capped::new(OverCap::Stderr, call.limits.stderr, usage);
        let ended = match self.inside(&call, (&notes, &notes), Some(services), usage) {
            Ok(inside) => {
                let ended = self.ask::<P, Result<T, Failure>>(program, export, given, inside, call.limits, usage).await;
                trap::over_quota(ended, Result::is_ok, usage, call.limits)
            }
            Err(error) => Err(error),
        };
        Told { ended, log: notes.take() }
    }

    /// Lets a tool check a call. The inner error is the tool's own.
    pub(crate) async fn check_rich(
        &self,
        program: &Program,
        asked: Asked<'_>,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<Result<(), String>, ToolError> {
        self.bare(program, |exports| exports.check, (asked,), limits, usage).await
    }

    /// Lets a tool say what a call is about to do.
    pub(crate) async fn preview_rich(
        &self,
        program: &Program,
        asked: Asked<'_>,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<Option<String>, ToolError> {
        self.bare(program, |exports| exports.preview, (asked,), limits, usage).await
    }

    /// Asks a tool whether a call is its own.
    pub(crate) async fn claim_rich(
        &self,
        program: &Program,
        asked: Asked<'_>,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<Opinion, ToolError> {
        self.bare(program, |exports| exports.claim, (asked,), limits, usage).await
    }

    /// Lets a tool present what a call came to.
    pub(crate) async fn present_rich(
        &self,
        program: &Program,
        (asked, outcome): (Asked<'_>, Result<&Answer, &Failure>),
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<Presentation, ToolError> {
        let told = self.bare::<_, Presentation>(program, |exports| exports.present, (asked, outcome), limits, usage);
        let told = told.await?;
        let content = told.content.iter().flatten().chain(&told.display).map(|piece| piece.len()).sum();
        usage.answered(content, limits.stdout)?;
        Ok(told)
    }

    /// Asks something with nothing granted.
    async fn bare<P, R>(
        &self,
        program: &Program,
        export: impl Fn(&Exports) -> Option<ComponentExportIndex>,
        given: P,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<R, ToolError>
    where
        P: ComponentNamedList + Lower + Send + Sync,
        R: Lift + wasmtime::component::ComponentType + Send + Sync + 'static,
    {
        let wasi = WasiCtx::builder().max_random_size(MAX_RANDOM).build();
        let allowance = Allowance::new(limits, usage, &self.open_files, Fence::default());
        let (way, provided) = (Way::Closed(FlagHints::NONE), Provided::default());
        let inside = Inside { wasi, allowance, way, provided, notes: None, services: None };
        self.ask(program, export, given, inside, limits, usage).await
    }

    async fn ask<P, R>(
        &self,
        program: &Program,
        export: impl Fn(&Exports) -> Option<ComponentExportIndex>,
        given: P,
        inside: Inside,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<R, ToolError>
    where
        P: ComponentNamedList + Lower + Send + Sync,
        R: Lift + wasmtime::component::ComponentType + Send + Sync + 'static,
    {
        let missing = || ToolError::new(Outcome::BadComponent, "the tool's component does not export that");
        let Kind::Rich(linked) = &program.kind else { return Err(missing()) };
        let export = export(&linked.exports).ok_or_else(missing)?;
        let ended = self.within(program.counts_fuel, inside, limits, usage, async |store| {
            let instance = linked.pre.instantiate_async(&mut *store).await?;
            let function = instance.get_typed_func::<P, (R,)>(&mut *store, export)?;
            let (said,) = function.call_async(&mut *store, given).await?;
            Ok(said)
        });
        ended.await?.map_err(|error| trap::of_rich(&error, usage, limits))
    }
}
