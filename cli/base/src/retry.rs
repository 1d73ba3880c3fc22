//! Retry policy: retryable statuses and bounded delays.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// Maximum delay that a server may request. A longer one is ignored in favor of the backoff: a wrong clock or unit is more
/// likely than an intended delay of hours.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Maximum backoff.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Retry settings.
#[derive(Debug, Clone, Copy)]
pub struct Retries {
    /// Maximum retries after the first attempt.
    pub times: u32,
    /// Delay before the first retry; doubles with each retry.
    pub backoff: Duration,
}

impl Retries {
    /// Returns the maximum number of attempts.
    pub fn attempts(self) -> u32 {
        self.times.saturating_add(1)
    }

    /// Returns the delay after attempt `attempt`, counted from 1: the server's, or the backoff with jitter.
    pub fn wait(self, attempt: u32, asked: Option<Duration>) -> Duration {
        asked.unwrap_or_else(|| {
            let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
            self.backoff.saturating_mul(doubled).min(MAX_BACKOFF).mul_f64(rand::random_range(0.75..=1.0))
        })
    }
}

/// `true` if a status is worth a retry.
pub fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

/// Parses a `Retry-After` header, in seconds or as an HTTP date; `None` if it is negative, too long or invalid.
pub fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let header = header.trim();
    let seconds = match header.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let date = DateTimeParser::new().parse_timestamp(header).ok()?;
            date.duration_since(now).as_secs_f64().max(0.0)
        }
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|wait| *wait <= MAX_RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_ask_for_a_wait_in_bounds_and_no_other() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().expect("a timestamp");
        let seconds = |text| retry_after(text, now).map(|wait| wait.as_secs());
        assert_eq!(seconds("2"), Some(2));
        assert_eq!(seconds(" 0 "), Some(0));
        assert_eq!(seconds("Sun, 01 Mar 2026 12:00:07 GMT"), Some(7));
        assert_eq!(seconds("Sun, 01 Mar 2026 11:00:00 GMT"), Some(0));
        for absurd in ["-5", "86400", "1e300", "NaN", "inf", "soon", "", "Sun, 01 Mar 2037 12:00:00 GMT"] {
            assert_eq!(seconds(absurd), None, "{absurd}");
        }
    }

    #[test]
    fn our_own_wait_doubles_and_is_capped() {
        let retries = Retries { times: 2, backoff: Duration::from_millis(500) };
        for (attempt, most) in [(1, 500), (2, 1_000), (3, 2_000), (40, 30_000)] {
            let wait = retries.wait(attempt, None).as_millis();
            assert!((most * 3 / 4..=most).contains(&wait), "attempt {attempt}: {wait}");
        }
        assert_eq!(retries.wait(9, Some(Duration::from_secs(3))), Duration::from_secs(3));
    }
}
