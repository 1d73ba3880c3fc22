//! Processor time of a guest, measured around each poll of its future.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::counters::Usage;

/// Future that adds the processor time of each poll, by the thread's own clock, to the usage of a call. After its deadline
/// it is not polled again and returns `None`.
pub(in crate::sandbox) struct Metered<'a, F> {
    pub(in crate::sandbox) inner: Pin<Box<F>>,
    pub(in crate::sandbox) usage: &'a Usage,
    pub(in crate::sandbox) deadline: Instant,
}

impl<F: Future> Future for Metered<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Without this check each of many computing guests would run one more tick after its deadline.
        if Instant::now() >= self.deadline {
            return Poll::Ready(None);
        }
        let before = thread_time();
        let polled = self.inner.as_mut().poll(context);
        let used = thread_time().saturating_sub(before);
        self.usage.processor_nanos.fetch_add(used.as_nanos() as u64, Relaxed);
        polled.map(Some)
    }
}

/// Returns the processor time of the current thread. The C library is asked: `rustix` looks for a function of the kernel in
/// memory that a program under an emulator, such as one that counts instructions, does not have.
#[cfg(unix)]
#[expect(unsafe_code, reason = "no safe function of the standard library returns the time of a thread")]
fn thread_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the result. If the clock were missing, it would stay zero.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// Returns wall-clock time, on systems without a clock per thread.
#[cfg(not(unix))]
fn thread_time() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}
