//! Calls of functions that a component exports by itself: under their tool's grant, by their types and without
//! generated code.

use std::sync::Arc;

use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, Val};

use crate::error::{Outcome, ToolError};
use crate::sandbox::guest_io::{GuestInput, GuestOutput, Streams};
use crate::sandbox::program::{Program, Sandbox};
use crate::sandbox::services::HostServices;
use crate::sandbox::state::{CallState, StoreConfig};
use crate::sandbox::trap;
use crate::sandbox::usage::Usage;
use crate::tool::typed::{Function, Type};

use super::execute::{FreshStore, early_exit};
use super::rich::TOOL_EXITED;
use super::values::{self, LiftError};

/// Value that a function returned, as JSON, or none; or the error that the function itself returned.
type FunctionResult = Result<Option<String>, ToolError>;

impl Sandbox {
    /// Calls a function. Dropping the future stops the guest.
    pub(crate) async fn run_typed(
        &self,
        program: &Program,
        function: &Function,
        arguments: &Value,
        input: GuestInput<'_>,
        services: Arc<dyn HostServices>,
        usage: &Arc<Usage>,
    ) -> GuestOutput<FunctionResult> {
        let streams = Streams::merged(input.limits, usage);
        let result = match self.granted(&input, &streams, Some(services), usage) {
            Ok(config) => self.call_function(program, function, arguments, config, &input, usage).await,
            Err(error) => Err(error),
        };
        streams.into_output(trap::refused_write(result, Result::is_ok, usage, input.limits))
    }

    async fn call_function(
        &self,
        program: &Program,
        function: &Function,
        arguments: &Value,
        config: StoreConfig,
        input: &GuestInput<'_>,
        usage: &Arc<Usage>,
    ) -> Result<FunctionResult, ToolError> {
        let mismatch =
            || ToolError::new(Outcome::BadComponent, "the program was changed after its functions were read");
        let component = program.component().ok_or_else(mismatch)?;
        let export = export(component.component(), function).ok_or_else(mismatch)?;
        let lowered = arguments.as_object().and_then(|arguments| values::lower(function, arguments));
        let lowered =
            lowered.ok_or_else(|| ToolError::new(Outcome::BadArguments, "the arguments do not match the function"))?;
        let store = FreshStore { config, counts_fuel: program.counts_fuel, limits: input.limits, usage };
        let run = async |store: &mut Store<CallState>| {
            let instance = component.instantiate_async(&mut *store).await?;
            let Some(callee) = instance.get_func(&mut *store, export) else { return Ok(None) };
            let mut returned = vec![Val::Bool(false); usize::from(function.result.is_some())];
            callee.call_async(&mut *store, &lowered, &mut returned).await?;
            Ok(Some(returned.pop()))
        };
        let returned = self.execute(store, |_| early_exit(TOOL_EXITED), run).await?;
        let returned = returned.ok_or_else(mismatch)?;
        let (Some(ty), Some(returned)) = (&function.result, returned) else { return Ok(Ok(None)) };
        let max = input.limits.stdout;
        let result = returned_json(ty, &returned, max).map_err(|error| match error {
            LiftError::TooLong => usage.count_answer(usize::MAX, max).err().unwrap_or_else(mismatch),
            LiftError::TypeMismatch => mismatch(),
        })?;
        let bytes = match &result {
            Ok(line) => line.as_deref().map_or(0, str::len),
            Err(error) => error.json.as_deref().unwrap_or(&error.message).len(),
        };
        usage.count_answer(bytes, max)?;
        Ok(result)
    }
}

/// Converts the value that a function returned to JSON. Of a `result`, the first case is the value and the second one
/// the failure.
fn returned_json(ty: &Type, returned: &Val, max: usize) -> Result<Result<Option<String>, ToolError>, LiftError> {
    let written = |ty: Option<&Type>, value: Option<&Val>| match (ty, value) {
        (Some(ty), Some(value)) => values::to_json(ty, value, max).map(Some),
        (None, None) => Ok(None),
        _ => Err(LiftError::TypeMismatch),
    };
    let (sides, result) = match (ty, returned) {
        (Type::Result(sides), Val::Result(result)) => (sides, result),
        (ty, value) => return values::to_json(ty, value, max).map(|line| Ok(Some(line))),
    };
    let error = match result {
        Ok(value) => return written(sides.0.as_ref(), value.as_deref()).map(Ok),
        Err(error) => error.as_deref(),
    };
    let line = written(sides.1.as_ref(), error)?;
    Ok(Err(match (line, error) {
        (_, Some(Val::String(message) | Val::Enum(message))) => ToolError::new(Outcome::Failed, message.clone()),
        (Some(line), _) => {
            let json = Some(format!("{{\"error\":{line}}}"));
            ToolError { outcome: Outcome::Failed, message: line, json }
        }
        (None, _) => ToolError::new(Outcome::Failed, "the function failed without a reason"),
    }))
}

fn export(component: &Component, function: &Function) -> Option<ComponentExportIndex> {
    let interface = match &function.interface {
        Some(interface) => Some(component.get_export_index(None, interface)?),
        None => None,
    };
    component.get_export_index(interface.as_ref(), &function.name)
}
