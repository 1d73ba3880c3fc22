//! Address space of this process: decides once if reserving most is possible and free. Natively it is, and the engine
//! reserves terabytes, so that programs need no checks of their accesses. A limit on addresses refuses that, and an
//! emulator of another processor may use real memory for each reserved page. It also recognizes the error of a system
//! that has no more to map.

use std::io::{self, ErrorKind};

pub(super) use system::is_free;

/// Returns `true` if the system refused to map memory: the addresses, the mappings or the memory of the process are used up.
pub(super) fn is_exhausted(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| {
        let found = cause.downcast_ref().map(io::Error::kind);
        found.or_else(|| number::kind(cause)) == Some(ErrorKind::OutOfMemory)
    })
}

#[cfg(unix)]
mod number {
    use std::error::Error;
    use std::io::{self, ErrorKind};

    use rustix::io::Errno;

    /// Returns the kind of a system error that the engine passes on as its number.
    pub(super) fn kind(error: &(dyn Error + 'static)) -> Option<ErrorKind> {
        error.downcast_ref::<Errno>().map(|number| io::Error::from(*number).kind())
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::sandbox::address_space::is_exhausted;

        #[test]
        fn an_exhausted_system_is_recognized_in_each_form_and_at_any_depth() {
            let forms = |number: Errno| {
                let system = wasmtime::Error::from(io::Error::from(number)).context("cannot map");
                [system, wasmtime::Error::from(number).context("cannot map"), number.into()]
            };
            assert!(forms(Errno::NOMEM).iter().all(is_exhausted), "no memory or no mapping is left");
            assert!(!forms(Errno::ACCESS).iter().any(is_exhausted), "another error");
        }
    }
}

#[cfg(not(unix))]
mod number {
    use std::error::Error;
    use std::io::ErrorKind;

    /// Returns `None`: the engine passes on no number here.
    pub(super) fn kind(_: &(dyn Error + 'static)) -> Option<ErrorKind> {
        None
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::c_void;
    use std::ptr;
    use std::sync::OnceLock;

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    /// Bytes that are reserved to see the cost: the largest memory of a program.
    const SAMPLE: usize = 1 << 32;
    /// Maximum number of samples: other threads can use memory while one is taken.
    const MAX_SAMPLES: usize = 3;
    /// Maximum growth of the resident memory, in KiB. The page tables of an emulator need at least twice as much for the
    /// sample, and the system's own figure may be stale by less.
    const MAX_GROWTH: u64 = 8 << 10;

    /// Returns `true` if addresses can be reserved without using memory. The system is asked once.
    pub(in crate::sandbox) fn is_free() -> bool {
        static FOUND: OnceLock<bool> = OnceLock::new();
        *FOUND.get_or_init(|| is_free_with(Sample::reserve, resident))
    }

    /// Judges by reservations and the resident memory before and after each: one without growth decides. Without a figure the
    /// reservation alone decides.
    fn is_free_with<S>(reserve: impl Fn() -> Option<S>, resident: impl Fn() -> Option<u64>) -> bool {
        // An earlier sample stays, so that the next is at another place: an emulator keeps its tables of a place.
        let mut samples = Vec::with_capacity(MAX_SAMPLES);
        (0..MAX_SAMPLES).any(|_| {
            let before = resident();
            let Some(sample) = reserve() else { return false };
            samples.push(sample);
            before.zip(resident()).is_none_or(|(before, after)| after.saturating_sub(before) < MAX_GROWTH)
        })
    }

    /// Reserved addresses, returned on drop.
    struct Sample(*mut c_void);

    impl Sample {
        /// Reserves a sample; `None` if the system refuses.
        #[expect(unsafe_code, reason = "addresses are reserved without an object of Rust behind them")]
        fn reserve() -> Option<Self> {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            // SAFETY: the system chooses a free place, whose pages cannot be accessed, and no reference to it is ever made.
            unsafe { mmap_anonymous(ptr::null_mut(), SAMPLE, ProtFlags::empty(), flags) }.ok().map(Self)
        }
    }

    impl Drop for Sample {
        #[expect(unsafe_code, reason = "addresses are returned without an object of Rust behind them")]
        fn drop(&mut self) {
            // SAFETY: the mapping is this sample's own, and is removed once, whole.
            let _ = unsafe { munmap(self.0, SAMPLE) };
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
        fn a_refused_reservation_and_one_that_uses_memory_each_time_are_not_free() {
            let (grown, stale) = (MAX_GROWTH, MAX_GROWTH - 1);
            // Growth of the resident memory by each sample; at most three samples are taken.
            for (reserves, growths, free, taken) in [
                (true, vec![0], true, 1),
                (true, vec![stale], true, 1),
                (true, vec![grown; 9], false, 3),
                (true, vec![grown, 0], true, 2),
                (true, vec![grown, grown, stale], true, 3),
                (false, vec![0; 9], false, 0),
            ] {
                let (samples, memory) = (Cell::new(0), Cell::new(1000));
                let reserve = || {
                    let growth = growths[samples.get()];
                    reserves.then(|| {
                        samples.set(samples.get() + 1);
                        memory.set(memory.get() + growth);
                    })
                };
                assert_eq!(is_free_with(reserve, || Some(memory.get())), free, "{reserves} {growths:?}");
                assert_eq!(samples.get(), taken, "{reserves} {growths:?}");
            }
            assert!(is_free_with(|| Some(()), || None), "without a figure");
            assert!(!is_free_with(|| None::<()>, || None));
            let shrinking = Cell::new(1000);
            assert!(is_free_with(|| Some(()), || Some(shrinking.replace(900))), "less memory than before");
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
