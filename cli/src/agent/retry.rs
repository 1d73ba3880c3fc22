//! When to ask a server again, and how long to wait before. Every wait is bounded, whatever the server says.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use rand::Rng;

/// The longest wait that a server may ask for. One that asks for more is asked again after our own wait: it would be
/// given up on anyhow, and a wrong clock or a wrong unit is likelier than a server that means hours.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// The longest wait of our own.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// How often a request is repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retries {
    /// How many times after the first.
    pub(crate) times: u32,
    /// The wait before the first repetition; it doubles with each.
    pub(crate) backoff: Duration,
}

impl Retries {
    /// How many attempts that makes.
    pub(crate) fn attempts(self) -> u32 {
        self.times.saturating_add(1)
    }

    /// The wait after attempt number `attempt`, counted from 1: what the server asked for, or our own, with jitter so
    /// that many clients do not return together.
    pub(crate) fn wait(self, attempt: u32, asked: Option<Duration>) -> Duration {
        asked.unwrap_or_else(|| {
            let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
            self.backoff.saturating_mul(doubled).min(MAX_BACKOFF).mul_f64(rand::rng().random_range(0.75..=1.0))
        })
    }
}

/// Whether a status is worth asking again for.
pub(crate) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

/// The wait that a `Retry-After` asks for, as seconds or as an HTTP date; `None` where it is negative, absurd or unreadable.
pub(crate) fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
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
