//! Figures of logged calls by tool and by time, in bounded memory for a log of any length.

use std::collections::BTreeMap;

use jiff::Timestamp;
use toolcrib::audit::LogEntry;
use toolcrib_base::render::shortened;

use super::durations::Durations;
use super::record::{OwnUse, Record};

/// Maximum number of tools, and of denied capabilities, with figures of their own.
const MAX_TOOLS: usize = 100;
const MAX_DENIED: usize = 300;
/// Maximum characters of a name.
const MAX_NAME: usize = 200;
/// Name of all others.
const OTHERS: &str = "(others)";
/// Maximum duration of a call in milliseconds: a year. A longer one is not true.
pub(super) const MAX_MS: f64 = 366.0 * 86_400_000.0;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Number of buckets of all time.
const BUCKETS: i64 = 48;
/// Lengths of a bucket of all time.
const WIDTHS: [i64; 8] = [MINUTE, 5 * MINUTE, 30 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY];

/// Time that figures cover, until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    Hour,
    Day,
    Month,
    All,
}

/// Buckets of time, all of the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    /// Start of the first bucket and length of a bucket in milliseconds.
    pub(super) start: i64,
    pub(super) width: i64,
    pub(super) count: usize,
}

/// Figures of the calls in a bucket or of a tool.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    pub(super) calls: u64,
    pub(super) failures: u64,
    pub(super) ms: f64,
    pub(super) memory: u64,
}

/// Figures of a tool.
#[derive(Debug)]
pub(super) struct ToolFigures {
    pub(super) whole: Cell,
    pub(super) durations: Durations,
}

/// Denials of a capability.
#[derive(Debug, Default)]
pub(super) struct Denials {
    pub(super) count: u64,
    /// Flag that the last record names.
    pub(super) flag: Option<String>,
}

/// Figures of calls.
#[derive(Debug)]
pub(super) struct Figures {
    span: Span,
    now: i64,
    /// Buckets, once they are known: the buckets of all time begin with the first record.
    pub(super) axis: Option<Axis>,
    /// Figures of all tools by bucket.
    pub(super) times: Vec<Cell>,
    pub(super) tools: BTreeMap<String, ToolFigures>,
    pub(super) denied: BTreeMap<String, Denials>,
}

impl Span {
    pub(super) const ALL: [Self; 4] = [Self::Hour, Self::Day, Self::Month, Self::All];

    /// Returns the name in an address and in the choice.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hour => "1 hour",
            Self::Day => "24 hours",
            Self::Month => "30 days",
            Self::All => "all",
        }
    }

    /// Returns the buckets until `now`. The buckets of all time begin with the `first` record.
    pub(super) fn axis(self, now: i64, first: i64) -> Axis {
        let until = |width: i64, count: i64| {
            let end = now.div_euclid(width) + 1;
            Axis { start: (end - count) * width, width, count: count as usize }
        };
        match self {
            Self::Hour => until(2 * MINUTE, 31),
            Self::Day => until(HOUR / 2, 49),
            Self::Month => until(DAY, 31),
            Self::All => {
                let length = now.saturating_sub(first).max(1);
                let fits = |width: &i64| length / width < BUCKETS - 1;
                let month = WIDTHS[WIDTHS.len() - 1];
                let width = WIDTHS.into_iter().find(fits).unwrap_or_else(|| (length / BUCKETS / month + 1) * month);
                let count = now.div_euclid(width) - first.min(now).div_euclid(width) + 1;
                until(width, count.clamp(1, 2 * BUCKETS))
            }
        }
    }

    /// Returns the earliest time of a record that counts.
    pub(super) fn start(self, now: i64) -> Option<i64> {
        (self != Self::All).then(|| self.axis(now, now).start)
    }
}

impl Axis {
    /// Returns the bucket of a time; the last one for the future, which other clocks may write.
    fn bucket(&self, at: i64) -> Option<usize> {
        let bucket = usize::try_from((at - self.start).div_euclid(self.width)).ok()?;
        Some(bucket.min(self.count - 1))
    }

    /// Returns the start of a bucket in the form of a record.
    pub(super) fn time(&self, bucket: usize) -> String {
        let start = self.start.saturating_add(self.width.saturating_mul(bucket as i64));
        Timestamp::from_millisecond(start).map(|time| format!("{time:.0}")).unwrap_or_default()
    }
}

impl Figures {
    pub(super) fn new(span: Span, now: i64) -> Self {
        Self { span, now, axis: None, times: Vec::new(), tools: BTreeMap::new(), denied: BTreeMap::new() }
    }

    /// Adds a record, if it has a time that counts.
    pub(super) fn add(&mut self, entry: &LogEntry) {
        let Ok(at) = entry.ts.parse::<Timestamp>().map(Timestamp::as_millisecond) else { return };
        let axis = *self.axis.get_or_insert_with(|| self.span.axis(self.now, at));
        self.times.resize_with(axis.count, Cell::default);
        // A record of all time may be older than the first one, where a clock was set back.
        let Some(bucket) = axis.bucket(if self.span == Span::All { at.max(axis.start) } else { at }) else { return };
        let own = OwnUse::of(entry);
        let (ms, memory) = (own.ms.min(MAX_MS), own.peak_memory_bytes);
        let cell = Cell { calls: 1, failures: u64::from(entry.outcome != "ok"), ms, memory };
        let name = bounded(&entry.tool, &self.tools, MAX_TOOLS);
        let tool = self.tools.entry(name).or_insert_with(ToolFigures::new);
        tool.whole.add(cell);
        tool.durations.add(ms);
        self.times[bucket].add(cell);
        if !entry.denied.is_empty() {
            for denied in Record::of(entry).denied {
                let name = bounded(&denied.capability, &self.denied, MAX_DENIED);
                let denials = self.denied.entry(name).or_default();
                denials.count += 1;
                denials.flag = denied.flag.or(denials.flag.take());
            }
        }
    }

    /// Returns the figures of all tools together.
    pub(super) fn whole(&self) -> Cell {
        let mut whole = Cell::default();
        self.times.iter().for_each(|cell| whole.add(*cell));
        whole
    }
}

impl ToolFigures {
    fn new() -> Self {
        Self { whole: Cell::default(), durations: Durations::new() }
    }
}

impl Cell {
    pub(super) fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.failures += other.failures;
        self.ms += other.ms;
        self.memory = self.memory.max(other.memory);
    }
}

/// Returns the name in bounded length, or the common name for all others once there are too many.
fn bounded<T>(name: &str, known: &BTreeMap<String, T>, max: usize) -> String {
    let name = shortened(name, MAX_NAME).into_owned();
    if known.contains_key(&name) || known.len() < max { name } else { OTHERS.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_few_and_reach_until_now() {
        let now = 1_800_000_000_000;
        for span in Span::ALL {
            for age in [0, 1, MINUTE, DAY, 40 * DAY, 20_000 * DAY, -DAY] {
                let axis = span.axis(now, now - age);
                assert!((1..=2 * BUCKETS as usize).contains(&axis.count), "{span:?} {age}: {axis:?}");
                assert_eq!(axis.bucket(now), Some(axis.count - 1), "{span:?} {age}: {axis:?}");
                assert_eq!(axis.bucket(i64::MAX / 2), Some(axis.count - 1));
                assert!(span != Span::All || axis.start <= now - age.max(0), "{age}: {axis:?}");
            }
        }
        let axis = Span::Day.axis(now, 0);
        assert_eq!((axis.bucket(axis.start - 1), axis.bucket(axis.start)), (None, Some(0)));
        assert!(axis.start <= now - DAY);
    }
}
