//! The module compiled, for one that uses exceptions or that starts slowly.

use wasmtime::error::Context as _;
use wasmtime::{Caller, Config, Engine, Error, Extern, ExternType, Func, Instance, Module, OptLevel, Store, Val, bail};
use wasmtime_wizer::{InstanceState, SnapshotVal};

use crate::component::{INITIALIZE, SEED};

/// Bytes of the stack: the start of an interpreter nests deeply.
const STACK: usize = 16 << 20;

/// Instantiates a module and initializes it. Every call of an import except [`SEED`] ends it.
///
/// # Errors
///
/// The module cannot be instantiated, or it failed.
pub(crate) fn start(module: &[u8]) -> Result<State, String> {
    // The thread needs the stack of the module too.
    let started = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(2 * STACK).spawn_scoped(scope, || started(module));
        thread.map(|thread| thread.join())
    });
    match started {
        Ok(Ok(started)) => started.map_err(|error| format!("{error:#}")),
        Ok(Err(_)) => Err("the engine failed".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn started(module: &[u8]) -> Result<State, Error> {
    let mut config = Config::new();
    config.wasm_exceptions(true).max_wasm_stack(STACK).async_stack_size(2 * STACK).cranelift_opt_level(OptLevel::None);
    let engine = Engine::new(&config)?;
    let module = Module::new(&engine, module)?;
    let mut store = Store::new(&engine, ());
    let mut imports: Vec<Extern> = Vec::new();
    for import in module.imports() {
        let ExternType::Func(kind) = import.ty() else { bail!("the import `{}` is no function", import.name()) };
        let message = format!("`{}` `{}` was called while the module was initialized", import.module(), import.name());
        let seeds = import.name() == SEED;
        let refuse = Func::new(&mut store, kind, move |caller, inputs, _| match seeds {
            true => seed(caller, inputs),
            false => bail!("{message}"),
        });
        imports.push(refuse.into());
    }
    let instance = Instance::new(&mut store, &module, &imports)?;
    for name in ["_initialize", INITIALIZE] {
        if let Some(set_up) = instance.get_func(&mut store, name) {
            set_up.call(&mut store, &[], &mut []).with_context(|| format!("`{name}`"))?;
        }
    }
    Ok(State { store, instance })
}

/// Writes two zero numbers of 64 bits to the address that the caller passes.
fn seed(mut caller: Caller<'_, ()>, inputs: &[Val]) -> Result<(), Error> {
    let memory = caller.get_export("memory").and_then(Extern::into_memory);
    match (memory, inputs) {
        (Some(memory), [Val::I32(place)]) => Ok(memory.write(caller, *place as u32 as usize, &[0; 16])?),
        _ => bail!("`{SEED}` was called in an unknown way"),
    }
}

/// Module after its initialization.
pub(crate) struct State {
    store: Store<()>,
    instance: Instance,
}

impl InstanceState for State {
    async fn global_get(&mut self, name: &str, _: wasmparser::ValType) -> SnapshotVal {
        let global = self.instance.get_global(&mut self.store, name);
        match global.map(|global| global.get(&mut self.store)) {
            Some(Val::I32(value)) => SnapshotVal::I32(value),
            Some(Val::I64(value)) => SnapshotVal::I64(value),
            Some(Val::F32(value)) => SnapshotVal::F32(value),
            Some(Val::F64(value)) => SnapshotVal::F64(value),
            other => panic!("the global `{name}` is {other:?}, which a snapshot cannot hold"),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        match self.instance.get_memory(&mut self.store, name) {
            Some(memory) => contents(memory.data(&self.store)),
            None => panic!("there is no memory `{name}`"),
        }
    }
}
