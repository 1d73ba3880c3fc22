//! Who answers a guest that asks the crib for something, and what a script can ask through its interpreter,
//! `toolcrib:script`: to run another program, to keep a value, to hand a task over, to add a tool or a hook. These functions carry the question to whoever answers for the call; whether
//! it is granted is judged there, and a call for which nobody answers is refused everything.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{self, BoxFuture};
use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Lift, Linker, Lower};

use super::bindings::{ModelAnswer, ModelQuestion, Piece};
use super::host::Host;

/// The interfaces, all of one package.
const EXEC: &str = "toolcrib:script/exec@0.1.0";
const CACHE: &str = "toolcrib:script/cache@0.1.0";
const AGENTS: &str = "toolcrib:script/agents@0.1.0";
const META: &str = "toolcrib:script/meta@0.1.0";

/// What is answered where nobody answers for a call.
const NOBODY: &str = "not available here";

/// Who answers for a call. What a kind of guest has no way to ask, nobody answers. An `Err` is told to the guest.
pub(crate) trait Services: Send + Sync {
    /// Runs a command of the crib, with at most so much fuel where fuel is counted.
    fn exec(
        &self,
        program: String,
        arguments: Vec<String>,
        how: How,
        fuel: Option<u64>,
    ) -> BoxFuture<'_, Result<Left, String>> {
        let _ = (program, arguments, how, fuel);
        nobody()
    }

    /// The value kept under a key.
    fn cached(&self, key: &str) -> Option<String>;

    /// Keeps a value under a key.
    fn cache(&self, key: String, value: String) -> Result<(), String>;

    /// Hands a task to another agent.
    fn delegate(&self, task: String) -> BoxFuture<'_, Result<String, String>> {
        let _ = task;
        nobody()
    }

    /// Adds a tool or a hook to the run.
    fn register(&self, what: Addition, definition: String) -> Result<(), String> {
        let _ = (what, definition);
        Err(NOBODY.to_owned())
    }

    /// Shows a part of what a call is about to answer.
    fn show(&self, piece: Piece) -> BoxFuture<'_, ()> {
        let _ = piece;
        future::ready(()).boxed()
    }

    /// Says how far a call is.
    fn measure(&self, done: u64, total: Option<u64>) -> BoxFuture<'_, ()> {
        let _ = (done, total);
        future::ready(()).boxed()
    }

    /// Asks the model.
    fn complete(&self, question: ModelQuestion) -> BoxFuture<'_, Result<ModelAnswer, String>> {
        let _ = question;
        nobody()
    }

    /// Calls another tool.
    fn call(&self, name: String, arguments: String) -> BoxFuture<'_, Result<String, String>> {
        let _ = (name, arguments);
        nobody()
    }

    /// The names of the secrets that are put into the call's requests.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}

fn nobody<T: Send + 'static>() -> BoxFuture<'static, Result<T, String>> {
    future::ready(Err(NOBODY.to_owned())).boxed()
}

/// What a script can add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addition {
    Tool,
    Hook,
}

/// How a command is to be run.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct How {
    #[component(name = "timeout-ms")]
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) folder: Option<String>,
    pub(crate) stdin: String,
}

/// What a command left, and the fuel that it used.
#[derive(Debug, Clone)]
pub(crate) struct Left {
    pub(crate) ended: Ended,
    pub(crate) fuel: u64,
}

/// How it ended.
#[derive(Debug, Clone, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Ended {
    #[component(name = "exit-code")]
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    #[component(name = "duration-ms")]
    pub(crate) duration_ms: u64,
}

pub(super) fn services(store: &StoreContextMut<'_, Host>) -> Result<Arc<dyn Services>, String> {
    store.data().services.clone().ok_or_else(|| NOBODY.to_owned())
}

/// Links the interface by which a guest keeps values.
pub(super) fn add_cache(linker: &mut Linker<Host>, interface: &str) -> wasmtime::Result<()> {
    let mut cache = linker.instance(interface)?;
    cache.func_wrap("get", |store, (key,): (String,)| {
        Ok((services(&store).ok().and_then(|services| services.cached(&key)),))
    })?;
    cache.func_wrap("set", |store, (key, value): (String, String)| {
        Ok((services(&store).and_then(|services| services.cache(key, value)),))
    })
}

/// Links the four interfaces.
pub(super) fn add_to_linker(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.instance(EXEC)?.func_wrap_async("run", |mut store, asked: (String, Vec<String>, How)| {
        let ((program, arguments, how), services) = (asked, services(&store));
        Box::new(async move {
            // The engine that counts none has none to tell.
            let fuel = store.get_fuel().ok();
            let left = match services {
                Ok(services) => services.exec(program, arguments, how, fuel).await,
                Err(why) => Err(why),
            };
            if let (Some(fuel), Ok(left)) = (fuel, &left) {
                store.set_fuel(fuel.saturating_sub(left.fuel))?;
            }
            Ok((left.map(|left| left.ended),))
        })
    })?;
    add_cache(linker, CACHE)?;
    linker.instance(AGENTS)?.func_wrap_async("delegate", |store, (task,): (String,)| {
        let services = services(&store);
        Box::new(async move {
            Ok((match services {
                Ok(services) => services.delegate(task).await,
                Err(why) => Err(why),
            },))
        })
    })?;
    let mut meta = linker.instance(META)?;
    for (name, what) in [("tool-register", Addition::Tool), ("hook-register", Addition::Hook)] {
        meta.func_wrap(name, move |store, (definition,): (String,)| {
            Ok((services(&store).and_then(|services| services.register(what, definition)),))
        })?;
    }
    Ok(())
}
