//! Programs that call tools. An interpreter of programs is a guest without any grant: it returns the calls of its program, and
//! goes on in the same instance with their results. Its deadline counts only while it computes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, Instance, InstancePre};

use crate::error::{Outcome, ToolError};
use crate::sandbox::bindings::{CODE_INTERPRETER, CodeCallResult, CodeLimits, CodeProblem, CodeProgram, CodeStep};
use crate::sandbox::causes::OutputExceeded;
use crate::sandbox::compiler::CompileError;
use crate::sandbox::engine::GuestEngine;
use crate::sandbox::program::Sandbox;
use crate::sandbox::state::CallState;
use crate::sandbox::trap;
use crate::sandbox::usage::{Metered, Usage};
use crate::sandbox::wasi::CappedStream;
use crate::tool::Limits;

use super::execute::{Params, Returned, early_exit};

/// Error for an interpreter that exits instead of returning.
const INTERPRETER_EXITED: &str = "the interpreter exited before the program ended";

/// Minimum time to save a session, also if its program used all of its own.
const MIN_SAVE_TIME: Duration = Duration::from_secs(1);

/// Compiled and linked interpreter of programs.
pub(crate) struct CodeInterpreter {
    component: InstancePre<CallState>,
    check: ComponentExportIndex,
    run: ComponentExportIndex,
    resume: ComponentExportIndex,
    save: ComponentExportIndex,
    restore: ComponentExportIndex,
    /// Digest of the component, as `sha256:HEX`.
    digest: String,
    counts_fuel: bool,
}

impl CodeInterpreter {
    /// Takes the exports of a linked component.
    fn of(component: InstancePre<CallState>, digest: &str, counts_fuel: bool) -> Result<Self, CompileError> {
        let missing = |what: &str| CompileError::Program(format!("not an interpreter of programs: {what}"));
        let compiled = component.component();
        let interface = compiled
            .get_export_index(None, CODE_INTERPRETER)
            .ok_or_else(|| missing(&format!("it does not export `{CODE_INTERPRETER}`")))?;
        let export = |name: &str| {
            compiled
                .get_export_index(Some(&interface), name)
                .ok_or_else(|| missing(&format!("`{CODE_INTERPRETER}` has no `{name}`")))
        };
        let (check, run, resume) = (export("check")?, export("run")?, export("resume")?);
        let (save, restore) = (export("save")?, export("restore")?);
        Ok(Self { component, check, run, resume, save, restore, digest: digest.to_owned(), counts_fuel })
    }

    /// Returns the digest of the component, as `sha256:HEX`.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }
}

/// Live instance of an interpreter for one program.
pub(crate) struct CodeSession<'s> {
    engine: &'s GuestEngine,
    store: Store<CallState>,
    instance: Instance,
    interpreter: Arc<CodeInterpreter>,
    limits: Limits,
    /// Time that is left for the interpreter to compute.
    left: Duration,
    usage: Arc<Usage>,
}

impl Sandbox {
    /// Compiles and links an interpreter of programs, or loads it from the cache.
    ///
    /// # Errors
    ///
    /// [`CompileError::Program`] if the component is at fault, [`CompileError::System`] if the system is.
    pub(crate) fn prepare_code_interpreter(
        &self,
        digest: &str,
        read: impl FnOnce() -> Result<Bytes, CompileError>,
        counts_fuel: bool,
    ) -> Result<CodeInterpreter, CompileError> {
        let no_imports = |_: &mut _| Ok(());
        self.prepare_component((digest, read), counts_fuel, no_imports, |component| {
            CodeInterpreter::of(component, digest, counts_fuel)
        })
    }

    /// Starts a fresh instance of an interpreter, without any grant. Dropping the session ends it.
    ///
    /// # Errors
    ///
    /// The error that stopped the interpreter.
    pub(crate) async fn start_code(
        &self,
        interpreter: Arc<CodeInterpreter>,
        limits: Limits,
        usage: &Arc<Usage>,
    ) -> Result<CodeSession<'_>, ToolError> {
        let engine = self.engines.get(interpreter.counts_fuel);
        let engine = engine.map_err(|error| ToolError::new(Outcome::Trap, error.to_string()))?;
        let stderr = CappedStream::new(OutputExceeded::Stderr, limits.stderr, usage);
        let config = self.bare(Some(stderr), &limits, usage);
        let mut store = config.into_store(&engine.engine, &limits, usage, Instant::now());
        let mut left = limits.deadline;
        let instance = {
            let component = &interpreter.component;
            let start = async |store: &mut Store<CallState>| component.instantiate_async(store).await;
            computing(engine, &mut store, (&limits, &mut left), usage, start).await?
        };
        Ok(CodeSession { engine, store, instance, interpreter, limits, left, usage: usage.clone() })
    }
}

