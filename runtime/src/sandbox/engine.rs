//! The engine and its configuration: epochs for deadlines, a pool of instances if the system has the address space, and
//! a second engine that counts fuel, created for the first tool that needs it.

use std::sync::OnceLock;

use wasmtime::component::Linker;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::error::Error;
use crate::tool::Limits;

use super::epoch::{EpochTicker, TickGuard};
use super::state::CallState;
use super::wasi;

/// Number of bytes that a pooled slot keeps resident, if the kernel reports which pages were written.
const KEEP_RESIDENT: usize = 256 << 10;

/// Engine with the linker of all WASI imports.
pub(super) struct GuestEngine {
    pub(super) engine: Engine,
    pub(super) linker: Linker<CallState>,
    ticker: EpochTicker,
}

/// Engine without fuel, and engine with fuel.
pub(super) struct EngineSet {
    plain: GuestEngine,
    metered: OnceLock<Result<GuestEngine, String>>,
    slots: u32,
}

impl EngineSet {
    pub(super) fn new(slots: u32) -> Result<Self, Error> {
        let plain = GuestEngine::new(slots, false).map_err(|error| Error::Engine(format!("{error:#}")))?;
        Ok(Self { plain, metered: OnceLock::new(), slots })
    }

    /// Returns the engine that counts fuel, or the faster one that does not.
    pub(super) fn get(&self, counts_fuel: bool) -> Result<&GuestEngine, Error> {
        if !counts_fuel {
            return Ok(&self.plain);
        }
        let created =
            self.metered.get_or_init(|| GuestEngine::new(self.slots, true).map_err(|error| format!("{error:#}")));
        created.as_ref().map_err(|error| Error::Engine(error.clone()))
    }
}

impl GuestEngine {
    fn new(slots: u32, counts_fuel: bool) -> wasmtime::Result<Self> {
        let mut config = config(counts_fuel);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(slots)));
        // A system without enough address space runs without a pool: slower, and equally safe.
        let engine = Engine::new(&config).or_else(|_| {
            config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
            Engine::new(&config)
        })?;
        let mut linker = Linker::new(&engine);
        wasi::add_to_linker(&mut linker)?;
        let ticker = EpochTicker::start(engine.clone())?;
        Ok(Self { engine, linker, ticker })
    }

    /// Advances the epoch until the guard is dropped.
    pub(super) fn tick(&self) -> TickGuard<'_> {
        self.ticker.tick()
    }
}

/// Creates an engine that only compiles. It generates the same code, and reserves no address space for instances.
pub(super) fn for_compiling(counts_fuel: bool) -> wasmtime::Result<Engine> {
    Engine::new(&config(counts_fuel))
}

fn config(counts_fuel: bool) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .consume_fuel(counts_fuel)
        .concurrency_support(false)
        .max_wasm_stack(Limits::MAX_STACK)
        .async_stack_size(Limits::MAX_STACK + (1 << 20))
        .wasm_memory64(false)
        .wasm_gc(false)
        .wasm_component_model_map(true)
        .relaxed_simd_deterministic(true);
    config
}

/// Number of instances beyond one per call and one per program that its script runs: hooks that judge such a program,
/// and agents that wait for others.
const EXTRA_INSTANCES: u32 = 64;

fn pool(slots: u32) -> PoolingAllocationConfig {
    let instances = slots * 2 + EXTRA_INSTANCES;
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(instances)
        .max_core_instances_per_component(Limits::MAX_INSTANCES)
        .max_memories_per_component(Limits::MAX_MEMORIES)
        .max_tables_per_component(Limits::MAX_TABLES)
        .total_core_instances(instances * Limits::MAX_INSTANCES)
        .total_memories(instances * Limits::MAX_MEMORIES)
        .total_tables(instances * Limits::MAX_TABLES)
        .total_stacks(instances)
        .table_elements(1 << 16)
        .max_memory_size(1 << 32);
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        pool.pagemap_scan(Enabled::Yes)
            .linear_memory_keep_resident(KEEP_RESIDENT)
            .table_keep_resident(KEEP_RESIDENT)
            .async_stack_keep_resident(KEEP_RESIDENT);
    }
    pool
}
