//! Comparison of a forwarded copy with the log. Both are read in windows of record numbers, so that memory is bounded for logs of any
//! length; a copy may have its records in any order, and several times.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use serde::Serialize;
use toolcrib::audit::{self, LogTail, SealedRecord, TailEvent, TailProblem};
use toolcrib_base::render::counted;

use super::copy_window::{CopiedNumber, CopyWindow, WindowSide};
use super::cursor::{RegisteredCursor, registered};
use super::record::{plain, without_arguments};
use super::{copy_lines, copy_proof};

/// Versions of records in a window.
const WINDOW: usize = 1 << 18;
/// Maximum number of differences in a report; the others are counted.
const MAX_REPORTED: usize = 100;

/// Difference between a copy and the log. Numbers are the `seq` of records; ranges are inclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "found", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CopyDifference {
    /// Records of the log are not in the copy.
    Missing {
        /// First missing record.
        first: u64,
        /// Last missing record.
        last: u64,
    },
    /// The copy and the log have another record of one number.
    Changed {
        /// Number of the record.
        seq: u64,
        /// File of the copy.
        file: PathBuf,
        /// Line in the file.
        line: u64,
    },
    /// Records of the copy are not in the log.
    Unknown {
        /// First record.
        first: u64,
        /// Last record.
        last: u64,
    },
    /// Records that the log no longer has are not proven: the copy has no unbroken chain from the record before them to the log's
    /// first record, or another version beside the proven one.
    Unproven {
        /// First record.
        first: u64,
        /// Last record.
        last: u64,
    },
}

/// Result of a comparison.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CopyReport {
    /// Records in the copy, each counted once.
    pub records: u64,
    /// Records that the copy has again.
    pub repeated: u64,
    /// First record of the copy.
    pub first: Option<u64>,
    /// Last record of the copy.
    pub last: Option<u64>,
    /// Records that the copy has without their arguments.
    pub without_arguments: u64,
    /// Records that the log no longer has, and that their chain up to the log's first record proves.
    pub only_in_copy: u64,
    /// Records after the copy's last one that were not sent yet.
    pub not_sent: u64,
    /// Lines of the copy without a record.
    pub other_lines: u64,
    /// Lines with further versions of a number that has eight; they are differences and not compared.
    pub further_versions: u64,
    /// Number of differences.
    pub differences: u64,
    /// Differences, at most 100, ordered by number.
    pub found: Vec<CopyDifference>,
}

/// A comparison that is under way.
#[derive(Default)]
struct Comparison {
    report: CopyReport,
    missing: Span,
    unknown: Span,
    unproven: Span,
}

/// Consecutive numbers, collected in either direction.
#[derive(Default)]
struct Span(Option<(u64, u64)>);

/// Compares copies of a log with the log. `fetched` names the targets of fetched copies, as the forwarder does.
///
/// # Errors
///
/// The log or a copy cannot be read, or a copy has no record.
pub fn compare(log: &Path, copies: &[PathBuf], fetched: &[String]) -> anyhow::Result<CopyReport> {
    compare_in_windows(log, copies, fetched, WINDOW)
}

fn compare_in_windows(
    folder: &Path,
    copies: &[PathBuf],
    fetched: &[String],
    size: usize,
) -> anyhow::Result<CopyReport> {
    let files = copy_lines::files(copies)?;
    let mut comparison = Comparison::default();
    let report = &mut comparison.report;
    report.other_lines = copy_lines::each(&files, |record| {
        report.first = Some(report.first.map_or(record.seq, |first| first.min(record.seq)));
        report.last = Some(report.last.map_or(record.seq, |last| last.max(record.seq)));
    })?;
    let (Some(first), Some(last)) = (report.first, report.last) else {
        bail!("the copy contains no audit record: {} without one", counted(report.other_lines, "line"));
    };
    let mut log = LogReader::start(folder)?;
    let mut start = first;
    if let Some(next) = log.next.as_ref().filter(|next| first < next.place.seq) {
        let seq = next.place.seq;
        start = seq;
        copy_proof::each_proof(
            &files,
            first..=last.min(seq - 1),
            (seq, &next.line),
            size,
            |seq, number, is_proven| {
                comparison.judge(seq, number, is_proven);
            },
        )?;
    }
    // Records before the copy's first are not in question: it may have been moved away in part, as the log may.
    log.skip_before(first)?;
    while start <= last {
        let window = CopyWindow::read(&files, start..=last, size, WindowSide::Lowest)?;
        let end = *window.range.end();
        comparison.compare(window, &mut log, end, &files)?;
        start = end + 1;
    }
    comparison.end(&mut log, sent(folder, copies, fetched)?.unwrap_or(last))?;
    let mut report = comparison.report;
    report.found.sort_by_key(CopyDifference::first);
    Ok(report)
}

/// Number of the last record that must be in the copies: what the forwarder to one of these folders has sent, or else every
/// forwarder; `None` without a forwarder.
fn sent(folder: &Path, copies: &[PathBuf], fetched: &[String]) -> anyhow::Result<Option<u64>> {
    let cursors = registered(folder)?;
    let places = copies.iter().filter_map(|copy| copy.canonicalize().ok());
    let named: Vec<String> = places.map(|place| place.display().to_string()).chain(fetched.iter().cloned()).collect();
    let is_named = |cursor: &&RegisteredCursor| named.contains(&cursor.target);
    let has_named = cursors.iter().any(|cursor| is_named(&cursor));
    let chosen = cursors.iter().filter(|cursor| !has_named || is_named(cursor));
    Ok(chosen.map(|cursor| cursor.place.map_or(0, |place| place.seq)).min())
}

