//! The engine and its configuration: epochs for deadlines, a pool of instances if the system has the address space, and
//! a second engine that counts fuel, created for the first tool that needs it.

use std::sync::OnceLock;

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::error::Error;
use crate::tool::Limits;

use super::epoch::{EpochTicker, TickGuard};

/// Number of bytes that a pooled slot keeps resident, if the kernel reports which pages were written.
const KEEP_RESIDENT: usize = 256 << 10;

/// Engine with its clock.
pub(super) struct GuestEngine {
    pub(super) engine: Engine,
    ticker: EpochTicker,
}

/// Instances for which an engine has room.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Instances {
    /// Those of one call at a time that makes no other calls.
    OfOneCall,
    /// Those of this many concurrent calls, with the calls that they make.
    OfCalls(u32),
}

/// Engine without fuel, and engine with fuel.
pub(super) struct EngineSet {
    plain: GuestEngine,
    metered: OnceLock<Result<GuestEngine, String>>,
    instances: Instances,
}

impl EngineSet {
    pub(super) fn new(instances: Instances) -> Result<Self, Error> {
        let plain = GuestEngine::new(instances, false).map_err(|error| Error::Engine(format!("{error:#}")))?;
        Ok(Self { plain, metered: OnceLock::new(), instances })
    }

    /// Returns the engine that counts fuel, or the faster one that does not.
    pub(super) fn get(&self, counts_fuel: bool) -> Result<&GuestEngine, Error> {
        if !counts_fuel {
            return Ok(&self.plain);
        }
        let created =
            self.metered.get_or_init(|| GuestEngine::new(self.instances, true).map_err(|error| format!("{error:#}")));
        created.as_ref().map_err(|error| Error::Engine(error.clone()))
    }
}

impl GuestEngine {
    fn new(instances: Instances, counts_fuel: bool) -> wasmtime::Result<Self> {
        let mut config = config(counts_fuel);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(instances)));
        // A system without enough address space runs without a pool: slower, and equally safe.
        let engine = Engine::new(&config).or_else(|_| {
            config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
            Engine::new(&config)
        })?;
        let ticker = EpochTicker::start(engine.clone())?;
        Ok(Self { engine, ticker })
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

/// Number of instances of one call: those of its own check and of its run follow one another, and a second one can begin
/// before the memory of the first is given back.
const INSTANCES_OF_ONE_CALL: u32 = 2;

fn pool(instances: Instances) -> PoolingAllocationConfig {
    let instances = match instances {
        Instances::OfOneCall => INSTANCES_OF_ONE_CALL,
        Instances::OfCalls(slots) => slots * 2 + EXTRA_INSTANCES,
    };
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
