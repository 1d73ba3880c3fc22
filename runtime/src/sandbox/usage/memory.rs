//! Memory budget of one call.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use wasmtime::ResourceLimiter;

use crate::sandbox::address_space;
use crate::tool::Limits;

use super::counters::Usage;

/// Maximum number of elements per table.
const MAX_TABLE: usize = Limits::MAX_TABLE_ELEMENTS;

/// Budget that all memories and tables of one call share. A growth that the engine then could not perform stays counted:
/// the engine also reports failures of growths that it never asked about, and subtracting those would raise the cap.
#[derive(Debug)]
pub(in crate::sandbox) struct MemoryBudget {
    used: usize,
    cap: usize,
    pub(in crate::sandbox) usage: Arc<Usage>,
}

impl MemoryBudget {
    pub(in crate::sandbox) fn new(cap: usize, usage: &Arc<Usage>) -> Self {
        Self { used: 0, cap, usage: usage.clone() }
    }

    /// Allows growth from `now` to `wanted` units of `unit` bytes. `max` is the declared maximum or the capacity of the slot.
    fn grows(&mut self, now: usize, wanted: usize, max: Option<usize>, unit: usize) -> bool {
        let bytes = wanted.saturating_sub(now).saturating_mul(unit);
        let total = self.used.checked_add(bytes).filter(|total| *total <= self.cap);
        match total.filter(|_| max.is_none_or(|max| wanted <= max)) {
            Some(total) => {
                self.used = total;
                self.usage.whole().peak_memory.fetch_max(total as u64, Relaxed);
                true
            }
            None => {
                self.usage.memory_refused.store(true, Relaxed);
                false
            }
        }
    }

    /// Records why the engine could not grow a memory or table.
    fn note_failure(&self, error: &wasmtime::Error) {
        let refused =
            if address_space::is_exhausted(error) { &self.usage.system_exhausted } else { &self.usage.memory_refused };
        refused.store(true, Relaxed);
    }
}

impl ResourceLimiter for MemoryBudget {
    fn memory_growing(&mut self, now: usize, wanted: usize, max: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grows(now, wanted, max, 1))
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.note_failure(&error);
        Ok(())
    }

    fn table_growing(&mut self, now: usize, wanted: usize, max: Option<usize>) -> wasmtime::Result<bool> {
        // The limit of a slot of the pool, which holds without a pool as well.
        let max = max.map_or(MAX_TABLE, |max| max.min(MAX_TABLE));
        Ok(self.grows(now, wanted, Some(max), size_of::<usize>()))
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.note_failure(&error);
        Ok(())
    }

    fn instances(&self) -> usize {
        Limits::MAX_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        Limits::MAX_TABLES as usize
    }

    fn memories(&self) -> usize {
        Limits::MAX_MEMORIES as usize
    }
}
