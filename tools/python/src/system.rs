//! Requests of programs to a system. They have none: files, environment and processes are refused with the way out, which is a
//! tool. Only the date and the time are answered, from the clock that the host gives.

use std::time::{Duration, SystemTime};

use monty_types::{ExcType, ExtFunctionResult, MontyDate, MontyDateTime, MontyException, MontyObject, OsFunctionCall};

/// Answers a call of the system.
pub(crate) fn answer(call: &OsFunctionCall) -> ExtFunctionResult {
    match call {
        OsFunctionCall::DateToday => MontyObject::Date(date(now())).into(),
        OsFunctionCall::DateTimeNow(zone) => {
            // Without a zone the local time is UTC.
            let offset = zone.as_ref().map(|zone| zone.offset_seconds);
            let name = zone.as_ref().and_then(|zone| zone.name.clone());
            MontyObject::DateTime(date_time(now(), offset, name)).into()
        }
        OsFunctionCall::Getenv(_) | OsFunctionCall::GetEnviron => {
            refused("programs have no environment variables".to_owned())
        }
        other => refused(format!("`{}`: programs have no files: use a tool", other.name())),
    }
}

fn refused(message: String) -> ExtFunctionResult {
    MontyException::new(ExcType::PermissionError, Some(message)).into()
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Date of a time since 1970, after Howard Hinnant's `civil_from_days`.
fn date(time: Duration) -> MontyDate {
    let days = (time.as_secs() / 86_400) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    MontyDate { year: year as i32, month: month as u8, day: (day_of_year - (153 * shifted + 2) / 5 + 1) as u8 }
}

fn date_time(time: Duration, offset: Option<i32>, timezone_name: Option<String>) -> MontyDateTime {
    let seconds = time.as_secs().saturating_add_signed(i64::from(offset.unwrap_or(0)));
    let MontyDate { year, month, day } = date(Duration::from_secs(seconds));
    MontyDateTime {
        year,
        month,
        day,
        hour: (seconds / 3_600 % 24) as u8,
        minute: (seconds / 60 % 60) as u8,
        second: (seconds % 60) as u8,
        microsecond: time.subsec_micros(),
        offset_seconds: offset,
        timezone_name,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{date, date_time};

    #[test]
    fn dates_are_right() {
        let day = |seconds| {
            let date = date(Duration::from_secs(seconds));
            (date.year, date.month, date.day)
        };
        assert_eq!(day(0), (1970, 1, 1));
        assert_eq!(day(951_782_400), (2000, 2, 29));
        assert_eq!(day(1_798_761_599), (2026, 12, 31));
        let time = date_time(Duration::from_secs(951_782_400), Some(-3_600), None);
        assert_eq!((time.month, time.day, time.hour), (2, 28, 23));
    }
}
