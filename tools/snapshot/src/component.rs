//! Snapshots of a component: starts its core module once at build time, and writes the resulting memory and globals
//! back as the module's initial ones, so that each call starts from there. Only one import can be called meanwhile, so
//! that the snapshot contains nothing of this machine.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasm_encoder::{Component, RawSection};
use wasmparser::{Parser, Payload};
use wasmtime_wizer::Wizer;

use crate::engine;

/// Export that initializes a module.
pub(crate) const INITIALIZE: &str = "wizer-initialize";
/// The only import that can be called: the seed of hash maps, which is not suitable for secrets. It is zero for
/// reproducible builds; a guest that looks for collisions slows only itself.
pub(crate) const SEED: &str = "insecure-seed";
/// Section number of a core module in a component.
const MODULE_SECTION: u8 = 1;

/// Component with a snapshot of the module that exports [`INITIALIZE`].
///
/// # Errors
///
/// If the component is invalid, or its module failed.
pub(crate) fn of_component(component: &[u8]) -> Result<Vec<u8>, String> {
    let mut snapshot = Component::new();
    let mut found = false;
    for (id, data) in sections(component)? {
        let module = (id == MODULE_SECTION && exports(data, INITIALIZE)).then(|| module(data)).transpose()?;
        found |= module.is_some();
        snapshot.section(&RawSection { id, data: module.as_deref().unwrap_or(data) });
    }
    if found { Ok(snapshot.finish()) } else { Err(format!("no core module exports `{INITIALIZE}`")) }
}

/// Sections of a component, in order.
fn sections(component: &[u8]) -> Result<Vec<(u8, &[u8])>, String> {
    const PREAMBLE: usize = 8;
    let mut reader = wasmparser::BinaryReader::new(component.get(PREAMBLE..).ok_or("no component")?, 0);
    let mut sections = Vec::new();
    while !reader.eof() {
        let mut section = || {
            let id = reader.read_u8()?;
            let length = reader.read_var_u32()?;
            reader.read_bytes(length as usize).map(|data| (id, data))
        };
        sections.push(section().map_err(|error| error.to_string())?);
    }
    Ok(sections)
}

fn exports(module: &[u8], name: &str) -> bool {
    Parser::new(0).parse_all(module).flatten().any(|payload| match payload {
        Payload::ExportSection(exports) => exports.into_iter().flatten().any(|export| export.name == name),
        _ => false,
    })
}

fn module(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut wizer = Wizer::new();
    wizer.init_func(INITIALIZE);
    let (context, instrumented) = wizer.instrument(bytes).map_err(|error| format!("{error:#}"))?;
    let mut state = engine::start(&instrumented)?;
    ready(wizer.snapshot(&context, &mut state)).map_err(|error| format!("{error:#}"))
}

/// Result of a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(end) => end,
        Poll::Pending => panic!("a snapshot does not wait"),
    }
}
