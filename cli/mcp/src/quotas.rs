//! Quotas for each token: calls, processor time and bytes in a time window, and calls at once.
//!
//! Windows follow one another from the epoch on, so that all servers have the same ones. Calls are counted when they are admitted,
//! and so exactly; the others when a call has ended, so that calls that run at once can exceed them by what they use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use toolcrib::ToolResult;

use super::refusal::{QuotaPart, Refusal};

/// Maximum number of remembered tokens. Those without a call in the current window are forgotten first.
const MAX_TOKENS: usize = 4096;

/// Quotas of each token; a part without a value has no limit.
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

/// Use of the quotas.
#[derive(Debug)]
pub(super) struct Quotas {
    limits: QuotaLimits,
    used: Mutex<HashMap<Arc<str>, TokenUsage>>,
}

#[derive(Debug, Default)]
struct TokenUsage {
    /// Number of the window, counted from the epoch.
    window: u64,
    calls: u64,
    cpu: Duration,
    bytes: u64,
    running: u32,
}

/// Call that counts as running until it is dropped.
#[derive(Debug)]
pub(super) struct AdmittedCall {
    quotas: Arc<Quotas>,
    token: Arc<str>,
}

impl Quotas {
    pub(super) fn new(limits: QuotaLimits) -> Self {
        Self { limits, used: Mutex::default() }
    }

    /// Counts a call of a token. One that goes on after a question (`is_continued`) needs no place among the calls at once: the
    /// call may have one already.
    ///
    /// # Errors
    ///
    /// A quota is used up, with the time until the next window.
    pub(super) fn admit(
        self: &Arc<Self>,
        token: &Arc<str>,
        is_continued: bool,
        now: SystemTime,
    ) -> Result<AdmittedCall, Refusal> {
        let (window, left) = self.window(now);
        let mut used = self.used();
        if used.len() >= MAX_TOKENS && !used.contains_key(token) {
            used.retain(|_, used| used.window == window || used.running > 0);
            if used.len() >= MAX_TOKENS {
                return Err(Refusal::Quota(QuotaPart::Calls, left));
            }
        }
        let used = used.entry(token.clone()).or_default();
        used.begin(window);
        let QuotaLimits { calls, cpu, bytes, running, .. } = self.limits;
        let used_up = [
            (!is_continued && running.is_some_and(|most| used.running >= most), QuotaPart::Running, 1),
            (calls.is_some_and(|most| used.calls >= most), QuotaPart::Calls, left),
            (cpu.is_some_and(|most| used.cpu >= most), QuotaPart::ProcessorTime, left),
            (bytes.is_some_and(|most| used.bytes >= most), QuotaPart::Bytes, left),
        ];
        if let Some((_, part, left)) = used_up.into_iter().find(|(is_used_up, ..)| *is_used_up) {
            return Err(Refusal::Quota(part, left));
        }
        used.calls += 1;
        used.running += 1;
        Ok(AdmittedCall { quotas: self.clone(), token: token.clone() })
    }

    /// Counts what an ended call has used, in the present window.
    pub(super) fn count(&self, token: &str, result: &ToolResult, now: SystemTime) {
        let receipt = &result.receipt;
        let sent = receipt.network.as_ref().map_or(0, |network| network.sent_bytes + network.received_bytes);
        let bytes = receipt.stdin_bytes + receipt.stdout_bytes + receipt.stderr_bytes + receipt.disk_bytes + sent;
        let cpu = Duration::try_from_secs_f64(receipt.cpu_ms / 1000.0).unwrap_or_default();
        self.add(token, (cpu, bytes), now);
    }

    fn add(&self, token: &str, (cpu, bytes): (Duration, u64), now: SystemTime) {
        if let Some(used) = self.used().get_mut(token) {
            used.begin(self.window(now).0);
            used.cpu = used.cpu.saturating_add(cpu);
            used.bytes = used.bytes.saturating_add(bytes);
        }
    }

