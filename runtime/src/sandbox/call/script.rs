//! Calls of scripts. The interpreter is a guest with exports of its own; every call gets a fresh instance, which starts from
//! the memory that the interpreter had when it was built. A call with the image of its script goes on from there with the
//! memory that the interpreter had when it had read the script.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, InstancePre};

use crate::error::ToolError;
use crate::sandbox::bindings::{EntryPoint, INTERPRETER, ScriptProblem, ScriptText};
use crate::sandbox::causes::OutputExceeded;
use crate::sandbox::compiler::CompileError;
use crate::sandbox::guest_io::{GuestInput, GuestOutput, Streams};
use crate::sandbox::imports::add_script_imports;
use crate::sandbox::program::Sandbox;
use crate::sandbox::services::HostServices;
use crate::sandbox::state::CallState;
use crate::sandbox::trap;
use crate::sandbox::usage::Usage;
use crate::sandbox::wasi::CappedStream;
use crate::tool::Limits;

use super::execute::{FreshStore, call_export, early_exit};
use super::script_image::{ImageExports, ScriptImage};

/// Error for an interpreter that exits instead of returning.
const INTERPRETER_EXITED: &str = "the interpreter exited before the script returned";

/// Compiled and linked interpreter.
pub(crate) struct Interpreter {
    pub(super) component: InstancePre<CallState>,
    check: ComponentExportIndex,
    run: ComponentExportIndex,
    handle: ComponentExportIndex,
    /// `None` if it makes no images of scripts.
    pub(super) images: Option<ImageExports>,
    pub(super) counts_fuel: bool,
}

impl Interpreter {
    /// Takes the exports of a linked component.
    fn of(component: InstancePre<CallState>, counts_fuel: bool) -> Result<Self, CompileError> {
        let missing = |what: &str| CompileError::Program(format!("not a script interpreter: {what}"));
        let compiled = component.component();
        let interface = compiled
            .get_export_index(None, INTERPRETER)
            .ok_or_else(|| missing(&format!("it does not export `{INTERPRETER}`")))?;
        let export = |name: &str| {
            compiled
                .get_export_index(Some(&interface), name)
                .ok_or_else(|| missing(&format!("`{INTERPRETER}` has no `{name}`")))
        };
        let (check, run, handle) = (export("check")?, export("run")?, export("handle")?);
        let images = || {
            let [read, run, handle] = [export("read").ok()?, export("run-image").ok()?, export("handle-image").ok()?];
            Some(ImageExports { read, run, handle })
        };
        let images = images();
        Ok(Self { component, check, run, handle, images, counts_fuel })
    }
}

/// Form in which the interpreter gets a script.
pub(crate) enum ScriptSource<'a> {
    /// Text, which the call reads.
    Text(ScriptText<'a>),
    /// Image of the script after it was read.
    Image(&'a ScriptImage),
}

/// Function of a script to call, with its parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ScriptCall<'a> {
    /// `run` with these arguments.
    Run { arguments: &'a str },
    /// `handle` with this event, if the condition of the hook is true.
    Handle { when: Option<&'a str>, event: &'a str, payload: &'a str },
}

/// JSON that a script returned, none if the condition of a hook is false; or the script's problem.
type ScriptResult = Result<Option<String>, ScriptProblem>;

impl Sandbox {
    /// Compiles and links the interpreter, or loads it from the cache.
    ///
    /// # Errors
    ///
    /// [`CompileError::Program`] if the component is at fault, [`CompileError::System`] if the system is.
    pub(crate) fn prepare_interpreter(
        &self,
        digest: &str,
        read: impl FnOnce() -> Result<Bytes, CompileError>,
        counts_fuel: bool,
    ) -> Result<Interpreter, CompileError> {
        self.prepare_component((digest, read), counts_fuel, add_script_imports, |component| {
            Interpreter::of(component, counts_fuel)
        })
    }

    /// Calls a script once. Dropping the future stops it.
    pub(crate) async fn interpret(
        &self,
        interpreter: &Interpreter,
        script: ScriptSource<'_>,
        call: ScriptCall<'_>,
        input: GuestInput<'_>,
        services: Option<Arc<dyn HostServices>>,
        usage: &Arc<Usage>,
    ) -> GuestOutput<ScriptResult> {
        let streams = Streams::separate(0, input.limits, usage);
        let result = self.granted(&input, &streams, services, usage);
        let result = match result {
            Ok(config) => {
                let store = FreshStore { config, counts_fuel: interpreter.counts_fuel, limits: input.limits, usage };
                self.call_script(interpreter, script, call, store).await
            }
            Err(error) => Err(error),
        };
        let result = result.and_then(|result| {
            if let Ok(Some(json)) = &result {
                usage.count_answer(json.len(), input.limits.stdout)?;
            }
            Ok(result)
        });
        streams.into_output(trap::refused_write(result, Result::is_ok, usage, input.limits))
    }

    async fn call_script(
        &self,
        interpreter: &Interpreter,
        script: ScriptSource<'_>,
        call: ScriptCall<'_>,
        store: FreshStore<'_>,
    ) -> Result<ScriptResult, ToolError> {
        let Interpreter { component, run, handle, .. } = interpreter;
        let run = async |store: &mut Store<CallState>| match (script, call) {
            (ScriptSource::Text(script), ScriptCall::Run { arguments }) => {
                let result = call_export::<_, Result<String, _>>(store, component, *run, (script, arguments)).await;
                result.map(|result| result.map(Some))
            }
            (ScriptSource::Image(image), ScriptCall::Run { arguments }) => {
                let input = (&*image.bytes, arguments);
                let result = call_export::<_, Result<String, _>>(store, component, image.exports.run, input).await;
                result.map(|result| result.map(Some))
            }
            (ScriptSource::Text(script), ScriptCall::Handle { when, event, payload }) => {
                call_export(store, component, *handle, (script, when, event, payload)).await
            }
            (ScriptSource::Image(image), ScriptCall::Handle { event, payload, .. }) => {
                call_export(store, component, image.exports.handle, (&*image.bytes, event, payload)).await
            }
        };
        self.execute(store, |_| early_exit(INTERPRETER_EXITED), run).await
    }

    /// Returns every problem of a script that can be found without running it.
    ///
    /// # Errors
    ///
    /// The error that ended the check.
    pub(crate) async fn check_script(
        &self,
        interpreter: &Interpreter,
        script: ScriptText<'_>,
        entry: EntryPoint,
        when: Option<&str>,
        limits: &Limits,
    ) -> Result<Vec<ScriptProblem>, ToolError> {
        let usage = &Arc::new(Usage::default());
        let stderr = CappedStream::new(OutputExceeded::Stderr, limits.stderr, usage);
        let config = self.bare(Some(stderr), limits, usage);
        let store = FreshStore { config, counts_fuel: interpreter.counts_fuel, limits, usage };
        let Interpreter { component, check, .. } = interpreter;
        let run =
            async |store: &mut Store<CallState>| call_export(store, component, *check, (script, entry, when)).await;
        self.execute(store, |_| early_exit(INTERPRETER_EXITED), run).await
    }
}
