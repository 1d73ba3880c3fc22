//! Comparison of a forwarded copy with the log. Both are read in windows of record numbers, so that memory is bounded for logs of any
//! length; within a window, a copy may have its records in any order, and several times.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use serde::Serialize;
use sha2::{Digest, Sha256};
use toolcrib::audit::{self, Chain, LogTail, SealedRecord, TailEvent, TailProblem};
use toolcrib_base::render::counted;

use super::copy_lines;
use super::cursor::registered;
use super::record::without_arguments;

/// Numbers in a window.
const WINDOW: u64 = 1 << 18;
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
    /// Records that the log no longer has do not follow one another in the copy.
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
    /// Records that the log no longer has, and that the copy proves by their chain values.
    pub only_in_copy: u64,
    /// Records after the copy's last one that no forwarder has sent.
    pub not_sent: u64,
    /// Lines of the copy without a record.
    pub other_lines: u64,
    /// Number of differences.
    pub differences: u64,
    /// The first differences, ordered by number.
    pub found: Vec<CopyDifference>,
}

/// Line of a copy in a window.
struct CopiedLine {
    position: (usize, u64),
    /// `true` if it continues the chain of the record before it in the copy.
    is_chained: bool,
}

/// Records of a copy in a window, by their number and the digest of their line.
type Window = HashMap<(u64, [u8; 32]), CopiedLine>;

/// Compares copies of a log with the log.
///
/// # Errors
///
/// The log or a copy cannot be read, or a copy has no record.
pub fn compare(log: &Path, copies: &[PathBuf]) -> anyhow::Result<CopyReport> {
    let files = copy_lines::files(copies)?;
    let mut report = CopyReport::default();
    report.other_lines = copy_lines::each(&files, |record| {
        report.first = Some(report.first.map_or(record.seq, |first| first.min(record.seq)));
        report.last = Some(report.last.map_or(record.seq, |last| last.max(record.seq)));
    })?;
    let (Some(first), Some(last)) = (report.first, report.last) else {
        bail!("the copy has no record of a log: {} without one", counted(report.other_lines, "line"));
    };
    let mut log_records = LogReader::start(log)?;
    // Records before the copy's first are not in question: it may have been moved away in part, as the log may.
    log_records.skip_before(first)?;
    let mut start = first;
    while start <= last {
        // Numbers without records in the log and the copy need no window.
        let end = start.saturating_add(WINDOW - 1);
        let window = report.window(&files, start..=end)?;
        report.compare(window, &mut log_records, end.min(last), &files)?;
        start = end + 1;
    }
    report.end(log, &mut log_records, last)?;
    report.found.sort_by_key(CopyDifference::first);
    Ok(report)
}

impl CopyReport {
    /// Reads the copy's records with these numbers.
    fn window(&mut self, files: &[PathBuf], range: std::ops::RangeInclusive<u64>) -> anyhow::Result<Window> {
        let mut window = Window::new();
        let mut before: Option<(u64, Chain)> = None;
        let mut repeated = 0;
        copy_lines::each(files, |record| {
            if range.contains(&record.seq) {
                let follows = before.filter(|(seq, _)| seq + 1 == record.seq);
                let is_first = record.seq == 1 && audit::continues(Chain::START, record.text.as_bytes());
                let is_chained =
                    is_first || follows.is_some_and(|(_, chain)| audit::continues(chain, record.text.as_bytes()));
                let line = CopiedLine { position: record.position, is_chained };
                let known = window.entry((record.seq, digest(record.text)));
                match known {
                    std::collections::hash_map::Entry::Occupied(mut known) => {
                        known.get_mut().is_chained |= line.is_chained;
                        repeated += 1;
                    }
                    std::collections::hash_map::Entry::Vacant(free) => drop(free.insert(line)),
                }
            }
            before = Some((record.seq, record.chain));
        })?;
        self.repeated += repeated;
        self.records += window.len() as u64;
        Ok(window)
    }

