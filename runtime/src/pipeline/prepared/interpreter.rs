//! Compiles the interpreter of scripts once for all of them, and once more with fuel counting. Compilation is
//! the host's own work: no script spends its time on it. So is the reading of scripts for their images.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;

use crate::error::{Outcome, ToolError};
use crate::sandbox::compiler::CompileError;
use crate::sandbox::{EntryPoint, Interpreter, Sandbox, ScriptSource};
use crate::source;
use crate::tool::Script;

use super::PreparedTool;
use super::compile_once::{CompileOnce, Compiled};
use super::image::ImageReader;
use super::program::NOT_NOW;

/// The interpreter's bytes and its two compiled forms.
pub(crate) struct Interpreters {
    sandbox: Arc<Sandbox>,
    bytes: Option<Bytes>,
    plain: CompileOnce<Interpreter>,
    metered: CompileOnce<Interpreter>,
    images: ImageReader,
}

impl Interpreters {
    /// Creates the state of an interpreter that is not compiled; without `bytes` no script can run.
    pub(crate) fn new(sandbox: Arc<Sandbox>, bytes: Option<Bytes>) -> Self {
        let images = ImageReader::new(sandbox.clone());
        Self { sandbox, bytes, plain: CompileOnce::default(), metered: CompileOnce::default(), images }
    }

    /// Returns the interpreter for the scripts of a tool or hook.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadComponent`] if there is no interpreter, or it cannot run.
    pub(crate) async fn interpreter(&self, prepared: &PreparedTool) -> Result<Arc<Interpreter>, ToolError> {
        let bad = |why: &str| ToolError::new(Outcome::BadComponent, why);
        let bytes = self.bytes.as_ref().ok_or_else(|| bad("no script interpreter is configured"))?;
        let counts_fuel = prepared.limits.fuel.is_some();
        let start = || {
            let (sandbox, bytes) = (self.sandbox.clone(), bytes.clone());
            let compiled = tokio::task::spawn_blocking(move || compile(&sandbox, &bytes, counts_fuel));
            let compiled =
                compiled.map(|ended| ended.unwrap_or_else(|_| Err("its compilation did not finish".to_owned())));
            compiled.boxed().shared()
        };
        match self.once(counts_fuel).finish(start).await {
            Ok(compiled) => compiled.map_err(|why| bad(&format!("the interpreter of scripts cannot be run: {why}"))),
            Err(_) => Err(bad(NOT_NOW)),
        }
    }

    /// Returns `true` if the interpreter for the scripts of a tool is loaded, or the cache contains its code.
    pub(crate) async fn is_compiled(&self, prepared: &PreparedTool) -> bool {
        let Some(bytes) = self.bytes.clone() else { return false };
        let counts_fuel = prepared.limits.fuel.is_some();
        let sandbox = self.sandbox.clone();
        let find = move || {
            let digest = source::digest(&bytes);
            sandbox.has_linked_interpreter(&digest, counts_fuel).then_some(digest)
        };
        self.once(counts_fuel).is_compiled(find).await
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

    /// Returns the state of the interpreter, with or without fuel counting.
    fn once(&self, counts_fuel: bool) -> &CompileOnce<Interpreter> {
        if counts_fuel { &self.metered } else { &self.plain }
    }
}

/// Compiles the interpreter. The outer error is the system's, the inner one the interpreter's own.
fn compile(sandbox: &Sandbox, bytes: &[u8], counts_fuel: bool) -> Result<Compiled<Interpreter>, String> {
    match sandbox.prepare_interpreter(bytes, counts_fuel) {
        Ok(interpreter) => Ok(Ok(Arc::new(interpreter))),
        Err(CompileError::Program(reason)) => Ok(Err(reason)),
        Err(error) => Err(error.text()),
    }
}
