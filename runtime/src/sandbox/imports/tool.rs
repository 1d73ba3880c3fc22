//! Imports of a rich tool, `toolcrib:tool`: showing parts, logging, storing values, requests to the model, calls to
//! other tools, and secret names.

use wasmtime::component::Linker;

use crate::sandbox::bindings::{GuestPart, Level, ModelQuestion};
use crate::sandbox::state::CallState;
use crate::sandbox::wasi::WasiStore;

use super::cache;

const TYPES: &str = "toolcrib:tool/types@1.1.0";
const PROGRESS: &str = "toolcrib:tool/progress@1.1.0";
const LOG: &str = "toolcrib:tool/log@1.1.0";
const CACHE: &str = "toolcrib:tool/cache@1.1.0";
const MODEL: &str = "toolcrib:tool/model@1.1.0";
const TOOLS: &str = "toolcrib:tool/tools@1.1.0";
const SECRETS: &str = "toolcrib:tool/secrets@1.1.0";

/// Links the interfaces. The types are data, and their interface has no functions.
pub(in crate::sandbox) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    linker.instance(TYPES)?;
    let mut progress = linker.instance(PROGRESS)?;
    progress.func_wrap_async("measure", |store, (done, total): (u64, Option<u64>)| {
        let services = store.data().services();
        Box::new(async move {
            services.measure(done, total).await;
            Ok(())
        })
    })?;
    progress.func_wrap_async("show", |store, (part,): (GuestPart,)| {
        let services = store.data().services();
        Box::new(async move {
            services.show(part).await;
            Ok(())
        })
    })?;
    linker.instance(LOG)?.func_wrap("log", |mut store, (level, message): (Level, String)| {
        store.data_mut().wasi().log(format!("{}: {message}\n", level.as_str()))
    })?;
    cache::add_to_linker(linker, CACHE)?;
    linker.instance(MODEL)?.func_wrap_async("complete", |store, (question,): (ModelQuestion,)| {
        let services = store.data().services();
        Box::new(async move { Ok((services.complete(question).await,)) })
    })?;
    linker.instance(TOOLS)?.func_wrap_async("call", |store, (name, arguments): (String, String)| {
        let services = store.data().services();
        Box::new(async move { Ok((services.call(name, arguments).await,)) })
    })?;
    linker.instance(SECRETS)?.func_wrap("granted", |store, (): ()| Ok((store.data().services().secrets(),)))
}
