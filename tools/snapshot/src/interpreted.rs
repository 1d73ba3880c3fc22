//! The module in an interpreter, which is built quickly.

use wasmi::{Caller, Engine, Extern, Func, Instance, Linker, Module, Store, Val};
use wasmtime_wizer::{InstanceState, SnapshotVal};

use crate::component::{INITIALIZE, SEED};

/// Instantiates a module and initializes it. Every call of an import except [`SEED`] ends it.
///
/// # Errors
///
/// The module cannot be instantiated, or it failed.
pub(crate) fn start(module: &[u8]) -> Result<State, String> {
    started(module).map_err(|error| error.to_string())
}

fn started(module: &[u8]) -> Result<State, wasmi::Error> {
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
pub(crate) struct State {
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
