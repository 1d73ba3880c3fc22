//! `wasi:config`: the settings of a tool, written by its operator.

use wasmtime::component::{ComponentType, LinkerInstance, Lower};

use super::state::WasiStore;

/// Error of a lookup.
#[derive(Debug, Clone, ComponentType, Lower)]
#[component(variant)]
enum ConfigError {
    #[component(name = "upstream")]
    Upstream(String),
    #[component(name = "io")]
    #[expect(dead_code, reason = "settings are in memory, and the contract has this case")]
    Io(String),
}

/// Links the interface.
pub(super) fn add_to_linker<T: WasiStore>(interface: &mut LinkerInstance<'_, T>) -> wasmtime::Result<()> {
    interface.func_wrap("get", |mut store, (key,): (String,)| {
        let settings = store.data_mut().wasi().extras.settings.as_ref();
        let value = settings.map(|settings| settings.iter().find(|(known, _)| *known == key).map(|(_, value)| value));
        Ok((value.map(|value| value.cloned()).map_err(|error| ConfigError::Upstream(error.clone())),))
    })?;
    interface.func_wrap("get-all", |mut store, (): ()| {
        let settings = store.data_mut().wasi().extras.settings.as_ref();
        Ok((settings.map(|settings| settings.to_vec()).map_err(|error| ConfigError::Upstream(error.clone())),))
    })
}