    /// Returns the number of the present window, and the seconds until the next one.
    fn window(&self, now: SystemTime) -> (u64, u64) {
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let length = self.limits.window.as_secs().max(1);
        (seconds / length, length - seconds % length)
    }

    fn used(&self) -> MutexGuard<'_, HashMap<Arc<str>, TokenUsage>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenUsage {
    /// Forgets the use of an earlier window. Calls that run do so in the next one too.
    fn begin(&mut self, window: u64) {
        if self.window < window {
            *self = Self { window, running: self.running, ..Self::default() };
        }
    }
}

impl Drop for AdmittedCall {
    fn drop(&mut self) {
        if let Some(used) = self.quotas.used().get_mut(&self.token) {
            used.running = used.running.saturating_sub(1);
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

    fn refusal(quotas: &Arc<Quotas>, token: &str, seconds: u64) -> Option<Refusal> {
        quotas.admit(&token.into(), false, at(seconds)).err()
    }

    #[test]
    fn calls_are_counted_exactly_and_begin_anew_with_each_window() {
        let quotas = Arc::new(Quotas::new(QuotaLimits { calls: Some(1000), ..HOUR }));
        let admitted: usize = std::thread::scope(|scope| {
            let all =
                [(); 4].map(|()| scope.spawn(|| (0..500).filter(|_| refusal(&quotas, "a", 7_201).is_none()).count()));
            all.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!(admitted, 1000);
        assert_eq!(refusal(&quotas, "a", 7_201), Some(Refusal::Quota(QuotaPart::Calls, 3599)));
        assert_eq!(refusal(&quotas, "b", 7_201), None, "another token notices nothing");
        assert_eq!(refusal(&quotas, "a", 10_799), Some(Refusal::Quota(QuotaPart::Calls, 1)));
        assert_eq!(refusal(&quotas, "a", 10_800), None);
    }

    #[test]
    fn calls_at_once_are_counted_until_they_end() {
        let quotas = Arc::new(Quotas::new(QuotaLimits { running: Some(2), ..HOUR }));
        let [first, _second] = [(); 2].map(|()| quotas.admit(&"a".into(), false, at(1)).unwrap());
        assert_eq!(refusal(&quotas, "a", 1), Some(Refusal::Quota(QuotaPart::Running, 1)));
        assert_eq!(
            refusal(&quotas, "a", 3600),
            Some(Refusal::Quota(QuotaPart::Running, 1)),
            "they run in the next window"
        );
        assert!(quotas.admit(&"a".into(), true, at(3600)).is_ok(), "it goes on with one of them");
        drop(first);
        assert_eq!(refusal(&quotas, "a", 3600), None);
    }

    #[test]
    fn processor_time_and_bytes_are_counted_at_the_end() {
        for (limits, part) in [
            (QuotaLimits { cpu: Some(Duration::from_secs(2)), ..HOUR }, QuotaPart::ProcessorTime),
            (QuotaLimits { bytes: Some(100), ..HOUR }, QuotaPart::Bytes),
        ] {
            let quotas = Arc::new(Quotas::new(limits));
            for _ in 0..2 {
                assert_eq!(refusal(&quotas, "a", 0), None);
                quotas.add("a", (Duration::from_secs(1), 50), at(0));
            }
            assert_eq!(refusal(&quotas, "a", 0), Some(Refusal::Quota(part, 3600)));
            quotas.add("a", (Duration::from_secs(2), 100), at(3600));
            assert_eq!(
                refusal(&quotas, "a", 3601),
                Some(Refusal::Quota(part, 3599)),
                "of a call that ends in the next one"
            );
        }
    }

    #[test]
    fn the_number_of_remembered_tokens_is_bounded() {
        let quotas = Arc::new(Quotas::new(HOUR));
        assert!((0..MAX_TOKENS).all(|token| refusal(&quotas, &token.to_string(), 0).is_none()));
        assert!(refusal(&quotas, "one more", 0).is_some());
        assert!(refusal(&quotas, "one more", 3600).is_none(), "the others are forgotten");
    }
}
