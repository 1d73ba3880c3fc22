//! A tool's own check of its arguments, `toolcrib:tool/validate`: run in a store of its own, with no file, no variable and
//! nothing to read, under the limits of the call.

use std::sync::Arc;

use wasmtime::component::{Component, ComponentExportIndex};
use wasmtime_wasi::WasiCtx;

use crate::error::ToolError;
use crate::policy::FlagHints;
use crate::tool::Limits;

use super::files::{Allowance, Fence};
use super::imports::Provided;
use super::requests::Way;
use super::{Inside, Kind, MAX_RANDOM, Program, Sandbox, Usage, trap};

/// The interface and the function in it.
const INTERFACE: &str = "toolcrib:tool/validate@0.1.0";
const FUNCTION: &str = "check";

/// The check that a component exports, if it does.
pub(super) fn export(component: &Component) -> Option<ComponentExportIndex> {
    let interface = component.get_export_index(None, INTERFACE)?;
    component.get_export_index(Some(&interface), FUNCTION)
}

impl Program {
    /// Whether it checks arguments itself.
    pub(crate) fn checks(&self) -> bool {
        match &self.kind {
            Kind::Command { check, .. } | Kind::Plain { check, .. } => check.is_some(),
            Kind::Rich(linked) => linked.exports.check.is_some(),
            Kind::Module(_) => false,
        }
    }
}

impl Sandbox {
    /// Lets a program check arguments, if it can. The inner error is the program's own.
    ///
    /// # Errors
    ///
    /// How its check ended, where it did not end well.
    pub(crate) async fn check(
        &self,
        program: &Program,
        arguments: &str,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<Result<(), String>, ToolError> {
        let (Some(pre), Kind::Command { check: Some(check), .. } | Kind::Plain { check: Some(check), .. }) =
            (program.pre(), &program.kind)
        else {
            return Ok(Ok(()));
        };
        let wasi = WasiCtx::builder().max_random_size(MAX_RANDOM).build();
        let allowance = Allowance::new(limits, usage, &self.open_files, Fence::default());
        let (way, provided) = (Way::Closed(FlagHints::NONE), Provided::default());
        let inside = Inside { wasi, allowance, way, provided, notes: None, services: None };
        let ended = self.within(program.counts_fuel, inside, limits, usage, async |store| {
            let instance = pre.instantiate_async(&mut *store).await?;
            let check = instance.get_typed_func::<(&str,), (Result<(), String>,)>(&mut *store, *check)?;
            let (judged,) = check.call_async(&mut *store, (arguments,)).await?;
            Ok(judged)
        });
        ended.await?.map_err(|error| trap::of_rich(&error, usage, limits))
    }
}
