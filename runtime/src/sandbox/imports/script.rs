//! Imports of the script interpreter, `toolcrib:script`: running programs, storing values, delegating tasks, and registering
//! tools and hooks.

use wasmtime::component::Linker;

use crate::sandbox::bindings::ExecOptions;
use crate::sandbox::services::Registration;
use crate::sandbox::state::CallState;

use super::cache;

const EXEC: &str = "toolcrib:script/exec@0.1.0";
const CACHE: &str = "toolcrib:script/cache@0.1.0";
const AGENTS: &str = "toolcrib:script/agents@0.1.0";
const META: &str = "toolcrib:script/meta@0.1.0";

/// Links the four interfaces.
pub(in crate::sandbox) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    linker.instance(EXEC)?.func_wrap_async("run", |mut store, params: (String, Vec<String>, ExecOptions)| {
        let ((program, arguments, options), services) = (params, store.data().services());
        Box::new(async move {
            // An engine that counts no fuel returns an error here.
            let fuel = store.get_fuel().ok();
            let outcome = services.exec(program, arguments, options, fuel).await;
            if let (Some(fuel), Ok(outcome)) = (fuel, &outcome) {
                store.set_fuel(fuel.saturating_sub(outcome.fuel))?;
            }
            Ok((outcome.map(|outcome| outcome.output),))
        })
    })?;
    cache::add_to_linker(linker, CACHE)?;
    linker.instance(AGENTS)?.func_wrap_async("delegate", |store, (task,): (String,)| {
        let services = store.data().services();
        Box::new(async move { Ok((services.delegate(task).await,)) })
    })?;
    let mut meta = linker.instance(META)?;
    for (name, kind) in [("tool-register", Registration::Tool), ("hook-register", Registration::Hook)] {
        meta.func_wrap(name, move |store, (definition,): (String,)| {
            Ok((store.data().services().register(kind, definition),))
        })?;
    }
    Ok(())
}
