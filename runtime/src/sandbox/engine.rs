//! The engine, configured once: epochs for deadlines, a pool of instances where the system has room for one, and a
//! second engine that counts fuel, made when the first tool asks for it.

use std::sync::OnceLock;

use wasmtime::component::Linker;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::error::Error;
use crate::tool::Limits;

use super::epoch::{Ticker, Ticking};
use super::host::Host;
use super::linker;

/// What a pooled slot keeps resident, where the kernel tells which pages were written.
const KEEP_RESIDENT: usize = 256 << 10;

/// An engine with everything a guest may import.
pub(super) struct Room {
    pub(super) engine: Engine,
    pub(super) linker: Linker<Host>,
    ticker: Ticker,
}

/// The two engines.
pub(super) struct Rooms {
    plain: Room,
    metered: OnceLock<Result<Room, String>>,
    slots: u32,
}

impl Rooms {
    pub(super) fn new(slots: u32) -> Result<Self, Error> {
        let plain = Room::new(slots, false).map_err(|error| Error::Engine(format!("{error:#}")))?;
        Ok(Self { plain, metered: OnceLock::new(), slots })
    }

    /// The engine that counts fuel, or the faster one that does not.
    pub(super) fn room(&self, counts_fuel: bool) -> Result<&Room, Error> {
        if !counts_fuel {
            return Ok(&self.plain);
        }
        let made = self.metered.get_or_init(|| Room::new(self.slots, true).map_err(|error| format!("{error:#}")));
        made.as_ref().map_err(|error| Error::Engine(error.clone()))
    }
}

impl Room {
    fn new(slots: u32, counts_fuel: bool) -> wasmtime::Result<Self> {
        let mut config = config(counts_fuel);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(slots)));
        // A system that is short of address space runs without a pool, slower and no less safe.
        let engine = Engine::new(&config).or_else(|_| {
            config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
            Engine::new(&config)
        })?;
        let linker = linker::command(&engine)?;
        let ticker = Ticker::start(engine.clone())?;
        Ok(Self { engine, linker, ticker })
    }

    /// Keeps the epochs coming while a call runs.
    pub(super) fn tick(&self) -> Ticking<'_> {
        self.ticker.tick()
    }
}

/// An engine that only compiles, for the engine that runs: the same code, and no address space kept for instances.
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

/// How many instances there is room for beside one for each call and one for each program that its script runs: those of
/// hooks that judge such a program, and of agents that wait for others.
const BESIDES: u32 = 64;

fn pool(slots: u32) -> PoolingAllocationConfig {
    let slots = slots * 2 + BESIDES;
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(slots)
        .max_core_instances_per_component(Limits::MAX_INSTANCES)
        .max_memories_per_component(Limits::MAX_MEMORIES)
        .max_tables_per_component(Limits::MAX_TABLES)
        .total_core_instances(slots * Limits::MAX_INSTANCES)
        .total_memories(slots * Limits::MAX_MEMORIES)
        .total_tables(slots * Limits::MAX_TABLES)
        .total_stacks(slots)
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
