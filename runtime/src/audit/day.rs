//! UTC days of the log, the files named after them, and line positions in these files.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::str::FromStr;
use std::time::SystemTime;

use jiff::civil::Date;
use jiff::tz::Offset;
use jiff::{Timestamp, ToSpan};

/// A day in UTC, written `YYYY-MM-DD`. Its records are in the file `YYYYMMDD.log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(u32);

/// The text is not a day in the form `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a day such as `2026-03-01`")]
pub struct InvalidDay;

impl Day {
    /// Returns the day of a time; a time outside the years 1970 to 9999 is clamped to them.
    pub fn of(time: SystemTime) -> Self {
        Self::of_timestamp(timestamp(time))
    }

    /// Returns the previous day, if the calendar has one.
    #[must_use]
    pub fn before(self) -> Option<Self> {
        self.date()?.checked_sub(1.day()).ok().map(Self::of_date)
    }

    pub(super) fn of_timestamp(time: Timestamp) -> Self {
        Self::of_date(Offset::UTC.to_datetime(time).date())
    }

    /// Returns the day as a number of eight digits, as in file names.
    pub(super) fn number(self) -> u32 {
        self.0
    }

    /// Parses the eight digits of a day in the calendar.
    pub(super) fn of_digits(digits: &[u8]) -> Option<Self> {
        let digits: [u8; 8] = digits.try_into().ok()?;
        let number =
            digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit - b'0')));
        number.map(Self).filter(|day| day.date().is_some())
    }

    pub(super) fn file_name(self) -> String {
        format!("{:08}.log", self.0)
    }

    fn of_date(date: Date) -> Self {
        let part = |part: i8| u32::from(part.unsigned_abs());
        Self(u32::from(date.year().unsigned_abs()) * 10_000 + part(date.month()) * 100 + part(date.day()))
    }

    fn date(self) -> Option<Date> {
        let part = |part: u32| i8::try_from(part % 100).ok();
        Date::new(i16::try_from(self.0 / 10_000).ok()?, part(self.0 / 100)?, part(self.0)?).ok()
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.0 / 10_000, self.0 / 100 % 100, self.0 % 100)
    }
}

impl FromStr for Day {
    type Err = InvalidDay;

    fn from_str(text: &str) -> Result<Self, InvalidDay> {
        let [year @ .., b'-', m1, m2, b'-', d1, d2] = text.as_bytes() else { return Err(InvalidDay) };
        Self::of_digits(&[year, &[*m1, *m2, *d1, *d2]].concat()).ok_or(InvalidDay)
    }
}

/// Position of a line in a log: its file's day, and its number in the file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) day: Day,
    pub(super) line: u64,
}

/// Lists the days for which a folder has a file, oldest first. Other entries are ignored.
pub(super) fn days(folder: &Path) -> io::Result<Vec<Day>> {
    let mut days = Vec::new();
    for entry in folder.read_dir()? {
        let entry = entry?;
        let day = entry.file_name().as_encoded_bytes().strip_suffix(b".log").and_then(Day::of_digits);
        // A log file may be a link to a file elsewhere, but not a pipe, which would block.
        match entry.path().metadata() {
            Ok(metadata) if metadata.is_file() => days.extend(day),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    days.sort_unstable();
    Ok(days)
}

/// Converts a time to whole milliseconds. A time before 1970 becomes 1970.
pub(super) fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let milliseconds = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_day_is_read_as_it_is_written() {
        let day = Day::of(SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_323_200));
        assert_eq!((day.to_string(), day.file_name()), ("2026-03-01".into(), "20260301.log".into()));
        assert_eq!("2026-03-01".parse(), Ok(day));
        assert_eq!(day.before().map(|day| day.to_string()).as_deref(), Some("2026-02-28"));
        for text in ["", "2026-02-29", "20260301", "2026-3-1", "2026-03-01T", "-026-03-01", "today"] {
            assert_eq!(text.parse::<Day>(), Err(InvalidDay), "{text}");
        }
    }

    #[test]
    fn a_file_of_no_day_is_not_a_part_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["99999999.log", "20260230.log", "00000000.log", "20260301.log"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let days: Vec<String> = days(folder.path()).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(days, ["2026-03-01"]);
    }

    #[test]
    fn no_clock_leaves_the_calendar() {
        assert_eq!(Day::of(SystemTime::UNIX_EPOCH - Duration::from_secs(1)).to_string(), "1970-01-01");
        assert_eq!(Day::of(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 50)).number() / 10_000, 9999);
    }
}
