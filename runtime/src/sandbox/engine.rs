//! The engine and its configuration: epochs for deadlines, a pool of instances if the system has the address space, and
//! a second engine that counts fuel, created for the first tool that needs it. Without the address space, memories take what
//! they use, and the code of programs checks each access.

use std::sync::OnceLock;

use wasmtime::{Collector, Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::delegate::MAX_DEPTH;
use crate::error::Error;
use crate::tool::Limits;

use super::address_space;
use super::epoch::{EpochTicker, TickGuard};

/// Number of bytes that a pooled slot keeps resident, if the kernel reports which pages were written.
const KEEP_RESIDENT: usize = 256 << 10;

/// Settings that change the generated code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeSettings {
    /// `true` if the code counts fuel.
    pub(super) counts_fuel: bool,
    /// `true` if the code checks each access to memory, because no addresses are reserved behind a memory.
    pub(super) checks_accesses: bool,
}

/// Engine with its clock.
pub(super) struct GuestEngine {
    pub(super) engine: Engine,
    pub(super) settings: CodeSettings,
    ticker: EpochTicker,
}

/// Instances for which an engine has room.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Instances {
    /// Instances of one call at a time that makes no other calls.
    OfOneCall,
    /// Instances of this many concurrent calls, with the calls that they make.
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

    /// Returns `true` if there is room for an instance in addition to the instances of the calls.
    pub(super) fn has_extra_instances(&self) -> bool {
        matches!(self.instances, Instances::OfCalls(_))
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
        let pooled = pooled(instances, counts_fuel).map(|engine| (engine, false));
        // Without enough address space there is no pool: slower, and equally safe.
        let (engine, checks_accesses) = match pooled {
            Some(pooled) => pooled,
            None => (for_compiling(CodeSettings { counts_fuel, checks_accesses: true })?, true),
        };
        let settings = CodeSettings { counts_fuel, checks_accesses };
        let ticker = EpochTicker::start(engine.clone())?;
        Ok(Self { engine, settings, ticker })
    }

    /// Advances the epoch until the guard is dropped.
    pub(super) fn tick(&self) -> TickGuard<'_> {
        self.ticker.tick()
    }
}

/// Creates an engine with a pool; `None` if there is no address space for it.
fn pooled(instances: Instances, counts_fuel: bool) -> Option<Engine> {
    if !address_space::is_free() {
        return None;
    }
    let mut config = config(CodeSettings { counts_fuel, checks_accesses: false });
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(instances)));
    Engine::new(&config).ok()
}

/// Returns `true` if this process has the address space for the pool of this many concurrent calls.
pub(super) fn has_pool(slots: u32) -> bool {
    pooled(Instances::OfCalls(slots), false).is_some()
}

/// Creates an engine without a pool. It generates the same code as the one with these settings.
pub(super) fn for_compiling(settings: CodeSettings) -> wasmtime::Result<Engine> {
    Engine::new(&config(settings))
}

fn config(settings: CodeSettings) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .consume_fuel(settings.counts_fuel)
        .concurrency_support(false)
        .max_wasm_stack(Limits::MAX_STACK)
        .async_stack_size(Limits::MAX_STACK + (1 << 20))
        .wasm_memory64(false)
        .wasm_gc(false)
        // Exceptions are objects of a collected heap, which a program has only if it has exceptions, or tables of references. It
        // counts as memory. External references are possible with it; the host gives none.
        .wasm_exceptions(true)
        .collector(Collector::DeferredReferenceCounting)
        .wasm_component_model_map(true)
        .relaxed_simd_deterministic(true);
    if settings.checks_accesses {
        config.memory_reservation(RESERVATION).memory_guard_size(0).memory_reservation_for_growth(GROWTH);
    }
    config
}

/// Number of bytes that a memory without a pool may have before it moves: the default limit for a call.
const RESERVATION: u64 = 128 << 20;
/// Number of bytes that it may then grow before it moves again.
const GROWTH: u64 = 64 << 20;

