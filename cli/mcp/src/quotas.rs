//! Quotas for each token: calls, processor time and bytes in a time window, and calls at once.
//!
//! Windows follow one another from the epoch on, so that all servers have the same ones. Calls are counted when they are admitted,
//! and so exactly; the others when a call has ended, so that calls that run at once can exceed them by what they use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use toolcrib::ToolResult;

use super::refusal::{Refusal, UsedUp};

/// Maximum number of remembered tokens. Those without a call in the current window are forgotten first.
const MAX_TOKENS: usize = 4096;

/// Quotas of each token; a part without a value has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaLimits {
    /// Length of a window, at least a second.
    pub window: Duration,
    /// Calls of a window.
    pub calls: Option<u64>,
    /// Processor time of all calls in a window.
    pub cpu: Option<Duration>,
    /// Bytes that the calls of a window print, write, send and receive.
    pub bytes: Option<u64>,
    /// Calls at once.
    pub running: Option<u32>,
}

/// Use of the quotas.
#[derive(Debug)]
pub(super) struct Quotas {
    limits: QuotaLimits,
    used: Mutex<HashMap<Arc<str>, Use>>,
}

#[derive(Debug, Default)]
struct Use {
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

    /// Counts a call of a token.
    ///
    /// # Errors
    ///
    /// A quota is used up, with the time until the next window.
    pub(super) fn admit(self: &Arc<Self>, token: &Arc<str>, now: SystemTime) -> Result<AdmittedCall, Refusal> {
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let length = self.limits.window.as_secs().max(1);
        let (window, left) = (seconds / length, length - seconds % length);
        let mut used = self.used();
        if used.len() >= MAX_TOKENS && !used.contains_key(token) {
            used.retain(|_, used| used.window == window || used.running > 0);
            if used.len() >= MAX_TOKENS {
                return Err(Refusal::Quota(UsedUp::Calls, left));
            }
        }
        let used = used.entry(token.clone()).or_default();
        if used.window != window {
            *used = Use { window, running: used.running, ..Use::default() };
        }
        let QuotaLimits { calls, cpu, bytes, running, .. } = self.limits;
        let used_up = [
            (running.is_some_and(|most| used.running >= most), UsedUp::Running, 1),
            (calls.is_some_and(|most| used.calls >= most), UsedUp::Calls, left),
            (cpu.is_some_and(|most| used.cpu >= most), UsedUp::ProcessorTime, left),
            (bytes.is_some_and(|most| used.bytes >= most), UsedUp::Bytes, left),
        ];
        if let Some((_, part, left)) = used_up.into_iter().find(|(is_used_up, ..)| *is_used_up) {
            return Err(Refusal::Quota(part, left));
        }
        used.calls += 1;
        used.running += 1;
        Ok(AdmittedCall { quotas: self.clone(), token: token.clone() })
    }

    /// Counts the processor time and the bytes of a call that has ended, in the window in which its token was last admitted.
    pub(super) fn count(&self, token: &str, result: &ToolResult) {
        let receipt = &result.receipt;
        let sent = receipt.network.as_ref().map_or(0, |network| network.sent_bytes + network.received_bytes);
        let bytes = receipt.stdin_bytes + receipt.stdout_bytes + receipt.stderr_bytes + receipt.disk_bytes + sent;
        let cpu = Duration::try_from_secs_f64(receipt.cpu_ms / 1000.0).unwrap_or_default();
        self.add(token, cpu, bytes);
    }

    fn add(&self, token: &str, cpu: Duration, bytes: u64) {
        if let Some(used) = self.used().get_mut(token) {
            used.cpu = used.cpu.saturating_add(cpu);
            used.bytes = used.bytes.saturating_add(bytes);
        }
    }

    fn used(&self) -> MutexGuard<'_, HashMap<Arc<str>, Use>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
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
        quotas.admit(&token.into(), at(seconds)).err()
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
        assert_eq!(refusal(&quotas, "a", 7_201), Some(Refusal::Quota(UsedUp::Calls, 3599)));
        assert_eq!(refusal(&quotas, "b", 7_201), None, "another token notices nothing");
        assert_eq!(refusal(&quotas, "a", 10_799), Some(Refusal::Quota(UsedUp::Calls, 1)));
        assert_eq!(refusal(&quotas, "a", 10_800), None);
    }

    #[test]
    fn calls_at_once_are_counted_until_they_end() {
        let quotas = Arc::new(Quotas::new(QuotaLimits { running: Some(2), ..HOUR }));
        let [first, _second] = [(); 2].map(|()| quotas.admit(&"a".into(), at(1)).unwrap());
        assert_eq!(refusal(&quotas, "a", 1), Some(Refusal::Quota(UsedUp::Running, 1)));
        assert_eq!(
            refusal(&quotas, "a", 3600),
            Some(Refusal::Quota(UsedUp::Running, 1)),
            "they run in the next window"
        );
        drop(first);
        assert_eq!(refusal(&quotas, "a", 3600), None);
    }

    #[test]
    fn processor_time_and_bytes_are_counted_at_the_end() {
        for (limits, part) in [
            (QuotaLimits { cpu: Some(Duration::from_secs(2)), ..HOUR }, UsedUp::ProcessorTime),
            (QuotaLimits { bytes: Some(100), ..HOUR }, UsedUp::Bytes),
        ] {
            let quotas = Arc::new(Quotas::new(limits));
            for _ in 0..2 {
                assert_eq!(refusal(&quotas, "a", 0), None);
                quotas.add("a", Duration::from_secs(1), 50);
            }
            assert_eq!(refusal(&quotas, "a", 0), Some(Refusal::Quota(part, 3600)));
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
