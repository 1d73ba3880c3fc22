//! Quotas of an owner: calls, processor time and bytes in a time window, and calls at once; and their use in one process.
//!
//! Windows follow one another from the epoch on, so that all servers have the same ones. Calls are counted when they are admitted,
//! and so exactly; the others when a call has ended, so that calls that run at once can exceed them by what they use.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Maximum number of remembered owners. Those without a call in the current window are forgotten first.
const MAX_OWNERS: usize = 16_384;

/// Quotas of each owner; a part without a value has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaLimits {
    /// Length of a window, whole seconds.
    pub window: Duration,
    /// Calls of a window.
    pub calls: Option<u64>,
    /// Processor time of all calls in a window.
    pub cpu: Option<Duration>,
    /// Bytes that the calls of a window take, print, write, send and receive.
    pub bytes: Option<u64>,
    /// Calls at once.
    pub running: Option<u32>,
}

/// Part of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaPart {
    /// Calls of a window.
    Calls,
    /// Processor time of a window.
    ProcessorTime,
    /// Bytes of a window.
    Bytes,
    /// Calls at once.
    Running,
}

/// Quota that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// Part that is used up.
    pub part: QuotaPart,
    /// Seconds until it may begin anew.
    pub wait: u64,
}

/// Use by a part of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaUse {
    /// Processor time.
    pub cpu: Duration,
    /// Bytes that were taken, printed, written, sent and received.
    pub bytes: u64,
}

/// Call that counts as running until it is dropped.
pub struct AdmittedCall(Option<Box<dyn FnOnce() + Send + Sync>>);

impl QuotaLimits {
    /// Returns the length of a window in seconds.
    pub(crate) fn seconds(&self) -> u64 {
        self.window.as_secs().max(1)
    }

    /// Returns the number of the present window, and the seconds until the next one.
    fn window(&self, now: SystemTime) -> (u64, u64) {
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        (seconds / self.seconds(), self.seconds() - seconds % self.seconds())
    }
}

impl AdmittedCall {
    /// Creates a call that ends with this function.
    pub(crate) fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(end)))
    }
}

impl fmt::Debug for AdmittedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmittedCall").finish_non_exhaustive()
    }
}

impl Drop for AdmittedCall {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

/// Use of the quotas in this process.
#[derive(Debug, Default)]
pub(crate) struct MemoryQuotas {
    used: Mutex<HashMap<Arc<str>, OwnerUsage>>,
}

#[derive(Debug, Default)]
struct OwnerUsage {
    /// Length of the window.
    seconds: u64,
    /// Number of the window, counted from the epoch.
    window: u64,
    calls: u64,
    cpu: Duration,
    bytes: u64,
    running: u32,
}

impl MemoryQuotas {
    /// Counts a call of an owner.
    ///
    /// # Errors
    ///
    /// A quota is used up, with the time until the next window.
    pub(crate) fn admit(
        self: &Arc<Self>,
        owner: &Arc<str>,
        limits: &QuotaLimits,
        is_continued: bool,
        now: SystemTime,
    ) -> Result<AdmittedCall, QuotaExceeded> {
        let (window, left) = limits.window(now);
        let mut used = self.used();
        if used.len() >= MAX_OWNERS && !used.contains_key(owner) {
            used.retain(|_, used| (used.seconds, used.window) == (limits.seconds(), window) || used.running > 0);
            if used.len() >= MAX_OWNERS {
                return Err(QuotaExceeded { part: QuotaPart::Calls, wait: left });
            }
        }
        let used = used.entry(owner.clone()).or_default();
        used.begin(limits.seconds(), window);
        let QuotaLimits { calls, cpu, bytes, running, .. } = *limits;
        let used_up = [
            (!is_continued && running.is_some_and(|most| used.running >= most), QuotaPart::Running, 1),
            (calls.is_some_and(|most| used.calls >= most), QuotaPart::Calls, left),
            (cpu.is_some_and(|most| used.cpu >= most), QuotaPart::ProcessorTime, left),
            (bytes.is_some_and(|most| used.bytes >= most), QuotaPart::Bytes, left),
        ];
        if let Some((_, part, wait)) = used_up.into_iter().find(|(is_used_up, ..)| *is_used_up) {
            return Err(QuotaExceeded { part, wait });
        }
        used.calls += 1;
        used.running += 1;
        let (quotas, owner) = (self.clone(), owner.clone());
        Ok(AdmittedCall::new(move || {
            if let Some(used) = quotas.used().get_mut(&owner) {
                used.running = used.running.saturating_sub(1);
            }
        }))
    }

