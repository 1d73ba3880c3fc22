//! Protections that this system does not offer to the sandbox, in words for the person who runs it.

use wasmtime::PoolingAllocationConfig;

use super::engine;

pub use system::gaps;

/// Number of concurrent calls for which [`reserves_memory`] asks: a runtime's default.
const CALLS: u32 = 32;

/// Returns `true` if the system lists the pages that a call has written. Without the list, each call clears all memory of the
/// call before it, which takes longer.
pub fn lists_written_pages() -> bool {
    PoolingAllocationConfig::is_pagemap_scan_available()
}

/// Returns `true` if the system has the address space in which many calls run at full speed. A limit on addresses, such as
/// `ulimit -v`, refuses it, and an emulator of another processor uses real memory for it. Without it, programs check each access
/// to their memory, which takes longer.
pub fn reserves_memory() -> bool {
    engine::has_pool(CALLS)
}

#[cfg(target_os = "linux")]
mod system {
    /// Lists the protections that this system lacks, and the fallback for each.
    pub fn gaps() -> Vec<&'static str> {
        Vec::new()
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod system {
    /// Lists the protections of Linux that this system lacks, and the fallback for each.
    pub fn gaps() -> Vec<&'static str> {
        vec!["the memory of a compilation is not limited"]
    }
}

#[cfg(windows)]
mod system {
    /// Lists the protections of Linux that this system lacks, and the fallback for each.
    pub fn gaps() -> Vec<&'static str> {
        vec!["a compilation can change no file and start no process, but can read the files of its user"]
    }
}
