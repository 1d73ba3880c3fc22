//! Repetition of requests: which failures pass, how long to wait, and when to give up.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::{Duration, SystemTime};

use crate::error::Error;
use crate::limits::{Limits, MAX_ATTEMPTS, MAX_BACK_OFF};

/// Counter of the attempts for one request.
pub(crate) struct Retry<'a> {
    limits: &'a Limits,
    host: &'a str,
    failures: u32,
}

impl<'a> Retry<'a> {
    pub(crate) fn new(limits: &'a Limits, host: &'a str) -> Self {
        Self { limits, host, failures: 0 }
    }

    /// Waits before the next attempt, or returns the failure if no further attempt is made.
    pub(crate) async fn pause(&mut self, error: Error) -> Result<(), Error> {
        let wait = self.next(error)?;
        tokio::time::sleep(wait).await;
        Ok(())
    }

    fn next(&mut self, error: Error) -> Result<Duration, Error> {
        self.failures += 1;
        let asked = match &error {
            Error::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        if !error.is_passing() || self.failures >= self.limits.attempts.clamp(1, MAX_ATTEMPTS) {
            return Err(error);
        }
        match asked {
            Some(wait) if wait > self.limits.retry_after => {
                Err(Error::RetryLater { host: self.host.to_owned(), wait, limit: self.limits.retry_after })
            }
            Some(wait) => Ok(wait.max(self.back_off())),
            None => Ok(self.back_off()),
        }
    }

    /// Returns the doubled pause, shortened at random by up to half so that many clients do not return at once.
    fn back_off(&self) -> Duration {
        let full = self.limits.back_off.saturating_mul(1 << (self.failures - 1).min(16)).min(MAX_BACK_OFF);
        // The keys of a `RandomState` are random.
        let random = RandomState::new().build_hasher().finish() >> 32;
        full / 2 + (full / 2).mul_f64(random as f64 / f64::from(u32::MAX))
    }
}

/// Parses `Retry-After`: seconds or a date. `None` if it is neither.
pub(crate) fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(value.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::What;

    fn busy(retry_after: Option<Duration>) -> Error {
        Error::Status { what: What::Blob, status: 429, code: None, retry_after }
    }

    #[test]
    fn the_pause_doubles_within_its_bound() {
        let limits = Limits { attempts: u32::MAX, ..Limits::default() };
        let mut retry = Retry::new(&limits, "h");
        for attempt in 0..MAX_ATTEMPTS - 1 {
            let full = (limits.back_off * (1 << attempt)).min(MAX_BACK_OFF);
            let wait = retry.next(busy(None)).unwrap();
            assert!(wait >= full / 2 && wait <= full, "{wait:?} of {full:?}");
        }
        assert!(matches!(retry.next(busy(None)), Err(Error::Status { .. })));
    }

    #[test]
    fn a_server_may_ask_for_a_pause_up_to_the_limit() {
        let limits = Limits::default();
        let second = Duration::from_secs(1);
        assert_eq!(Retry::new(&limits, "h").next(busy(Some(second * 7))).unwrap(), second * 7);
        assert!(Retry::new(&limits, "h").next(busy(Some(Duration::ZERO))).unwrap() >= limits.back_off / 2);
        let refused = Retry::new(&limits, "h").next(busy(Some(limits.retry_after + second)));
        assert!(matches!(refused, Err(Error::RetryLater { .. })));
    }

    #[test]
    fn a_lasting_failure_is_not_repeated() {
        let limits = Limits::default();
        assert!(Retry::new(&limits, "h").next(Error::NotFound { what: What::Blob }).is_err());
    }

    #[test]
    fn every_form_of_retry_after_has_one_meaning() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let parse = |text| parse_retry_after(text, now);
        assert_eq!(parse("120"), Some(Duration::from_secs(120)));
        assert_eq!(parse("Sun, 06 Nov 1994 08:50:37 GMT"), Some(Duration::from_secs(60)));
        assert_eq!(parse("Tue, 06 Nov 1990 08:50:37 GMT"), Some(Duration::ZERO));
        assert_eq!(parse("99999999999999999999999"), Some(Duration::MAX));
        for text in ["", "-5", "1.5", "soon", "+3"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
