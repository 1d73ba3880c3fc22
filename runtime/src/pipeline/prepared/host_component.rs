//! A component that the host brings, such as an interpreter. It is compiled at most once without fuel counting and once with it,
//! and compilation is the host's own work: no tool spends its time on it.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;

use crate::error::{Outcome, ToolError};
use crate::sandbox::Sandbox;
use crate::sandbox::compiler::CompileError;
use crate::source;

use super::PreparedTool;
use super::compile_once::{CompileOnce, Compiled};
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

impl PartialEq for InterpreterSource {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bytes(own), Self::Bytes(other)) => own == other,
            (Self::Stored(own, _), Self::Stored(other, _)) => own == other,
            _ => false,
        }
    }
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

/// Compiles a component with this digest; `read` returns its bytes if the cache has no code for them. `true` counts fuel.
type Prepare<T> = fn(&Sandbox, &str, &dyn Fn() -> Result<Bytes, CompileError>, bool) -> Result<T, CompileError>;

/// A component of the host and its two compiled forms.
pub(crate) struct HostComponent<T> {
    sandbox: Arc<Sandbox>,
    component: Option<InterpreterSource>,
    /// Name of the component in errors.
    name: &'static str,
    prepare: Prepare<T>,
    plain: CompileOnce<T>,
    metered: CompileOnce<T>,
}

impl<T: Send + Sync + 'static> HostComponent<T> {
    /// Creates the state of a component that is not compiled.
    pub(super) fn new(
        sandbox: Arc<Sandbox>,
        component: Option<InterpreterSource>,
        name: &'static str,
        prepare: Prepare<T>,
    ) -> Self {
        Self { sandbox, component, name, prepare, plain: CompileOnce::default(), metered: CompileOnce::default() }
    }

    /// Returns `true` if this is the state of `component`.
    pub(super) fn is_of(&self, component: Option<&InterpreterSource>) -> bool {
        self.component.as_ref() == component
    }

    /// Returns the compiled component for a tool or hook.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadComponent`] if there is no component, or it cannot run.
    pub(super) async fn get(&self, prepared: &PreparedTool) -> Result<Arc<T>, ToolError> {
        let (bad, name) = (|why: &str| ToolError::new(Outcome::BadComponent, why), self.name);
        let component = self.component.as_ref().ok_or_else(|| bad(&format!("no {name} is configured")))?;
        let counts_fuel = prepared.limits.fuel.is_some();
        let start = || {
            let (sandbox, component, prepare) = (self.sandbox.clone(), component.clone(), self.prepare);
            let compiled = tokio::task::spawn_blocking(move || compile(&sandbox, &component, prepare, counts_fuel));
            let compiled =
                compiled.map(|ended| ended.unwrap_or_else(|_| Err("its compilation did not finish".to_owned())));
            compiled.boxed().shared()
        };
        match self.once(counts_fuel).finish(start).await {
            Ok(compiled) => compiled.map_err(|why| bad(&format!("the {name} cannot be run: {why}"))),
            Err(_) => Err(bad(NOT_NOW)),
        }
    }

    /// Returns `true` if the component for a tool is loaded, or the cache contains its code.
    pub(super) async fn is_compiled(&self, prepared: &PreparedTool) -> bool {
        let counts_fuel = prepared.limits.fuel.is_some();
        self.once(counts_fuel).is_compiled(self.finder(counts_fuel)).await
    }

    /// Returns `true` if the cache contains the code of the component for a tool.
    pub(super) async fn is_cached(&self, prepared: &PreparedTool) -> bool {
        let find = self.finder(prepared.limits.fuel.is_some());
        tokio::task::spawn_blocking(find).await.is_ok_and(|digest| digest.is_some())
    }

    /// Returns a function that finds the code of the component in the cache, and returns the component's digest.
    fn finder(&self, counts_fuel: bool) -> impl FnOnce() -> Option<String> + Send + use<T> {
        let (sandbox, component) = (self.sandbox.clone(), self.component.clone());
        move || {
            let component = component?;
            let digest = component.digest();
            sandbox.has_linked_interpreter(&digest, counts_fuel).then(|| digest.into_owned())
        }
    }

    /// Returns the state of the component, with or without fuel counting.
    fn once(&self, counts_fuel: bool) -> &CompileOnce<T> {
        if counts_fuel { &self.metered } else { &self.plain }
    }
}

/// Compiles the component. The outer error is the system's, the inner one the component's own.
fn compile<T>(
    sandbox: &Sandbox,
    component: &InterpreterSource,
    prepare: Prepare<T>,
    counts_fuel: bool,
) -> Result<Compiled<T>, String> {
    match prepare(sandbox, &component.digest(), &|| component.read(), counts_fuel) {
        Ok(compiled) => Ok(Ok(Arc::new(compiled))),
        Err(CompileError::Program(reason)) => Ok(Err(reason)),
        Err(error) => Err(error.text()),
    }
}
