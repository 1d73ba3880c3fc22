//! The interpreter of scripts, and the images of scripts that it has read: no script spends its time on the interpreter's
//! compilation or on its own reading.

use std::sync::Arc;

use crate::error::ToolError;
use crate::sandbox::{EntryPoint, Interpreter, Sandbox, ScriptSource};
use crate::tool::Script;

use super::PreparedTool;
use super::host_component::{HostComponent, InterpreterSource};
use super::image::ImageReader;

/// The interpreter of scripts with its images.
pub(crate) struct Interpreters {
    component: HostComponent<Interpreter>,
    images: ImageReader,
}

impl Interpreters {
    /// Creates the state of an interpreter that is not compiled; without a component no script can run.
    pub(crate) fn new(sandbox: Arc<Sandbox>, component: Option<InterpreterSource>) -> Self {
        let images = ImageReader::new(sandbox.clone());
        let prepare = |sandbox: &Sandbox, digest: &str, read: &dyn Fn() -> _, counts_fuel| {
            sandbox.prepare_interpreter(digest, read, counts_fuel)
        };
        Self { component: HostComponent::new(sandbox, component, "interpreter of scripts", prepare), images }
    }

    /// Returns the interpreter for the scripts of a tool or hook.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadComponent`](crate::error::Outcome::BadComponent) if there is no interpreter, or it cannot run.
    pub(crate) async fn interpreter(&self, prepared: &PreparedTool) -> Result<Arc<Interpreter>, ToolError> {
        self.component.get(prepared).await
    }

    /// Returns `true` if the interpreter for the scripts of a tool is loaded, or the cache contains its code.
    pub(crate) async fn is_compiled(&self, prepared: &PreparedTool) -> bool {
        self.component.is_compiled(prepared).await
    }

    /// Returns the form of a named script for the next call: its image if there is one, else its text.
    pub(crate) fn source<'a>(
        &self,
        interpreter: &Arc<Interpreter>,
        prepared: &'a PreparedTool,
        script: (&'a str, &'a Script),
        entry: EntryPoint,
        when: Option<&str>,
    ) -> ScriptSource<'a> {
        self.images.source(interpreter, prepared, script, entry, when)
    }
}
