//! Functions that a component exports by itself: called in a store of their own with the grant of their tool, by their types
//! and with no generated code.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_component::functions::is_contract;
use wasmtime::Engine;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Val};

use crate::error::{Outcome, ToolError};
use crate::tool::typed::{Function, Type};

use super::host::Host;
use super::services::Services;
use super::stdio::{Capped, OverCap};
use super::values::{self, Unwritten};
use super::{Inside, Invocation, Kind, Program, Sandbox, Usage, trap};

/// What a call of a function left.
pub(crate) struct Returned {
    /// Its value as JSON, none where it returns nothing; within, the error that the function itself returned; or why there is
    /// nothing.
    pub(crate) ended: Result<Result<Option<String>, ToolError>, ToolError>,
    /// What it wrote to its standard streams.
    pub(crate) log: Vec<u8>,
}

impl Program {
    /// The linked component; none of a core module.
    pub(super) fn pre(&self) -> Option<&InstancePre<Host>> {
        match &self.kind {
            Kind::Command { pre, .. } => Some(pre.instance_pre()),
            Kind::Module(_) => None,
            Kind::Rich(linked) => Some(&linked.pre),
            Kind::Plain { pre, .. } => Some(pre),
        }
    }
}

impl Sandbox {
    /// Calls a function. Dropping the future stops the guest.
    pub(crate) async fn run_typed(
        &self,
        program: &Program,
        function: &Function,
        arguments: &Value,
        call: Invocation<'_>,
        services: Arc<dyn Services>,
        usage: &Arc<Usage>,
    ) -> Returned {
        let notes = Capped::new(OverCap::Stderr, call.limits.stderr, usage);
        let ended = match self.inside(&call, (&notes, &notes), Some(services), usage) {
            Ok(inside) => {
                let ended = self.return_of(program, function, arguments, inside, &call, usage).await;
                trap::over_quota(ended, Result::is_ok, usage, call.limits)
            }
            Err(error) => Err(error),
        };
        Returned { ended, log: notes.take() }
    }

    async fn return_of(
        &self,
        program: &Program,
        function: &Function,
        arguments: &Value,
        inside: Inside,
        call: &Invocation<'_>,
        usage: &Arc<Usage>,
    ) -> Result<Result<Option<String>, ToolError>, ToolError> {
        let another = || ToolError::new(Outcome::BadComponent, "the program is not the one whose functions were read");
        let pre = program.pre().ok_or_else(another)?;
        let export = export(pre.component(), function).ok_or_else(another)?;
        let lowered = arguments.as_object().and_then(|arguments| values::lower(function, arguments));
        let lowered = lowered
            .ok_or_else(|| ToolError::new(Outcome::BadArguments, "the arguments are not those of the function"))?;
        let ended = self.within(program.counts_fuel, inside, call.limits, usage, async |store| {
            let instance = pre.instantiate_async(&mut *store).await?;
            let Some(callee) = instance.get_func(&mut *store, export) else { return Ok(None) };
            let mut returned = vec![Val::Bool(false); usize::from(function.result.is_some())];
            callee.call_async(&mut *store, &lowered, &mut returned).await?;
            Ok(Some(returned.pop()))
        });
        let returned = ended.await?.map_err(|error| trap::of_rich(&error, usage, call.limits))?;
        let returned = returned.ok_or_else(another)?;
        let (Some(ty), Some(returned)) = (&function.result, returned) else { return Ok(Ok(None)) };
        let told = told(ty, &returned, call.limits.stdout).map_err(|why| match why {
            Unwritten::TooLong => usage.answered(usize::MAX, call.limits.stdout).err().unwrap_or_else(another),
            Unwritten::Unlike => another(),
        })?;
        let bytes = match &told {
            Ok(line) => line.as_deref().map_or(0, str::len),
            Err(error) => error.json.as_deref().unwrap_or(&error.message).len(),
        };
        usage.answered(bytes, call.limits.stdout)?;
        Ok(told)
    }
}

/// What a function returned: of a `result`, the value of its one side or the failure that its other one is.
fn told(ty: &Type, returned: &Val, most: usize) -> Result<Result<Option<String>, ToolError>, Unwritten> {
    let written = |ty: Option<&Type>, value: Option<&Val>| match (ty, value) {
        (Some(ty), Some(value)) => values::answer(ty, value, most).map(Some),
        (None, None) => Ok(None),
        _ => Err(Unwritten::Unlike),
    };
    let (sides, result) = match (ty, returned) {
        (Type::Result(sides), Val::Result(result)) => (sides, result),
        (ty, value) => return values::answer(ty, value, most).map(|line| Ok(Some(line))),
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
        (None, _) => ToolError::new(Outcome::Failed, "the function failed and did not say why"),
    }))
}

fn export(component: &Component, function: &Function) -> Option<ComponentExportIndex> {
    let interface = match &function.interface {
        Some(interface) => Some(component.get_export_index(None, interface)?),
        None => None,
    };
    component.get_export_index(interface.as_ref(), &function.name)
}

/// Whether a component exports something of its own, and not only what is a contract with a host.
pub(super) fn is_plain(engine: &Engine, component: &Component) -> bool {
    component.component_type().exports(engine).any(|(name, _)| !is_contract(name))
}
