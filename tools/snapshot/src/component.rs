//! Snapshots of a component: starts its core module once at build time, and writes the resulting memory and globals
//! back as the module's initial ones, so that each call starts from there. Only one import can be called meanwhile, so
//! that the snapshot contains nothing of this machine.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasm_encoder::{Component, RawSection};
use wasmi::{Caller, Engine, Extern, Func, Instance, Linker, Module, Store, Val};
use wasmparser::{Parser, Payload};
use wasmtime_wizer::{InstanceState, SnapshotVal, Wizer};

/// Export that initializes a module.
const INITIALIZE: &str = "wizer-initialize";
/// The only import that can be called: the seed of hash maps, which is not suitable for secrets. It is zero for
/// reproducible builds; a guest that looks for collisions slows only itself.
const SEED: &str = "insecure-seed";
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
    let mut state = start(&instrumented).map_err(|error| error.to_string())?;
    ready(wizer.snapshot(&context, &mut state)).map_err(|error| format!("{error:#}"))
}

/// Instantiates a module and initializes it. Every call of an import except [`SEED`] ends it.
fn start(module: &[u8]) -> Result<State, wasmi::Error> {
    let engine = Engine::default();
    let module = Module::new(&engine, module)?;
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new(&engine);
    for import in module.imports() {
        let (space, name) = (import.module().to_owned(), import.name().to_owned());
        if let Some(kind) = import.ty().func() {
            let message = format!("`{space}` `{name}` was called while the module was initialized");
            let seeds = name == SEED;
            let refuse = Func::new(&mut store, kind.clone(), move |caller, inputs, _| match seeds {
                true => seed(caller, inputs),
                false => Err(wasmi::Error::new(message.clone())),
            });
            linker.define(&space, &name, refuse)?;
        }
    }
    let instance = linker.instantiate_and_start(&mut store, &module)?;
    for name in ["_initialize", INITIALIZE] {
        if let Some(set_up) = instance.get_func(&store, name) {
            set_up.call(&mut store, &[], &mut [])?;
        }
    }
    Ok(State { store, instance })
}

/// Writes two zero numbers of 64 bits to the address that the caller passes.
fn seed(caller: Caller<'_, ()>, inputs: &[Val]) -> Result<(), wasmi::Error> {
    let memory = caller.get_export("memory").and_then(Extern::into_memory);
    match (memory, inputs) {
        (Some(memory), [Val::I32(place)]) => Ok(memory.write(caller, *place as u32 as usize, &[0; 16])?),
        _ => Err(wasmi::Error::new(format!("`{SEED}` was called in an unknown way"))),
    }
}

/// Module after its initialization.
struct State {
    store: Store<()>,
    instance: Instance,
}

impl InstanceState for State {
    async fn global_get(&mut self, name: &str, _: wasmparser::ValType) -> SnapshotVal {
        let value = self.instance.get_export(&self.store, name).and_then(Extern::into_global);
        match value.map(|global| global.get(&self.store)) {
            Some(Val::I32(value)) => SnapshotVal::I32(value),
            Some(Val::I64(value)) => SnapshotVal::I64(value),
            Some(Val::F32(value)) => SnapshotVal::F32(value.to_bits()),
            Some(Val::F64(value)) => SnapshotVal::F64(value.to_bits()),
            other => panic!("the global `{name}` is {other:?}, which a snapshot cannot hold"),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        match self.instance.get_memory(&self.store, name) {
            Some(memory) => contents(memory.data(&self.store)),
            None => panic!("there is no memory `{name}`"),
        }
    }
}

/// Result of a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(end) => end,
        Poll::Pending => panic!("a snapshot does not wait"),
    }
}
