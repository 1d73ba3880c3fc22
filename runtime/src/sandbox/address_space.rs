//! Address space of this process: decides once if reserving much of it is possible and free. Natively it is, and the engine
//! reserves terabytes, so that programs need no checks of their accesses. A limit on addresses refuses that, and an emulator of
//! another processor may use real memory for each reserved page.

pub(super) use system::is_free;

#[cfg(target_os = "linux")]
mod system {
    use std::ptr;
    use std::sync::OnceLock;

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    /// Bytes that are reserved to see the cost: the largest memory of a program.
    const SAMPLE: usize = 1 << 32;
    /// Maximum growth of the resident memory, in KiB. The page tables of an emulator need at least twice as much for the
    /// sample, and the system's own figure may be stale by less.
    const MAX_GROWTH: u64 = 8 << 10;

    /// Returns `true` if addresses can be reserved without using memory. The system is asked once.
    pub(in crate::sandbox) fn is_free() -> bool {
        static FOUND: OnceLock<bool> = OnceLock::new();
        *FOUND.get_or_init(|| is_free_with(reserve_sample, resident))
    }

    /// Judges by a reservation and the resident memory before and after it. Without a figure the reservation alone decides.
    fn is_free_with(reserve: impl Fn() -> bool, resident: impl Fn() -> Option<u64>) -> bool {
        let before = resident();
        reserve() && before.zip(resident()).is_none_or(|(before, after)| after.saturating_sub(before) < MAX_GROWTH)
    }

    /// Reserves the sample and returns it; `false` if the system refuses.
    #[expect(unsafe_code, reason = "addresses are reserved without an object of Rust behind them")]
    fn reserve_sample() -> bool {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the system chooses a free place, whose pages cannot be accessed. The mapping is removed at once, whole, and
        // no reference to it is ever made.
        unsafe {
            let Ok(place) = mmap_anonymous(ptr::null_mut(), SAMPLE, ProtFlags::empty(), flags) else { return false };
            munmap(place, SAMPLE).is_ok()
        }
    }

    /// Resident memory of this process, in KiB.
    fn resident() -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    }

    #[cfg(test)]
    mod tests {
        use std::cell::Cell;

        use super::*;

        #[test]
        fn a_refused_reservation_and_one_that_uses_memory_are_not_free() {
            let figures = |first, second| {
                let turn = Cell::new(false);
                move || if turn.replace(true) { second } else { first }
            };
            for (reserves, before, after, free) in [
                (true, Some(1000), Some(1000), true),
                (true, Some(1000), Some(1000 + MAX_GROWTH - 1), true),
                (true, Some(1000), Some(1000 + MAX_GROWTH), false),
                (true, Some(1000), Some(900), true),
                (true, None, None, true),
                (false, Some(1000), Some(1000), false),
                (false, None, None, false),
            ] {
                assert_eq!(is_free_with(|| reserves, figures(before, after)), free, "{reserves} {before:?} {after:?}");
            }
        }

        #[test]
        fn the_resident_memory_is_found() {
            assert!(resident().is_some_and(|kibibytes| kibibytes > 1000));
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Returns `true`: no emulator is known here, and a limit shows when the engine reserves.
    pub(in crate::sandbox) fn is_free() -> bool {
        true
    }
}
