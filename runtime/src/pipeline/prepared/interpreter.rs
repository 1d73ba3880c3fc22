//! Compiles the script interpreter once for all scripts, and once more with fuel counting. Compilation is the host's
//! own work: no script spends its time on it. So is the reading of scripts for their images.

use std::borrow::Cow;
use std::io;
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

/// Reads the component of an interpreter.
pub(crate) type ReadInterpreter = dyn Fn() -> io::Result<Vec<u8>> + Send + Sync;

/// Component of the interpreter.
#[derive(Clone)]
pub(crate) enum InterpreterSource {
    /// Its bytes.
    Bytes(Bytes),
    /// Its digest, as `sha256:HEX`. Its bytes are read only to be compiled.
    Stored(Arc<str>, Arc<ReadInterpreter>),
}

impl InterpreterSource {
    /// Returns the digest of the component.
    fn digest(&self) -> Cow<'_, str> {
        match self {
            Self::Bytes(bytes) => source::digest(bytes).into(),
            Self::Stored(digest, _) => (&**digest).into(),
        }
    }

    /// Returns the bytes of the component.
    fn read(&self) -> Result<Bytes, CompileError> {
        let (stated, read) = match self {
            Self::Bytes(bytes) => return Ok(bytes.clone()),
            Self::Stored(digest, read) => (digest, read),
        };
        let bytes = read().map_err(|error| CompileError::system("its component cannot be read").caused_by(error))?;
        let found = source::digest(&bytes);
        if *found != **stated {
            return Err(CompileError::Program(format!("its component has the digest {found}, and not {stated}")));
        }
        Ok(bytes.into())
    }
}

/// The interpreter's component and its two compiled forms.
pub(crate) struct Interpreters {
    sandbox: Arc<Sandbox>,
    component: Option<InterpreterSource>,
    plain: CompileOnce<Interpreter>,
    metered: CompileOnce<Interpreter>,
    images: ImageReader,
}

impl Interpreters {
    /// Creates the state of an interpreter that is not compiled; without a component no script can run.
    pub(crate) fn new(sandbox: Arc<Sandbox>, component: Option<InterpreterSource>) -> Self {
        let images = ImageReader::new(sandbox.clone());
        Self { sandbox, component, plain: CompileOnce::default(), metered: CompileOnce::default(), images }
    }

    /// Returns the interpreter for the scripts of a tool or hook.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadComponent`] if there is no interpreter, or it cannot run.
    pub(crate) async fn interpreter(&self, prepared: &PreparedTool) -> Result<Arc<Interpreter>, ToolError> {
        let bad = |why: &str| ToolError::new(Outcome::BadComponent, why);
        let component = self.component.as_ref().ok_or_else(|| bad("no script interpreter is configured"))?;
        let counts_fuel = prepared.limits.fuel.is_some();
        let start = || {
            let (sandbox, component) = (self.sandbox.clone(), component.clone());
            let compiled = tokio::task::spawn_blocking(move || compile(&sandbox, &component, counts_fuel));
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
        let Some(component) = self.component.clone() else { return false };
        let counts_fuel = prepared.limits.fuel.is_some();
        let sandbox = self.sandbox.clone();
        let find = move || {
            let digest = component.digest();
            sandbox.has_linked_interpreter(&digest, counts_fuel).then(|| digest.into_owned())
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
fn compile(
    sandbox: &Sandbox,
    component: &InterpreterSource,
    counts_fuel: bool,
) -> Result<Compiled<Interpreter>, String> {
    match sandbox.prepare_interpreter(&component.digest(), || component.read(), counts_fuel) {
        Ok(interpreter) => Ok(Ok(Arc::new(interpreter))),
        Err(CompileError::Program(reason)) => Ok(Err(reason)),
        Err(error) => Err(error.text()),
    }
}
