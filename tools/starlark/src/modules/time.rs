//! Module `time`: the clock, and instants as text, all in UTC. Milliseconds count from 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::fmt::strtime;
use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::none::NoneOr;

use super::error;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Seconds since 1970.
    fn now() -> starlark::Result<f64> {
        Ok(since_epoch().as_secs_f64())
    }

    /// Milliseconds since 1970.
    fn now_ms() -> starlark::Result<u64> {
        Ok(u64::try_from(since_epoch().as_millis()).unwrap_or(u64::MAX))
    }

    /// Formats an instant as in RFC 3339, or with the conversions of `strftime`.
    fn format(ms: i64, #[starlark(default = NoneOr::None)] format: NoneOr<&str>) -> starlark::Result<String> {
        written(ms, format.into_option()).map_err(|what| error("time.format", what))
    }

    /// Parses an instant in the form of RFC 3339 into milliseconds.
    fn parse(text: &str) -> starlark::Result<i64> {
        let instant: Timestamp = text.parse().map_err(|what| error("time.parse", what))?;
        Ok(instant.as_millisecond())
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn written(ms: i64, format: Option<&str>) -> Result<String, jiff::Error> {
    let instant = Timestamp::from_millisecond(ms)?;
    match format {
        Some(format) => strtime::format(format, instant),
        None => Ok(instant.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_as_asked() {
        assert_eq!(written(1_700_000_000_123, None).as_deref().ok(), Some("2023-11-14T22:13:20.123Z"));
        assert_eq!(written(0, Some("%Y-%m-%d %H:%M")).as_deref().ok(), Some("1970-01-01 00:00"));
        assert!(written(0, Some("%")).is_err());
        assert!(written(i64::MAX, None).is_err());
    }
}
