//! Functions of the host: the imports of a component, or their stand-ins in a native test.

#[cfg(target_arch = "wasm32")]
pub(crate) use crate::bindings::tool::toolcrib::tool::{cache, log, model, progress, secrets, tools};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use crate::testing::host::{cache, log, model, progress, secrets, tools};
