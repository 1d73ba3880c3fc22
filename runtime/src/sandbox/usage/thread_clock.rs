//! Processor time of the current thread.

use std::time::Duration;

/// Returns the processor time of the current thread. The C library is asked: `rustix` looks for a function of the kernel in
/// memory that a program under an emulator, such as one that counts instructions, does not have.
#[expect(unsafe_code, reason = "no safe function of the standard library returns the time of a thread")]
pub(super) fn thread_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the result. If the clock were missing, it would stay zero.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
