//! Memory allocator of the program. The allocator of musl takes one lock for all threads and returns memory to the system
//! early; with this one a call on musl is as fast as with the GNU library. The page "Cost of a call" has the figures, and those
//! of the other platforms, where the system's own allocator stays.

#[cfg(target_env = "musl")]
mod fast {
    #[global_allocator]
    static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
}
