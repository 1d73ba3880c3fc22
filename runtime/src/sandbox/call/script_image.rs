//! Images of scripts: the memory of the interpreter after it has read a script, which every call of the script starts from.
//! Every import ends the interpreter that reads, so an image holds nothing but the script. It comes from a guest and is not
//! checked: it only ever returns to an instance of the same interpreter.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker};

use crate::error::{Outcome, ToolError};
use crate::sandbox::bindings::{EntryPoint, ScriptText};
use crate::sandbox::program::Sandbox;
use crate::sandbox::state::CallState;
use crate::sandbox::usage::Usage;
use crate::tool::Limits;

use super::execute::{FreshStore, call_export, early_exit};
use super::script::Interpreter;

/// Maximum size of an image, in bytes. A larger one is dropped.
const MAX_IMAGE: usize = 256 << 10;

/// Exports of an interpreter that makes images.
#[derive(Clone, Copy)]
pub(super) struct ImageExports {
    pub(super) read: ComponentExportIndex,
    pub(super) run: ComponentExportIndex,
    pub(super) handle: ComponentExportIndex,
}

/// Image of a script that was read, and the exports that start from it.
pub(crate) struct ScriptImage {
    pub(super) bytes: Box<[u8]>,
    pub(super) exports: ImageExports,
}

impl ScriptImage {
    /// Returns the size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }
}

impl Sandbox {
    /// Reads a script, and returns its image. `None` if it has none: it has a problem, it calls the host while it is read, it
    /// needs more time or memory than an image may, or the interpreter makes no images.
    ///
    /// # Errors
    ///
    /// The system has no room for an instance now.
    pub(crate) async fn read_script(
        &self,
        interpreter: &Interpreter,
        script: ScriptText<'_>,
        entry: EntryPoint,
        when: Option<&str>,
        limits: &Limits,
    ) -> Result<Option<ScriptImage>, ToolError> {
        let Interpreter { component, images, counts_fuel, .. } = interpreter;
        let Some(exports) = *images else { return Ok(None) };
        let Ok(component) = &without_imports(component.component()) else { return Ok(None) };
        let usage = &Arc::new(Usage::default());
        let store = FreshStore { config: self.bare(None, limits, usage), counts_fuel: *counts_fuel, limits, usage };
        let run = async |store: &mut Store<CallState>| {
            call_export::<_, Option<Vec<u8>>>(store, component, exports.read, (script, entry, when)).await
        };
        match self.execute(store, |_| early_exit("the interpreter exited while it read a script"), run).await {
            Ok(image) => Ok(image
                .filter(|image| image.len() <= MAX_IMAGE)
                .map(|image| ScriptImage { bytes: image.into(), exports })),
            Err(error) if error.outcome == Outcome::Busy => Err(error),
            Err(_) => Ok(None),
        }
    }
}

/// Links a component so that every call of an import ends it.
fn without_imports(component: &Component) -> wasmtime::Result<InstancePre<CallState>> {
    let mut linker = Linker::new(component.engine());
    linker.define_unknown_imports_as_traps(component)?;
    linker.instantiate_pre(component)
}
