//! Programs that call tools. An interpreter of programs is a guest without any grant: it returns the calls of its program, and
//! goes on in the same instance with their results, or waits for them in an import. Its deadline counts only while it computes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{self, BoxFuture};
use tokio::sync::{mpsc, oneshot};
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, Instance, InstancePre};

use crate::error::{Outcome, ToolError};
use crate::sandbox::bindings::{
    CODE_INTERPRETER, CodeCall, CodeCallResult, CodeCompletion, CodeFailure, CodeLimits, CodeProblem, CodeProgram,
    CodeStep,
};
use crate::sandbox::causes::OutputExceeded;
use crate::sandbox::compiler::CompileError;
use crate::sandbox::engine::GuestEngine;
use crate::sandbox::imports::add_code_imports;
use crate::sandbox::program::Sandbox;
use crate::sandbox::services::HostServices;
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

/// End of a program.
pub(crate) enum CodeEnd {
    Finished(CodeCompletion),
    Failed(CodeFailure),
}

/// Function that makes calls of a program: it returns one result for each, or the error that ends the program.
pub(crate) type MakeCalls<'a> =
    dyn Fn(Vec<CodeCall>) -> BoxFuture<'a, Result<Vec<CodeCallResult>, ToolError>> + Sync + 'a;

/// Calls for which an interpreter waits.
struct Waiting {
    calls: Vec<CodeCall>,
    /// Their results, and the new deadline of the interpreter.
    results: oneshot::Sender<(Vec<CodeCallResult>, Instant)>,
}

/// Service for an interpreter that waits for its program's calls.
struct WaitedCalls(mpsc::Sender<Waiting>);

impl HostServices for WaitedCalls {
    fn make(&self, calls: Vec<CodeCall>) -> BoxFuture<'_, Result<(Vec<CodeCallResult>, Instant), String>> {
        let made = async {
            let (results, made) = oneshot::channel();
            self.0.send(Waiting { calls, results }).await.ok()?;
            made.await.ok()
        };
        made.map(|made| made.ok_or_else(|| "only a program that runs can call tools".to_owned())).boxed()
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
    waiting: mpsc::Receiver<Waiting>,
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
        self.prepare_component((digest, read), counts_fuel, add_code_imports, |component| {
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
        let (sender, mut waiting) = mpsc::channel(1);
        let services: Arc<dyn HostServices> = Arc::new(WaitedCalls(sender));
        let config = self.bare(Some(stderr), &limits, usage).with_services(services);
        let mut store = config.into_store(&engine.engine, &limits, usage, Instant::now());
        let mut left = limits.deadline;
        let instance = {
            let component = &interpreter.component;
            let start = async |store: &mut Store<CallState>| component.instantiate_async(store).await;
            let time = (&limits, &mut left);
            computing(engine, &mut store, time, usage, start, (&mut waiting, &no_calls)).await?
        };
        Ok(CodeSession { engine, store, instance, interpreter, limits, left, usage: usage.clone(), waiting })
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

    /// Runs a program to its end. `make` makes its calls, and returns one result for each.
    ///
    /// # Errors
    ///
    /// The error that stopped the interpreter, or that of `make`.
    pub(crate) async fn run(
        &mut self,
        program: CodeProgram<'_>,
        limits: CodeLimits,
        make: &MakeCalls<'_>,
    ) -> Result<CodeEnd, ToolError> {
        let mut step = self.call_making(|interpreter| interpreter.run, (program, limits), make).await?;
        loop {
            let results = match step {
                CodeStep::Finished(completion) => return Ok(CodeEnd::Finished(completion)),
                CodeStep::Failed(failure) => return Ok(CodeEnd::Failed(failure)),
                CodeStep::Calls(calls) => make(calls).await?,
            };
            step = self.call(|interpreter| interpreter.resume, (&*results,)).await?;
        }
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
        self.call_making(export, params, &no_calls).await
    }

    async fn call_making<P: Params, R: Returned>(
        &mut self,
        export: impl Fn(&CodeInterpreter) -> ComponentExportIndex,
        params: P,
        make: &MakeCalls<'_>,
    ) -> Result<R, ToolError> {
        let (instance, export) = (self.instance, export(&self.interpreter));
        let call = async |store: &mut Store<CallState>| {
            let function = instance.get_typed_func::<P, (R,)>(&mut *store, export)?;
            let (value,) = function.call_async(&mut *store, params).await?;
            Ok(value)
        };
        let time = (&self.limits, &mut self.left);
        computing(self.engine, &mut self.store, time, &self.usage, call, (&mut self.waiting, make)).await
    }
}

/// Refuses calls at a time when no program runs.
fn no_calls(_: Vec<CodeCall>) -> BoxFuture<'static, Result<Vec<CodeCallResult>, ToolError>> {
    let refused = ToolError::new(Outcome::BadComponent, "the interpreter called a tool while no program ran");
    future::ready(Err(refused)).boxed()
}

/// Runs a part of a program, and takes its time from `left`. Calls for which the interpreter waits take none of it.
async fn computing<T>(
    engine: &GuestEngine,
    store: &mut Store<CallState>,
    (limits, left): (&Limits, &mut Duration),
    usage: &Arc<Usage>,
    part: impl AsyncFnOnce(&mut Store<CallState>) -> wasmtime::Result<T>,
    (waiting, make): (&mut mpsc::Receiver<Waiting>, &MakeCalls<'_>),
) -> Result<T, ToolError> {
    let mut begin = Instant::now();
    let deadline = begin + *left;
    let fuel = store.get_fuel().unwrap_or_default();
    store.data_mut().set_deadline(deadline);
    store.set_epoch_deadline(1);
    let mut running = Metered { inner: Box::pin(part(store)), usage, deadline };
    let ended = loop {
        let ticks = engine.tick();
        let asked = tokio::select! {
            biased;
            ended = tokio::time::timeout_at(running.deadline.into(), &mut running) => break Ok(ended.ok().flatten()),
            Some(asked) = waiting.recv() => asked,
        };
        *left = left.saturating_sub(begin.elapsed());
        drop(ticks);
        let made = make(asked.calls).await;
        begin = Instant::now();
        let results = match made {
            Ok(results) => results,
            Err(error) => break Err(error),
        };
        running.deadline = begin + *left;
        // An interpreter that no longer waits has ended.
        let _ = asked.results.send((results, running.deadline));
    };
    drop(running);
    *left = left.saturating_sub(begin.elapsed());
    usage.fuel.fetch_add(fuel.saturating_sub(store.get_fuel().unwrap_or_default()), Relaxed);
    match ended?.ok_or_else(trap::timed_out)? {
        Ok(value) => Ok(value),
        Err(error) => {
            trap::classify(&error, usage, limits)?;
            early_exit(INTERPRETER_EXITED).map_err(|error| trap::after_exit(error, usage, limits))
        }
    }
}
