//! Processor time of the current thread.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the processor time of the current thread.
pub(super) fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
