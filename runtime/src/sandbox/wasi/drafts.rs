//! Interfaces that components for other hosts import: `wasi:config`, `wasi:keyvalue`, `wasi:logging` and `wasi:sockets`. Each is
//! linked only if a component imports it, under the exact name of the import, because no version of a draft is compatible
//! with another.

use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker};

use super::state::WasiStore;
use super::{config, keyvalue, logging, sockets};

/// Returns `true` if an import of this name is one of these interfaces.
pub(in crate::sandbox) fn is_draft(name: &str) -> bool {
    let interface = name.split_once('@').map_or(name, |(interface, _)| interface);
    config::INTERFACES.contains(&interface)
        || keyvalue::INTERFACES.contains(&interface)
        || interface == logging::INTERFACE
        || sockets::is_refused(name)
}

/// Links the interfaces that a component imports, and returns `true` if it needs
/// [`WasiExtras`](super::extras::WasiExtras).
pub(in crate::sandbox) fn add_drafts<T: WasiStore>(
    linker: &mut Linker<T>,
    engine: &Engine,
    component: &Component,
) -> wasmtime::Result<bool> {
    let mut needs_extras = false;
    let mut stubs = sockets::SocketStubs::default();
    for (name, import) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = import.ty else { continue };
        let interface = name.split_once('@').map_or(name, |(interface, _)| interface);
        needs_extras |= config::INTERFACES.contains(&interface) || keyvalue::INTERFACES.contains(&interface);
        if config::INTERFACES.contains(&interface) {
            config::add_to_linker(&mut linker.instance(name)?)?;
        } else if keyvalue::INTERFACES.contains(&interface) {
            keyvalue::add_to_linker(&mut linker.instance(name)?, interface, |function| {
                keyvalue::draft(engine, &instance, function)
            })?;
        } else if interface == logging::INTERFACE {
            logging::add_to_linker(&mut linker.instance(name)?)?;
        } else if sockets::is_refused(name) {
            stubs.add_to_linker(&mut linker.instance(name)?, engine, &instance)?;
        } else {
            stubs.pass(engine, &instance);
        }
    }
    Ok(needs_extras)
}
