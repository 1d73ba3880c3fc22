//! The host's functions: the imports of a component, and in a native test what stands in for them.

#[cfg(target_arch = "wasm32")]
pub(crate) use crate::bindings::tool::toolcrib::tool::{cache, log, model, progress, secrets, tools};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use crate::testing::host::{cache, log, model, progress, secrets, tools};
