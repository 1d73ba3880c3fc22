//! Compiles tool programs: each file once, and two files of the same bytes once together.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use futures::FutureExt;

use crate::error::{Error, Outcome, ToolError};
use crate::pipeline::recorder::CallRecorder;
use crate::sandbox::compiler::CompileError;
use crate::sandbox::{Program, Sandbox};
use crate::source::{self, OpenBundle};

use super::ToolEntry;
use super::compile_once::Compiled;

/// Message for the model if the system fails to compile a program. The reason is for the operator alone, and may pass.
pub(super) const NOT_NOW: &str =
    "the host cannot prepare the tool's program right now; the call itself is not at fault";

/// Compiles the programs of all tools in a runtime.
pub(crate) struct ProgramCompiler {
    sandbox: Arc<Sandbox>,
    cells: Arc<ProgramCells>,
    /// Bundles of the sources, held so that each is opened once.
    _bundles: Vec<Arc<OpenBundle>>,
}

/// Cell of a compiled program: empty until it is compiled, and once no tool has it any more.
type ProgramCell = Arc<Mutex<Weak<Program>>>;

/// Compiled programs by digest and by `true` if their fuel is counted. Runtimes can share them.
#[derive(Default)]
struct ProgramCells(Mutex<HashMap<(String, bool), ProgramCell>>);

impl ProgramCells {
    /// Returns the cell of a program. The holder of its lock compiles the program.
    fn cell(&self, digest: String, counts_fuel: bool) -> ProgramCell {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (digest, counts_fuel);
        if let Some(cell) = cells.get(&key) {
            return cell.clone();
        }
        let is_used = |cell: &ProgramCell| {
            Arc::strong_count(cell) > 1 || cell.try_lock().is_ok_and(|program| program.strong_count() > 0)
        };
        cells.retain(|_, cell| is_used(cell));
        cells.entry(key).or_default().clone()
    }
}

impl ProgramCompiler {
    /// Creates a compiler that runs in this sandbox and reads programs from these bundles, among others.
    pub(crate) fn new(sandbox: Arc<Sandbox>, bundles: Vec<Arc<OpenBundle>>) -> Self {
        Self { sandbox, cells: Arc::default(), _bundles: bundles }
    }

    /// Creates the compiler of another runtime, which shares the compiled programs.
    pub(crate) fn with_bundles(&self, bundles: Vec<Arc<OpenBundle>>) -> Self {
        Self { sandbox: self.sandbox.clone(), cells: self.cells.clone(), _bundles: bundles }
    }

    /// Returns the compiled program of a tool.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] if the program cannot run.
    pub(crate) async fn program(&self, entry: ToolEntry<'_>) -> Result<Arc<Program>, Error> {
        let bad = |reason| bad_component(entry, reason);
        self.compiled(entry).await.map_err(bad)?.map_err(bad)
    }

    /// Returns `true` if a tool's program is loaded, or the cache contains its code.
    pub(crate) async fn is_compiled(&self, entry: ToolEntry<'_>) -> bool {
        entry.prepared.program.is_compiled(self.finder(entry)).await
    }

    /// Returns `true` if the cache contains the code of a tool's program.
    pub(crate) async fn is_cached(&self, entry: ToolEntry<'_>) -> bool {
        tokio::task::spawn_blocking(self.finder(entry)).await.is_ok_and(|digest| digest.is_some())
    }

    /// Returns a function that finds the code of a tool's program in the cache, and returns the program's digest.
    fn finder(&self, entry: ToolEntry<'_>) -> impl FnOnce() -> Option<String> + Send + use<> {
        let (sandbox, path) = (self.sandbox.clone(), path(entry).to_path_buf());
        let counts_fuel = entry.prepared.limits.fuel.is_some();
        let pin = entry.tool.origin.pin.clone();
        move || {
            // An error is found again, and reported, where the program is compiled.
            let digest = pinned_digest(&path, pin.as_deref()).ok();
            digest.filter(|digest| sandbox.has_linked_tool(digest, counts_fuel))
        }
    }

