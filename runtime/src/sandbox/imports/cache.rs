//! The interface `cache`, which tools and scripts share.

use wasmtime::component::Linker;

use crate::sandbox::state::CallState;

/// Links the cache under the name of an interface.
pub(super) fn add_to_linker(linker: &mut Linker<CallState>, interface: &str) -> wasmtime::Result<()> {
    let mut cache = linker.instance(interface)?;
    cache.func_wrap("get", |store, (key,): (String,)| Ok((store.data().services().cached(&key),)))?;
    cache.func_wrap("set", |store, (key, value): (String, String)| Ok((store.data().services().cache(key, value),)))
}