impl CodeSession<'_> {
    /// Returns the problems of a program that can be found without running it.
    ///
    /// # Errors
    ///
    /// The error that stopped the interpreter.
    pub(crate) async fn check(&mut self, program: CodeProgram<'_>) -> Result<Vec<CodeProblem>, ToolError> {
        self.call(|interpreter| interpreter.check, (program,)).await
    }

    /// Runs a program until it ends or calls tools.
    ///
    /// # Errors
    ///
    /// The error that stopped the interpreter.
    pub(crate) async fn run(&mut self, program: CodeProgram<'_>, limits: CodeLimits) -> Result<CodeStep, ToolError> {
        self.call(|interpreter| interpreter.run, (program, limits)).await
    }

    /// Continues the program with the results of calls.
    ///
    /// # Errors
    ///
    /// The error that stopped the interpreter.
    pub(crate) async fn resume(&mut self, results: &[CodeCallResult<'_>]) -> Result<CodeStep, ToolError> {
        self.call(|interpreter| interpreter.resume, (results,)).await
    }

    /// Returns the state of the session after a program that ended, or the reason why there is none.
    ///
    /// # Errors
    ///
    /// The error that stopped the interpreter.
    pub(crate) async fn save(&mut self) -> Result<Result<Vec<u8>, String>, ToolError> {
        self.left = self.left.max(MIN_SAVE_TIME);
        self.call(|interpreter| interpreter.save, ()).await
    }

    /// Restores the state of a session in a fresh instance, or returns the reason why it cannot be read.
    ///
    /// # Errors
    ///
    /// The error that stopped the interpreter.
    pub(crate) async fn restore(&mut self, state: &[u8]) -> Result<Result<(), String>, ToolError> {
        self.call(|interpreter| interpreter.restore, (state,)).await
    }

    async fn call<P: Params, R: Returned>(
        &mut self,
        export: impl Fn(&CodeInterpreter) -> ComponentExportIndex,
        params: P,
    ) -> Result<R, ToolError> {
        let (instance, export) = (self.instance, export(&self.interpreter));
        let call = async |store: &mut Store<CallState>| {
            let function = instance.get_typed_func::<P, (R,)>(&mut *store, export)?;
            let (value,) = function.call_async(&mut *store, params).await?;
            Ok(value)
        };
        computing(self.engine, &mut self.store, (&self.limits, &mut self.left), &self.usage, call).await
    }
}

/// Runs a part of a program, and takes its time from `left`.
async fn computing<T>(
    engine: &GuestEngine,
    store: &mut Store<CallState>,
    (limits, left): (&Limits, &mut Duration),
    usage: &Arc<Usage>,
    part: impl AsyncFnOnce(&mut Store<CallState>) -> wasmtime::Result<T>,
) -> Result<T, ToolError> {
    let _ticks = engine.tick();
    let begin = Instant::now();
    let deadline = begin + *left;
    let fuel = store.get_fuel().unwrap_or_default();
    store.data_mut().set_deadline(deadline);
    store.set_epoch_deadline(1);
    let running = Metered { inner: Box::pin(part(store)), usage, deadline };
    let ended = tokio::time::timeout_at(deadline.into(), running).await;
    *left = left.saturating_sub(begin.elapsed());
    usage.fuel.fetch_add(fuel.saturating_sub(store.get_fuel().unwrap_or_default()), Relaxed);
    match ended.ok().flatten().ok_or_else(trap::timed_out)? {
        Ok(value) => Ok(value),
        Err(error) => {
            trap::classify(&error, usage, limits)?;
            early_exit(INTERPRETER_EXITED).map_err(|error| trap::after_exit(error, usage, limits))
        }
    }
}
