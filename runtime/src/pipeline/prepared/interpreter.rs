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
    component: Arc<HostComponent<Interpreter>>,
    images: Arc<ImageReader>,
}

impl Interpreters {
    /// Creates the state of an interpreter that is not compiled; without a component no script can run.
    pub(crate) fn new(sandbox: Arc<Sandbox>, component: Option<InterpreterSource>) -> Self {
        let images = Arc::new(ImageReader::new(sandbox.clone()));
        Self { component: Self::compiled_once(sandbox, component), images }
    }

    /// Creates the state of another runtime in the same sandbox, which shares the compiled interpreter if it is the same.
    pub(crate) fn with_component(&self, sandbox: &Arc<Sandbox>, component: Option<InterpreterSource>) -> Self {
        let is_same = self.component.is_of(component.as_ref());
        let component = if is_same { self.component.clone() } else { Self::compiled_once(sandbox.clone(), component) };
        Self { component, images: self.images.clone() }
    }

    fn compiled_once(sandbox: Arc<Sandbox>, component: Option<InterpreterSource>) -> Arc<HostComponent<Interpreter>> {
        let prepare = |sandbox: &Sandbox, digest: &str, read: &dyn Fn() -> _, counts_fuel| {
            sandbox.prepare_interpreter(digest, read, counts_fuel)
        };
        Arc::new(HostComponent::new(sandbox, component, "interpreter of scripts", prepare))
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

    /// Returns `true` if the cache contains the interpreter's code for a tool's scripts.
    pub(crate) async fn is_cached(&self, prepared: &PreparedTool) -> bool {
        self.component.is_cached(prepared).await
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
