//! Images of scripts: the memory of the interpreter after it has read a script, which every call of the script starts from.
//! The interpreter that reads has no imports, so an image holds nothing but the script. It comes from a guest and is not
//! checked: it only ever returns to an instance of the same interpreter.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{Component, InstancePre, Linker};

use crate::sandbox::bindings::{EntryPoint, ScriptText};
use crate::sandbox::program::Sandbox;
use crate::sandbox::state::CallState;
use crate::sandbox::usage::Usage;
use crate::tool::Limits;

use super::execute::{FreshStore, call_export, early_exit};
use super::script::Interpreter;

/// Maximum size of an image, in bytes. A larger one is dropped.
const MAX_IMAGE: usize = 256 << 10;

/// Image of a script that was read.
pub(crate) struct ScriptImage(Box<[u8]>);

impl ScriptImage {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Sandbox {
    /// Reads a script, and returns its image. `None` if it has none: it has a problem, it calls the host while it is read, or
    /// it needs more time or memory than an image may.
    pub(crate) async fn read_script(
        &self,
        interpreter: &Interpreter,
        script: ScriptText<'_>,
        entry: EntryPoint,
        when: Option<&str>,
        limits: &Limits,
    ) -> Option<ScriptImage> {
        let Interpreter { component, read, counts_fuel, .. } = interpreter;
        let component = &without_imports(component.component()).ok()?;
        let usage = &Arc::new(Usage::default());
        let store = FreshStore { config: self.bare(None, limits, usage), counts_fuel: *counts_fuel, limits, usage };
        let run = async |store: &mut Store<CallState>| {
            call_export::<_, Option<Vec<u8>>>(store, component, *read, (script, entry, when)).await
        };
        let image = self.execute(store, |_| early_exit("the interpreter exited while it read a script"), run).await;
        image.ok()?.filter(|image| image.len() <= MAX_IMAGE).map(|image| ScriptImage(image.into()))
    }
}

/// Links a component so that every call of an import ends it.
fn without_imports(component: &Component) -> wasmtime::Result<InstancePre<CallState>> {
    let mut linker = Linker::new(component.engine());
    linker.define_unknown_imports_as_traps(component)?;
    linker.instantiate_pre(component)
}
