//! `wasi:config`: a tool's settings, as its operator wrote them, under their keys.

use wasmtime::component::{ComponentType, LinkerInstance, Lower};

use crate::sandbox::host::Host;

/// Why there is no answer.
#[derive(Debug, Clone, ComponentType, Lower)]
#[component(variant)]
enum Fault {
    #[component(name = "upstream")]
    Upstream(String),
    #[component(name = "io")]
    #[expect(dead_code, reason = "settings are in memory, and the contract has this case")]
    Io(String),
}

/// Links it.
pub(super) fn add(interface: &mut LinkerInstance<'_, Host>) -> wasmtime::Result<()> {
    interface.func_wrap("get", |store, (key,): (String,)| {
        let settings = store.data().provided.settings.as_ref();
        let value = settings.map(|settings| settings.iter().find(|(known, _)| *known == key).map(|(_, value)| value));
        Ok((value.map(|value| value.cloned()).map_err(|why| Fault::Upstream(why.clone())),))
    })?;
    interface.func_wrap("get-all", |store, (): ()| {
        let settings = store.data().provided.settings.as_ref();
        Ok((settings.map(|settings| settings.to_vec()).map_err(|why| Fault::Upstream(why.clone())),))
    })
}