impl Comparison {
    /// Takes a number that the log no longer has.
    fn judge(&mut self, seq: u64, number: &CopiedNumber, is_proven: bool) {
        self.count(number);
        self.report.only_in_copy += u64::from(is_proven);
        // One version is the record.
        if !is_proven || number.versions.len() > 1 {
            let range = self.unproven.push(seq);
            self.add(range.map(|(first, last)| CopyDifference::Unproven { first, last }));
        }
    }

    /// Compares a window with the records of the log up to `end`.
    fn compare(&mut self, window: CopyWindow, log: &mut LogReader, end: u64, files: &[PathBuf]) -> anyhow::Result<()> {
        let mut numbers = window.numbers;
        while let Some(record) = log.next_up_to(end)? {
            let seq = record.place.seq;
            let Some(mut number) = numbers.remove(&seq) else {
                self.miss(seq);
                continue;
            };
            self.count(&number);
            let mut take = |line: &str| {
                let plain = plain(line);
                number.take(line) | (plain != line && number.take(&plain))
            };
            let is_whole = take(&record.line);
            let short = without_arguments(&record.line, &record.place);
            let is_short = short != record.line && take(&short);
            self.report.without_arguments += u64::from(is_short && !is_whole);
            number.versions.sort_by_key(|version| version.position);
            for version in number.versions {
                let (file, line) = version.position;
                self.add(Some(CopyDifference::Changed { seq, file: files[file].clone(), line }));
            }
        }
        for (seq, number) in numbers {
            self.count(&number);
            let range = self.unknown.push(seq);
            self.add(range.map(|(first, last)| CopyDifference::Unknown { first, last }));
        }
        Ok(())
    }

    /// Compares the end of the log up to the record that was sent last, and ends the ranges.
    fn end(&mut self, log: &mut LogReader, sent: u64) -> anyhow::Result<()> {
        while let Some(record) = log.next_up_to(u64::MAX)? {
            if record.place.seq > sent {
                self.report.not_sent += 1;
            } else {
                self.miss(record.place.seq);
            }
        }
        let (missing, unknown, unproven) = (self.missing.0.take(), self.unknown.0.take(), self.unproven.0.take());
        self.add(missing.map(|(first, last)| CopyDifference::Missing { first, last }));
        self.add(unknown.map(|(first, last)| CopyDifference::Unknown { first, last }));
        self.add(unproven.map(|(first, last)| CopyDifference::Unproven { first, last }));
        Ok(())
    }

    fn miss(&mut self, seq: u64) {
        let range = self.missing.push(seq);
        self.add(range.map(|(first, last)| CopyDifference::Missing { first, last }));
    }

    fn count(&mut self, number: &CopiedNumber) {
        self.report.records += number.versions.len() as u64;
        self.report.repeated += number.repeated;
        self.report.further_versions += number.further;
        self.report.differences += number.further;
    }

    fn add(&mut self, difference: Option<CopyDifference>) {
        self.report.differences += u64::from(difference.is_some());
        if self.report.found.len() < MAX_REPORTED {
            self.report.found.extend(difference);
        }
    }
}

impl Span {
    /// Adds a number; returns the numbers before if it does not continue them.
    fn push(&mut self, seq: u64) -> Option<(u64, u64)> {
        match &mut self.0 {
            Some((_, last)) if last.checked_add(1) == Some(seq) => *last = seq,
            Some((first, _)) if seq.checked_add(1) == Some(*first) => *first = seq,
            other => return other.replace((seq, seq)),
        }
        None
    }
}

/// Reader of the log with one record ahead.
struct LogReader {
    tail: LogTail,
    next: Option<SealedRecord>,
}

impl LogReader {
    fn start(folder: &Path) -> anyhow::Result<Self> {
        let mut reader = Self { tail: audit::tail(folder, None)?, next: None };
        reader.advance()?;
        Ok(reader)
    }

    fn advance(&mut self) -> anyhow::Result<()> {
        self.next = loop {
            match self.tail.next()? {
                Some(TailEvent::Record(record)) => break Some(record),
                // The verification of the log reports its other problems.
                Some(TailEvent::Problem(TailProblem::Restarted { after })) => {
                    bail!("the log has several beginnings, one after record {after}: compare each with its own copy")
                }
                Some(_) => {}
                None => break None,
            }
        };
        Ok(())
    }

    fn skip_before(&mut self, seq: u64) -> anyhow::Result<()> {
        while self.next.as_ref().is_some_and(|record| record.place.seq < seq) {
            self.advance()?;
        }
        Ok(())
    }

    /// Returns the next record, if its number is at most `end`.
    fn next_up_to(&mut self, end: u64) -> anyhow::Result<Option<SealedRecord>> {
        let Some(record) = self.next.take_if(|record| record.place.seq <= end) else { return Ok(None) };
        self.advance()?;
        Ok(Some(record))
    }
}

impl CopyDifference {
    /// Number of the first record that it concerns.
    fn first(&self) -> u64 {
        match self {
            Self::Missing { first, .. } | Self::Unknown { first, .. } | Self::Unproven { first, .. } => *first,
            Self::Changed { seq, .. } => *seq,
        }
    }
}

impl fmt::Display for CopyDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { first, last } => write!(f, "{} missing in the copy", range(*first, *last)),
            Self::Changed { seq, file, line } => {
                write!(f, "{}:{line}: record {seq} is not the record of the log", file.display())
            }
            Self::Unknown { first, last } => write!(f, "{} in the copy and not in the log", range(*first, *last)),
            Self::Unproven { first, last } => {
                write!(f, "{} no longer in the log and not proven by neighboring records", range(*first, *last))
            }
        }
    }
}

fn range(first: u64, last: u64) -> String {
    if first == last { format!("record {first} is") } else { format!("records {first} to {last} are") }
}

#[cfg(test)]
mod tests;
