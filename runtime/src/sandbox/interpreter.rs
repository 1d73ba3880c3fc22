//! The interpreter of scripts: a guest like every other, with exports of its own. Each call gets a fresh instance of it,
//! which starts from the memory that it had when it was built.

use std::sync::Arc;

use wasmtime::component::{Component, ComponentExportIndex, ComponentType, InstancePre, Lift, Lower};
use wasmtime_wasi::WasiCtx;

use crate::error::{Outcome, ToolError};
use crate::policy::FlagHints;
use crate::tool::{Limits, Place};

use super::compiler::Failure;
use super::engine::Room;
use super::files::{Allowance, Fence};
use super::host::Host;
use super::imports::Provided;
use super::requests::Way;
use super::services::{self, Services};
use super::stdio::{Capped, OverCap};
use super::{Inside, Invocation, MAX_RANDOM, Sandbox, Usage, trap};
use crate::source;

const INTERFACE: &str = "toolcrib:script/interpreter@0.1.0";

/// The interpreter, compiled and linked.
pub(crate) struct Interpreter {
    pre: InstancePre<Host>,
    check: ComponentExportIndex,
    run: ComponentExportIndex,
    handle: ComponentExportIndex,
    counts_fuel: bool,
}

/// A script, as the interpreter gets it.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct ScriptText<'a> {
    pub(crate) name: &'a str,
    pub(crate) source: &'a str,
}

/// What a script has to define.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lower)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum Entry {
    #[component(name = "run")]
    Run,
    #[component(name = "handle")]
    Handle,
}

/// Something wrong in a script.
#[derive(Debug, Clone, PartialEq, Eq, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Wrong {
    line: u32,
    column: u32,
    pub(crate) message: String,
}

impl Wrong {
    /// Something wrong at no place in particular.
    pub(crate) fn anywhere(message: String) -> Self {
        Self { line: 0, column: 0, message }
    }

    /// Where in the script, if that is known.
    pub(crate) fn place(&self) -> Option<Place> {
        (self.line > 0 && self.column > 0).then_some(Place { line: self.line, column: self.column })
    }
}

