//! A component whose interpreter has set itself up already: its core module is started once while the program is built, its
//! memory and globals become the module's initial ones, and each call starts from there. What it imports does not exist
//! while it is started, but for one, so that nothing of this machine is in what is kept.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasm_encoder::{Component, RawSection};
use wasmi::{Caller, Engine, Extern, Func, Instance, Linker, Module, Store, Val};
use wasmparser::{Parser, Payload};
use wasmtime_wizer::{InstanceState, SnapshotVal, Wizer};

/// The export by which a module sets itself up.
const INITIALIZE: &str = "wizer-initialize";
/// The one import that may be called meanwhile: the seed of hash maps, which is fit for nothing secret. It stays nought, so
/// that everyone builds the same bytes, and a guest that looks for collisions slows only itself.
const SEED: &str = "insecure-seed";
/// How a core module stands in a component.
const MODULE_SECTION: u8 = 1;

/// The component with the module started that exports [`INITIALIZE`].
///
/// # Errors
///
/// What is wrong with the component, or how its module failed.
pub(crate) fn started(component: &[u8]) -> Result<Vec<u8>, String> {
    let mut snapshot = Component::new();
    let mut found = false;
    for (id, data) in sections(component)? {
        let module = (id == MODULE_SECTION && exports(data, INITIALIZE)).then(|| module(data)).transpose()?;
        found |= module.is_some();
        snapshot.section(&RawSection { id, data: module.as_deref().unwrap_or(data) });
    }
    if found { Ok(snapshot.finish()) } else { Err(format!("no core module exports `{INITIALIZE}`")) }
}

/// The sections of a component, whole, in order.
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
    now(wizer.snapshot(&context, &mut state)).map_err(|error| format!("{error:#}"))
}

/// Instantiates a module and lets it set itself up. Whatever it imports ends it.
fn start(module: &[u8]) -> Result<State, wasmi::Error> {
    let engine = Engine::default();
    let module = Module::new(&engine, module)?;
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new(&engine);
    for import in module.imports() {
        let (space, name) = (import.module().to_owned(), import.name().to_owned());
        if let Some(kind) = import.ty().func() {
            let told = format!("`{space}` `{name}` was called while the module set itself up");
            let seeds = name == SEED;
            let refuse = Func::new(&mut store, kind.clone(), move |caller, inputs, _| match seeds {
                true => seed(caller, inputs),
                false => Err(wasmi::Error::new(told.clone())),
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

/// Answers with two numbers of 64 bits where the caller wants them.
fn seed(caller: Caller<'_, ()>, inputs: &[Val]) -> Result<(), wasmi::Error> {
    let memory = caller.get_export("memory").and_then(Extern::into_memory);
    match (memory, inputs) {
        (Some(memory), [Val::I32(place)]) => Ok(memory.write(caller, *place as u32 as usize, &[0; 16])?),
        _ => Err(wasmi::Error::new(format!("`{SEED}` was called in an unknown way"))),
    }
}

/// The module as it stands when it has set itself up.
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
            other => panic!("the global `{name}` is {other:?}, of which no snapshot is made"),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        match self.instance.get_memory(&self.store, name) {
            Some(memory) => contents(memory.data(&self.store)),
            None => panic!("there is no memory `{name}`"),
        }
    }
}

/// The end of a future that waits for nothing.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(end) => end,
        Poll::Pending => panic!("nothing here waits"),
    }
}
