//! Protections that this system does not offer to the sandbox, in words for the person who runs it.

use wasmtime::PoolingAllocationConfig;

pub use system::gaps;

/// Returns `true` if the system lists the pages that a call has written. Without the list, each call clears all memory of the
/// call before it, which takes longer.
pub fn lists_written_pages() -> bool {
    PoolingAllocationConfig::is_pagemap_scan_available()
}

#[cfg(target_os = "linux")]
mod system {
    use crate::policy::has_openat2;

    /// Lists the protections that this kernel lacks or refuses, and the fallback for each. The kernel is asked once.
    pub fn gaps() -> Vec<&'static str> {
        let gap = "`openat2` is refused: changes in granted folders are checked by the names that a tool gives, and not by their \
                   targets";
        if has_openat2() { Vec::new() } else { vec![gap] }
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod system {
    /// Lists the protections of Linux that this system lacks, and the fallback for each.
    pub fn gaps() -> Vec<&'static str> {
        vec![
            "changes in granted folders are checked by the names that a tool gives, and not by their targets",
            "the memory of a compilation is not limited",
        ]
    }
}

#[cfg(windows)]
mod system {
    /// Lists the protections of Linux that this system lacks, and the fallback for each.
    pub fn gaps() -> Vec<&'static str> {
        vec!["a compilation can change no file and start no process, but can read the files of its user"]
    }
}