    /// Compares a window with the records of the log up to `end`.
    fn compare(&mut self, mut window: Window, log: &mut LogReader, end: u64, files: &[PathBuf]) -> anyhow::Result<()> {
        let mut unmatched = BTreeMap::new();
        while let Some(record) = log.next_up_to(end)? {
            let seq = record.place.seq;
            let is_whole = window.remove(&(seq, digest(&record.line))).is_some();
            let short = without_arguments(&record.line, &record.place);
            let is_short = short != record.line && window.remove(&(seq, digest(&short))).is_some();
            self.without_arguments += u64::from(is_short && !is_whole);
            unmatched.insert(seq, !is_whole && !is_short);
        }
        let (mut unknown, mut unproven) = (Vec::new(), Vec::new());
        let mut left: Vec<_> = window.into_iter().collect();
        left.sort_by_key(|((seq, _), line)| (*seq, line.position));
        for ((seq, _), line) in left {
            let (file, number) = line.position;
            if let Some(is_missing) = unmatched.get_mut(&seq) {
                *is_missing = false;
                self.add(CopyDifference::Changed { seq, file: files[file].clone(), line: number });
            } else if log.first.is_none_or(|first| seq >= first) {
                unknown.push(seq);
            } else if line.is_chained {
                self.only_in_copy += 1;
            } else {
                unproven.push(seq);
            }
        }
        let missing: Vec<u64> =
            unmatched.into_iter().filter(|(_, is_missing)| *is_missing).map(|(seq, _)| seq).collect();
        ranges(&missing).for_each(|(first, last)| self.add(CopyDifference::Missing { first, last }));
        ranges(&unknown).for_each(|(first, last)| self.add(CopyDifference::Unknown { first, last }));
        ranges(&unproven).for_each(|(first, last)| self.add(CopyDifference::Unproven { first, last }));
        Ok(())
    }

    /// Compares the end of the log: what a forwarder has sent must be in the copy.
    fn end(&mut self, folder: &Path, log: &mut LogReader, last: u64) -> anyhow::Result<()> {
        let sent = registered(folder)?.iter().map(|cursor| cursor.place.seq).max().unwrap_or(last);
        let mut missing = Vec::new();
        while let Some(record) = log.next_up_to(u64::MAX)? {
            let seq = record.place.seq;
            if seq > sent {
                self.not_sent += 1;
            } else if missing.is_empty() {
                missing = vec![seq, seq];
            } else {
                missing[1] = seq;
            }
        }
        if let [first, last] = missing[..] {
            self.add(CopyDifference::Missing { first, last });
        }
        Ok(())
    }

    fn add(&mut self, difference: CopyDifference) {
        self.differences += 1;
        if self.found.len() < MAX_REPORTED {
            self.found.push(difference);
        }
    }
}

/// Reader of the log with one record ahead.
struct LogReader {
    tail: LogTail,
    next: Option<SealedRecord>,
    /// Number of the log's first record.
    first: Option<u64>,
}

impl LogReader {
    fn start(folder: &Path) -> anyhow::Result<Self> {
        let mut reader = Self { tail: audit::tail(folder, None)?, next: None, first: None };
        reader.advance()?;
        reader.first = reader.next.as_ref().map(|record| record.place.seq);
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
                write!(f, "{} no longer in the log and not proven by the records before", range(*first, *last))
            }
        }
    }
}

fn range(first: u64, last: u64) -> String {
    if first == last { format!("record {first} is") } else { format!("records {first} to {last} are") }
}

/// Joins consecutive numbers of a sorted list.
fn ranges(numbers: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    numbers.chunk_by(|one, next| *next <= one + 1).map(|part| (part[0], part[part.len() - 1]))
}

fn digest(line: &str) -> [u8; 32] {
    Sha256::digest(line.as_bytes()).into()
}

#[cfg(test)]
mod tests;
