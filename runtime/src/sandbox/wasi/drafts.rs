//! Interfaces that components for other hosts import: `wasi:config`, `wasi:keyvalue`, `wasi:logging` and `wasi:sockets`. Each is
//! linked only if a component imports it, under the exact name of the import, because no version of a draft is compatible
//! with another.

use toolcrib_component::capability::Capability;
use toolcrib_component::interfaces::{self, Link};
use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker};

use super::state::WasiStore;
use super::{config, keyvalue, logging, sockets};

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
        match interfaces::find_import(name).map(|known| (known.link, known.capability)) {
            Some((Link::OnImport, Capability::Config)) => {
                needs_extras = true;
                config::add_to_linker(&mut linker.instance(name)?)?;
            }
            Some((Link::OnImport, Capability::KeyValue)) => {
                needs_extras = true;
                let (interface, _) = interfaces::split(name);
                let draft = |function: &str| keyvalue::draft(engine, &instance, function);
                keyvalue::add_to_linker(&mut linker.instance(name)?, interface, draft)?;
            }
            Some((Link::OnImport, Capability::Logging)) => logging::add_to_linker(&mut linker.instance(name)?)?,
            Some((Link::Refused, _)) => stubs.add_to_linker(&mut linker.instance(name)?, engine, &instance)?,
            _ => stubs.pass(engine, &instance),
        }
    }
    Ok(needs_extras)
}