    /// Counts the use by a call that has ended, in the present window.
    pub(crate) fn charge(&self, owner: &Arc<str>, limits: &QuotaLimits, of_call: QuotaUse, now: SystemTime) {
        if let Some(used) = self.used().get_mut(owner) {
            used.begin(limits.seconds(), limits.window(now).0);
            used.cpu = used.cpu.saturating_add(of_call.cpu);
            used.bytes = used.bytes.saturating_add(of_call.bytes);
        }
    }

    fn used(&self) -> MutexGuard<'_, HashMap<Arc<str>, OwnerUsage>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnerUsage {
    /// Forgets the use of an earlier window, and of windows with another length. Calls that run do so in the next one too.
    fn begin(&mut self, seconds: u64, window: u64) {
        if self.seconds != seconds || self.window < window {
            *self = Self { seconds, window, running: self.running, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: QuotaLimits =
        QuotaLimits { window: Duration::from_hours(1), calls: None, cpu: None, bytes: None, running: None };

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn refusal(quotas: &Arc<MemoryQuotas>, limits: &QuotaLimits, owner: &str, seconds: u64) -> Option<QuotaExceeded> {
        quotas.admit(&owner.into(), limits, false, at(seconds)).err()
    }

    fn exceeded(part: QuotaPart, wait: u64) -> Option<QuotaExceeded> {
        Some(QuotaExceeded { part, wait })
    }

    #[test]
    fn calls_are_counted_exactly_and_begin_anew_with_each_window() {
        let (quotas, limits) = (Arc::<MemoryQuotas>::default(), QuotaLimits { calls: Some(1000), ..HOUR });
        let admitted: usize = std::thread::scope(|scope| {
            let all = [(); 4]
                .map(|()| scope.spawn(|| (0..500).filter(|_| refusal(&quotas, &limits, "a", 7_201).is_none()).count()));
            all.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!(admitted, 1000);
        assert_eq!(refusal(&quotas, &limits, "a", 7_201), exceeded(QuotaPart::Calls, 3599));
        assert_eq!(refusal(&quotas, &limits, "b", 7_201), None, "another owner notices nothing");
        assert_eq!(refusal(&quotas, &limits, "a", 10_799), exceeded(QuotaPart::Calls, 1));
        assert_eq!(refusal(&quotas, &limits, "a", 10_800), None);
    }

    #[test]
    fn calls_at_once_are_counted_until_they_end() {
        let (quotas, limits) = (Arc::<MemoryQuotas>::default(), QuotaLimits { running: Some(2), ..HOUR });
        let [first, _second] = [(); 2].map(|()| quotas.admit(&"a".into(), &limits, false, at(1)).unwrap());
        assert_eq!(refusal(&quotas, &limits, "a", 1), exceeded(QuotaPart::Running, 1));
        assert_eq!(
            refusal(&quotas, &limits, "a", 3600),
            exceeded(QuotaPart::Running, 1),
            "they run in the next window"
        );
        assert!(quotas.admit(&"a".into(), &limits, true, at(3600)).is_ok(), "it goes on with one of them");
        drop(first);
        assert_eq!(refusal(&quotas, &limits, "a", 3600), None);
    }

    #[test]
    fn processor_time_and_bytes_are_counted_at_the_end() {
        for (limits, part) in [
            (QuotaLimits { cpu: Some(Duration::from_secs(2)), ..HOUR }, QuotaPart::ProcessorTime),
            (QuotaLimits { bytes: Some(100), ..HOUR }, QuotaPart::Bytes),
        ] {
            let quotas = Arc::<MemoryQuotas>::default();
            let charge = |used: u32, at| {
                let used = QuotaUse { cpu: Duration::from_secs(1) * used, bytes: 50 * u64::from(used) };
                quotas.charge(&"a".into(), &limits, used, at);
            };
            for _ in 0..2 {
                assert_eq!(refusal(&quotas, &limits, "a", 0), None);
                charge(1, at(0));
            }
            assert_eq!(refusal(&quotas, &limits, "a", 0), exceeded(part, 3600));
            charge(2, at(3600));
            assert_eq!(
                refusal(&quotas, &limits, "a", 3601),
                exceeded(part, 3599),
                "of a call that ends in the next one"
            );
        }
    }

    #[test]
    fn the_number_of_remembered_owners_is_bounded() {
        let quotas = Arc::<MemoryQuotas>::default();
        assert!((0..MAX_OWNERS).all(|owner| refusal(&quotas, &HOUR, &owner.to_string(), 0).is_none()));
        assert!(refusal(&quotas, &HOUR, "one more", 0).is_some());
        assert!(refusal(&quotas, &HOUR, "one more", 3600).is_none(), "the others are forgotten");
    }
}
