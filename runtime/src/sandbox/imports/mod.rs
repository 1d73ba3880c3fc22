//! What components import that were written for other hosts, beside what every guest can import: settings, a store, a log,
//! and sockets, of which there are none. Each is linked as far as a component imports it, under the very name that it
//! imports: of drafts no version stands for another.

mod config;
mod keyvalue;
mod logging;
mod sockets;

use std::sync::Arc;

use toolcrib_component::capability::Capability;
use toolcrib_component::interfaces::{self, Link};
use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker};

use crate::call::Denial;
use crate::keyvalue::Store;
use crate::sandbox::host::Host;

pub(super) use sockets::Refused;

/// What a call gives to such a component; the default gives nothing, where nothing is granted.
#[derive(Clone)]
pub(crate) struct Provided {
    /// The tool's settings; or what is wrong with them.
    pub(crate) settings: Settings,
    /// What the tool keeps; or why it may keep nothing, where anybody is to be told.
    pub(crate) store: Option<Result<Store, Denial>>,
}

impl Default for Provided {
    fn default() -> Self {
        Self { settings: Ok(Arc::default()), store: None }
    }
}

/// Settings by their keys, in the order in which they stand.
pub(crate) type Settings = Result<Arc<[(String, String)]>, String>;

/// Links what a component imports of them, and says whether it asks for what a call has to provide.
pub(super) fn add(linker: &mut Linker<Host>, engine: &Engine, component: &Component) -> wasmtime::Result<bool> {
    let mut asks = false;
    let mut refused = sockets::Refusing::default();
    for (name, import) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = import.ty else { continue };
        match interfaces::find_import(name).map(|known| (known.link, known.capability)) {
            Some((Link::OnImport, Capability::Config)) => {
                asks = true;
                config::add(&mut linker.instance(name)?)?;
            }
            Some((Link::OnImport, Capability::KeyValue)) => {
                asks = true;
                let (interface, _) = interfaces::split(name);
                let form = |function: &str| keyvalue::form(engine, &instance, function);
                keyvalue::add(&mut linker.instance(name)?, interface, form)?;
            }
            Some((Link::OnImport, Capability::Logging)) => logging::add(&mut linker.instance(name)?)?,
            Some((Link::Refused, _)) => refused.add(&mut linker.instance(name)?, engine, &instance)?,
            _ => refused.pass(engine, &instance),
        }
    }
    Ok(asks)
}