    /// Returns the compiled program for a call, which waits at most until its deadline.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadComponent`], or [`Outcome::Deadline`] if the program is not compiled by then.
    pub(crate) async fn program_in_time(
        &self,
        entry: ToolEntry<'_>,
        recorder: &mut CallRecorder<'_>,
    ) -> Result<Arc<Program>, ToolError> {
        let prepared = entry.prepared;
        if let Some(program) = prepared.program.get() {
            return Ok(program.clone());
        }
        let remaining = recorder.remaining(&prepared.limits)?;
        let since = Instant::now();
        let compiled = Box::pin(tokio::time::timeout(remaining.deadline, self.compiled(entry))).await;
        recorder.budget.spend(since.elapsed());
        match compiled {
            Ok(Ok(compiled)) => compiled.map_err(|reason| recorder.fault(bad_component(entry, reason))),
            Ok(Err(reason)) => {
                recorder.fault(bad_component(entry, reason));
                Err(ToolError::new(Outcome::BadComponent, NOT_NOW))
            }
            Err(_) => Err(ToolError::new(Outcome::Deadline, "tool timed out while its program was compiled")),
        }
    }

    async fn compiled(&self, entry: ToolEntry<'_>) -> Result<Compiled<Program>, String> {
        let start = || {
            let (sandbox, cells, path) = (self.sandbox.clone(), self.cells.clone(), path(entry).to_path_buf());
            let counts_fuel = entry.prepared.limits.fuel.is_some();
            // The program that was found is the one that is loaded.
            let pin = entry.tool.origin.pin.as_ref().or(entry.prepared.program.found()).cloned();
            let compiled =
                tokio::task::spawn_blocking(move || compile(&sandbox, &cells, &path, pin.as_deref(), counts_fuel));
            let compiled = compiled.map(|compiled| match compiled {
                Ok(compiled) => compiled,
                Err(broken) if broken.is_panic() => Ok(Err("the compiler crashed on it".to_owned())),
                Err(_) => Err("compilation of the program did not finish".to_owned()),
            });
            compiled.boxed().shared()
        };
        entry.prepared.program.finish(start).await
    }
}

fn path(entry: ToolEntry<'_>) -> &Path {
    entry.tool.body.program().unwrap_or(Path::new(""))
}

fn bad_component(entry: ToolEntry<'_>, reason: String) -> Error {
    Error::Component { path: path(entry).to_path_buf(), reason }
}

/// Reads and compiles a program. The outer error is the system's, the inner one the program's own.
fn compile(
    sandbox: &Sandbox,
    cells: &ProgramCells,
    path: &Path,
    pin: Option<&str>,
    counts_fuel: bool,
) -> Result<Compiled<Program>, String> {
    match prepare(sandbox, cells, path, pin, counts_fuel) {
        Ok(program) => Ok(Ok(program)),
        Err(CompileError::Program(reason)) => Ok(Err(reason)),
        Err(error) => Err(error.text()),
    }
}

fn prepare(
    sandbox: &Sandbox,
    cells: &ProgramCells,
    path: &Path,
    pin: Option<&str>,
    counts_fuel: bool,
) -> Result<Arc<Program>, CompileError> {
    // Compiled code of a digest belongs to these bytes and to no others, so it is looked for before the bytes are read:
    // they are needed only to compile them.
    let digest = pinned_digest(path, pin)?;
    let cell = cells.cell(digest.clone(), counts_fuel);
    let mut cell = cell.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = cell.upgrade() {
        return Ok(program);
    }
    let mut keep = |program| {
        let program = Arc::new(program);
        *cell = Arc::downgrade(&program);
        program
    };
    if let Some(program) = sandbox.prepare_cached(&digest, counts_fuel)? {
        return Ok(keep(program));
    }
    let bytes = source::program_bytes(path).map_err(unreadable)?;
    if source::digest(&bytes) != digest {
        return Err(CompileError::system("the program changed while it was read"));
    }
    Ok(keep(sandbox.prepare(&bytes, digest, counts_fuel)?))
}

/// Returns the digest of a program, which must match its pin.
fn pinned_digest(path: &Path, pin: Option<&str>) -> Result<String, CompileError> {
    let digest = source::fingerprint(path).map_err(unreadable)?.digest;
    match pin {
        Some(pin) if pin != digest => {
            Err(CompileError::Program("the program has changed since its source was reviewed or loaded".to_owned()))
        }
        _ => Ok(digest),
    }
}

fn unreadable(error: io::Error) -> CompileError {
    match error.get_ref() {
        _ if error.kind() == ErrorKind::FileTooLarge => CompileError::Program(error.to_string()),
        Some(reason) => CompileError::system(format!("the program cannot be read: {reason}")),
        None => CompileError::system(format!("the program cannot be read: {}", error.kind())),
    }
}
