//! WASI preview 1 for core modules, without an adapter: its functions work on the same files, streams, clocks and limits as
//! those of components, and a module's memory stays its own. It knows no path of the host; every file goes through the
//! gate of [`files`](super::files).

mod calls;
mod descriptors;
mod environment;
mod listing;
mod paths;
mod polling;
mod stat;
mod transfer;

#[cfg(test)]
mod tests;

use toolcrib_component::preflight::START;
use wasmtime::{Engine, ExternType, InstancePre, Linker, Module, Store};
use wasmtime_wasi::p1::types::{Errno, Error};
use wasmtime_wasi::p1::wasi_snapshot_preview1;
use wiggle::{GuestMemory, GuestPtr};

use super::host::Host;

pub(super) use descriptors::Descriptors;

/// The most bytes of a path.
const MAX_PATH_BYTES: u32 = 4096;

type Result<T, E = Error> = std::result::Result<T, E>;

/// State of preview 1 in a store.
#[derive(Default)]
pub(super) struct Preview1 {
    descriptors: Descriptors,
    /// The most bytes that one host call copies.
    host_call: usize,
}

/// Links a module whose imports were checked.
///
/// # Errors
///
/// A text that says what is wrong with its imports or its `_start`.
pub(super) fn linked(engine: &Engine, module: &Module) -> std::result::Result<InstancePre<Host>, String> {
    let start = module.get_export(START);
    let starts = matches!(&start, Some(ExternType::Func(it)) if it.params().len() == 0 && it.results().len() == 0);
    if !starts {
        return Err("a core module whose `_start` takes arguments or has results; a command's has neither".to_owned());
    }
    let mut linker = Linker::<Host>::new(engine);
    let added = wasi_snapshot_preview1::add_to_linker(&mut linker, |host: &mut Host| host);
    added.and_then(|()| linker.instantiate_pre(module)).map_err(|error| format!("{error:#}"))
}

/// Runs a module's `_start` to its end.
pub(super) async fn run(pre: &InstancePre<Host>, store: &mut Store<Host>) -> wasmtime::Result<()> {
    descriptors::open_standard(store.data_mut())?;
    let instance = pre.instantiate_async(&mut *store).await?;
    let start = instance.get_typed_func::<(), ()>(&mut *store, START)?;
    start.call_async(&mut *store, ()).await
}

/// Reads a path or the text of a link.
fn path(memory: &GuestMemory<'_>, path: GuestPtr<str>) -> Result<String> {
    if path.len() > MAX_PATH_BYTES {
        return Err(Errno::Nametoolong.into());
    }
    Ok(memory.as_cow_str(path)?.into_owned())
}

/// Writes bytes where a guest has room for them.
fn put(memory: &mut GuestMemory<'_>, at: GuestPtr<u8>, bytes: &[u8]) -> Result<()> {
    memory.copy_from_slice(bytes, at.as_array(u32::try_from(bytes.len())?))?;
    Ok(())
}