/// Number of instances beyond one per call and one per program that its script runs: hooks that judge such a program,
/// and agents that wait for others.
const EXTRA_INSTANCES: u32 = 64;

/// Number of instances per call: its own check and its run use one each, in turn, and the second can begin before the
/// memory of the first is given back.
const INSTANCES_OF_ONE_CALL: u32 = 2;
/// Maximum number of programs that run at the same time at one depth. Each has an instance of its interpreter while its calls have theirs.
pub(crate) const MAX_PROGRAMS: u32 = 16;

/// Maximum bytes that the engine keeps about the functions and other items of one instance. The most functions that are compiled
/// need less.
const INSTANCE_BYTES: usize = 2 << 20;

fn pool(instances: Instances) -> PoolingAllocationConfig {
    let instances = match instances {
        Instances::OfOneCall => INSTANCES_OF_ONE_CALL,
        Instances::OfCalls(slots) => slots * 2 + MAX_PROGRAMS * (MAX_DEPTH + 1) + EXTRA_INSTANCES,
    };
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(instances)
        .max_core_instance_size(INSTANCE_BYTES)
        .max_component_instance_size(INSTANCE_BYTES)
        .max_core_instances_per_component(Limits::MAX_INSTANCES)
        .max_memories_per_component(Limits::MAX_MEMORIES)
        .max_tables_per_component(Limits::MAX_TABLES)
        .max_memories_per_module(Limits::MAX_MEMORIES)
        .max_tables_per_module(Limits::MAX_TABLES)
        .total_core_instances(instances * Limits::MAX_INSTANCES)
        // And a heap of exceptions.
        .total_memories(instances * (Limits::MAX_MEMORIES + 1))
        .total_tables(instances * Limits::MAX_TABLES)
        .total_stacks(instances)
        .total_gc_heaps(instances)
        .table_elements(Limits::MAX_TABLE_ELEMENTS)
        .max_memory_size(1 << 32);
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        pool.pagemap_scan(Enabled::Yes)
            .linear_memory_keep_resident(KEEP_RESIDENT)
            .table_keep_resident(KEEP_RESIDENT)
            .async_stack_keep_resident(KEEP_RESIDENT);
    }
    pool
}

#[cfg(test)]
mod tests {
    use wasmtime::{Instance, Module, Store};

    use super::*;

    #[test]
    fn code_that_checks_accesses_stays_in_its_memory_and_grows_it() {
        for counts_fuel in [false, true] {
            let engine = for_compiling(CodeSettings { counts_fuel, checks_accesses: true }).unwrap();
            let text = r#"(module (memory (export "memory") 1)
                (func (export "read") (param i32) (result i32) (i32.load (local.get 0)))
                (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))"#;
            let module = Module::new(&engine, wat::parse_str(text).unwrap()).unwrap();
            let mut store = Store::new(&engine, ());
            store.set_epoch_deadline(1);
            if counts_fuel {
                store.set_fuel(1_000_000).unwrap();
            }
            let instance = Instance::new(&mut store, &module, &[]).unwrap();
            let read = instance.get_typed_func::<i32, i32>(&mut store, "read").unwrap();
            let grow = instance.get_typed_func::<i32, i32>(&mut store, "grow").unwrap();
            assert_eq!(read.call(&mut store, 65_532).unwrap(), 0);
            assert!(read.call(&mut store, 65_533).is_err() && read.call(&mut store, -4).is_err());
            // More than the reserve, so that the memory moves.
            let pages = (RESERVATION >> 16) as i32;
            assert_eq!(grow.call(&mut store, pages).unwrap(), 1);
            let size = (pages + 1) << 16;
            assert_eq!(read.call(&mut store, size - 4).unwrap(), 0);
            assert!(read.call(&mut store, size - 3).is_err());
        }
    }
}
