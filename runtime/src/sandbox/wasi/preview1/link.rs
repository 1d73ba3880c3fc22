//! Linking and running of core modules for preview 1.

use toolcrib_component::preflight::START;
use wasmtime::{Engine, ExternType, InstancePre, Linker, Module, Store};
use wasmtime_wasi::p1::wasi_snapshot_preview1;

use crate::sandbox::wasi::state::WasiStore;

use super::descriptors;

/// Links a module after the check of its imports.
///
/// # Errors
///
/// The problem of its imports or of its `_start`.
pub(in crate::sandbox) fn link<T: WasiStore>(engine: &Engine, module: &Module) -> Result<InstancePre<T>, String> {
    let start = module.get_export(START);
    let starts = matches!(&start, Some(ExternType::Func(it)) if it.params().len() == 0 && it.results().len() == 0);
    if !starts {
        return Err("a core module whose `_start` has parameters or results, which a command must not have".to_owned());
    }
    let mut linker = Linker::<T>::new(engine);
    let added = wasi_snapshot_preview1::add_to_linker(&mut linker, |store: &mut T| store.wasi());
    added.and_then(|()| linker.instantiate_pre(module)).map_err(|error| format!("{error:#}"))
}

/// Runs a module's `_start` to its end.
pub(in crate::sandbox) async fn run<T: WasiStore>(pre: &InstancePre<T>, store: &mut Store<T>) -> wasmtime::Result<()> {
    descriptors::open_standard(store.data_mut().wasi())?;
    let instance = pre.instantiate_async(&mut *store).await?;
    let start = instance.get_typed_func::<(), ()>(&mut *store, START)?;
    start.call_async(&mut *store, ()).await
}