/// What a script is asked to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act<'a> {
    /// `run` with these arguments.
    Run { arguments: &'a str },
    /// `handle` with this event, where its condition holds.
    Handle { when: Option<&'a str>, event: &'a str, payload: &'a str },
}

/// What a script left.
pub(crate) struct Said {
    /// The JSON of what it returned, nothing where it was not asked, or what is wrong with it; or why there is neither.
    pub(crate) answer: Result<Result<Option<String>, Wrong>, ToolError>,
    pub(crate) stderr: Vec<u8>,
}

impl Sandbox {
    /// Compiles the interpreter, or takes it from the cache.
    ///
    /// # Errors
    ///
    /// Why the bytes are no interpreter, or could not be compiled now.
    pub(crate) fn prepare_interpreter(&self, bytes: &[u8], counts_fuel: bool) -> Result<Interpreter, Failure> {
        let room = self.rooms.room(counts_fuel).map_err(|error| Failure::System(error.to_string()))?;
        let component = self.component(room, bytes, counts_fuel, &source::digest(bytes))?;
        linked(room, &component, counts_fuel).map_err(|error| Failure::Program(format!("{error:#}")))
    }

    /// Lets a script act once, in a store of its own. Dropping the future stops it.
    pub(crate) async fn interpret(
        &self,
        interpreter: &Interpreter,
        script: ScriptText<'_>,
        act: Act<'_>,
        call: Invocation<'_>,
        services: Option<Arc<dyn Services>>,
        usage: &Arc<Usage>,
    ) -> Said {
        let stdout = Capped::new(OverCap::Stdout, 0, usage);
        let stderr = Capped::new(OverCap::Stderr, call.limits.stderr, usage);
        let answer = match self.inside(&call, (&stdout, &stderr), services, usage) {
            Ok(inside) => self.act(interpreter, script, act, inside, call.limits, usage).await,
            Err(error) => Err(error),
        };
        Said { answer, stderr: stderr.take() }
    }

    async fn act(
        &self,
        interpreter: &Interpreter,
        script: ScriptText<'_>,
        act: Act<'_>,
        inside: Inside,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<Result<Option<String>, Wrong>, ToolError> {
        let ended = self.within(interpreter.counts_fuel, inside, limits, usage, async |store| {
            let instance = interpreter.pre.instantiate_async(&mut *store).await?;
            match act {
                Act::Run { arguments } => {
                    let run = instance.get_typed_func::<(ScriptText<'_>, &str), (Result<String, Wrong>,)>(
                        &mut *store,
                        interpreter.run,
                    )?;
                    let (answer,) = run.call_async(&mut *store, (script, arguments)).await?;
                    Ok(answer.map(Some))
                }
                Act::Handle { when, event, payload } => {
                    let handle = instance
                        .get_typed_func::<(ScriptText<'_>, Option<&str>, &str, &str), (Result<Option<String>, Wrong>,)>(
                            &mut *store,
                            interpreter.handle,
                        )?;
                    let (answer,) = handle.call_async(&mut *store, (script, when, event, payload)).await?;
                    Ok(answer)
                }
            }
        });
        let answer = settled(ended.await?, limits, usage);
        let answer = trap::over_quota(answer, Result::is_ok, usage, limits)?;
        if let Ok(Some(text)) = &answer {
            usage.answered(text.len(), limits.stdout)?;
        }
        Ok(answer)
    }

    /// Everything that is wrong with a script and can be known without running it, found in a store of its own with nothing
    /// granted.
    ///
    /// # Errors
    ///
    /// How the check ended, where it did not end well.
    pub(crate) async fn check_script(
        &self,
        interpreter: &Interpreter,
        script: ScriptText<'_>,
        entry: Entry,
        when: Option<&str>,
        limits: &Limits,
    ) -> Result<Vec<Wrong>, ToolError> {
        let usage = Arc::new(Usage::default());
        let stderr = Capped::new(OverCap::Stderr, limits.stderr, &usage);
        let wasi = WasiCtx::builder().max_random_size(MAX_RANDOM).stderr(stderr).build();
        let allowance = Allowance::new(limits, &usage, &self.open_files, Fence::default());
        let (way, provided) = (Way::Closed(FlagHints::NONE), Provided::default());
        let inside = Inside { wasi, allowance, way, provided, notes: None, services: None };
        let ended = self.within(interpreter.counts_fuel, inside, limits, &usage, async |store| {
            let instance = interpreter.pre.instantiate_async(&mut *store).await?;
            let check = instance.get_typed_func::<(ScriptText<'_>, Entry, Option<&str>), (Vec<Wrong>,)>(
                &mut *store,
                interpreter.check,
            )?;
            let (wrong,) = check.call_async(&mut *store, (script, entry, when)).await?;
            Ok(wrong)
        });
        settled(ended.await?, limits, &usage)
    }
}

/// What came of it, or the error that stopped it.
fn settled<T>(ended: wasmtime::Result<T>, limits: &Limits, usage: &Usage) -> Result<T, ToolError> {
    ended.map_err(|error| match trap::classify(&error, usage, limits) {
        Err(error) => error,
        Ok(_) => ToolError::new(Outcome::Trap, "the interpreter left in the middle of the script"),
    })
}

/// Links the interpreter with what commands may import and with what scripts may ask.
fn linked(room: &Room, component: &Component, counts_fuel: bool) -> wasmtime::Result<Interpreter> {
    let mut linker = room.linker.clone();
    services::add_to_linker(&mut linker)?;
    let pre = linker.instantiate_pre(component)?;
    let interface = component
        .get_export_index(None, INTERFACE)
        .ok_or_else(|| wasmtime::Error::msg(format!("no interpreter: it does not export `{INTERFACE}`")))?;
    let export = |name: &str| {
        component
            .get_export_index(Some(&interface), name)
            .ok_or_else(|| wasmtime::Error::msg(format!("no interpreter: `{INTERFACE}` has no `{name}`")))
    };
    Ok(Interpreter { pre, check: export("check")?, run: export("run")?, handle: export("handle")?, counts_fuel })
}
