//! Floor of a call: the same component on bare wasmtime, with the same limits and nothing else.

use std::path::Path;
use std::time::{Duration, Instant};

use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store, StoreLimits,
    StoreLimitsBuilder, UpdateDeadline,
};
use wasmtime_wasi::p2::bindings::CommandPre;
use wasmtime_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

pub(crate) struct Floor {
    engine: Engine,
    pre: CommandPre<State>,
}

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    limits: StoreLimits,
    deadline: Instant,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

pub(crate) fn engine() -> Engine {
    let mut config = Config::new();
    config.epoch_interruption(true).concurrency_support(false);
    let mut pool = PoolingAllocationConfig::default();
    pool.total_stacks(32);
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        let keep = 256 << 10;
        pool.pagemap_scan(Enabled::Yes).linear_memory_keep_resident(keep).table_keep_resident(keep);
        pool.async_stack_keep_resident(keep);
    }
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    let engine = Engine::new(&config).expect("an engine");
    let clock = engine.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(5));
            clock.increment_epoch();
        }
    });
    engine
}

impl Floor {
    pub(crate) fn new(program: &Path) -> Self {
        let engine = engine();
        let component = Component::from_file(&engine, program).expect("a component");
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("a linker");
        let pre = linker.instantiate_pre(&component).expect("its imports are linked");
        Self { engine, pre: CommandPre::new(pre).expect("a command") }
    }

    fn store(&self, stdin: &str, stdout: &MemoryOutputPipe) -> Store<State> {
        let mut wasi = WasiCtx::builder();
        wasi.args(&["tool"]).env("PATH", "/bin").env("HOME", "/");
        wasi.stdin(MemoryInputPipe::new(stdin.to_owned()))
            .stdout(stdout.clone())
            .stderr(MemoryOutputPipe::new(1 << 16));
        let state = State {
            wasi: wasi.build(),
            table: ResourceTable::new(),
            limits: StoreLimitsBuilder::new().memory_size(128 << 20).build(),
            deadline: Instant::now() + Duration::from_secs(30),
        };
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limits);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|context| match Instant::now() < context.data().deadline {
            true => Ok(UpdateDeadline::Yield(1)),
            false => Err(wasmtime::Error::msg("late")),
        });
        store
    }

    /// Creates a store and an instance, without a call.
    pub(crate) async fn instantiate(&self) {
        let mut store = self.store("", &MemoryOutputPipe::new(1 << 20));
        self.pre.instantiate_async(&mut store).await.expect("an instance");
    }

    /// Executes one call.
    pub(crate) async fn call(&self, stdin: &str) -> usize {
        let stdout = MemoryOutputPipe::new(1 << 20);
        let mut store = self.store(stdin, &stdout);
        let call = async {
            let command = self.pre.instantiate_async(&mut store).await.expect("an instance");
            command.wasi_cli_run().call_run(&mut store).await.expect("no trap").expect("success");
        };
        tokio::time::timeout(Duration::from_secs(30), call).await.expect("in time");
        drop(store);
        stdout.contents().len()
    }
}
