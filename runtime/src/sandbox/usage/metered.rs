//! Processor time of a guest, measured around each poll.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Instant;

use super::counters::Usage;
use super::thread_clock::thread_time;

/// Future that adds the processor time of each poll, by the thread's own clock, to a call's usage. After its deadline
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
