//! What a rich tool can ask of the host while it runs, `toolcrib:tool`: to show a part, to note something, to keep a value, to
//! ask the model, to call another tool, to know its secrets by name. These functions carry the question to whoever answers
//! for the call, who judges whether it is granted; outside of a call nobody answers.

use wasmtime::StoreContextMut;
use wasmtime::component::Linker;
use wasmtime_wasi::p2::{OutputStream, StreamError};

use super::bindings::{Level, ModelQuestion, Piece};
use super::host::Host;
use super::services::{add_cache, services};

/// The interfaces, all of one package, in the newest version that is spoken.
const PROGRESS: &str = "toolcrib:tool/progress@1.1.0";
const LOG: &str = "toolcrib:tool/log@1.1.0";
const CACHE: &str = "toolcrib:tool/cache@1.1.0";
const MODEL: &str = "toolcrib:tool/model@1.1.0";
const TOOLS: &str = "toolcrib:tool/tools@1.1.0";
const SECRETS: &str = "toolcrib:tool/secrets@1.1.0";

/// Links them. Types are data, and their interface has nothing to link.
pub(super) fn add_to_linker(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.instance("toolcrib:tool/types@1.1.0")?;
    let mut progress = linker.instance(PROGRESS)?;
    progress.func_wrap_async("measure", |store, (done, total): (u64, Option<u64>)| {
        let services = services(&store);
        let usage = store.data().memory.usage.clone();
        Box::new(async move {
            match services {
                Ok(services) => services.measure(done, total).await,
                Err(_) => usage.dropped(),
            }
            Ok(())
        })
    })?;
    progress.func_wrap_async("show", |store, (piece,): (Piece,)| {
        let services = services(&store);
        let usage = store.data().memory.usage.clone();
        Box::new(async move {
            match services {
                Ok(services) => services.show(piece).await,
                Err(_) => usage.dropped(),
            }
            Ok(())
        })
    })?;
    linker.instance(LOG)?.func_wrap("log", |mut store, (level, message): (Level, String)| {
        note(&mut store, &format!("{}: {message}\n", level.as_str()))
    })?;
    add_cache(linker, CACHE)?;
    linker.instance(MODEL)?.func_wrap_async("complete", |store, (question,): (ModelQuestion,)| {
        let services = services(&store);
        Box::new(async move {
            Ok((match services {
                Ok(services) => services.complete(question).await,
                Err(why) => Err(why),
            },))
        })
    })?;
    linker.instance(TOOLS)?.func_wrap_async("call", |store, (name, arguments): (String, String)| {
        let services = services(&store);
        Box::new(async move {
            Ok((match services {
                Ok(services) => services.call(name, arguments).await,
                Err(why) => Err(why),
            },))
        })
    })?;
    linker.instance(SECRETS)?.func_wrap("granted", |store, (): ()| {
        Ok((services(&store).map(|services| services.secrets()).unwrap_or_default(),))
    })?;
    Ok(())
}

/// Writes to the call's standard error, with its cap.
pub(super) fn note(store: &mut StoreContextMut<'_, Host>, line: &str) -> wasmtime::Result<()> {
    let Some(notes) = &mut store.data_mut().notes else { return Ok(()) };
    match notes.write(line.to_owned().into()) {
        Err(StreamError::Trap(error)) => Err(error),
        _ => Ok(()),
    }
}
