//! Reading a log in parts, for programs that copy it elsewhere: the records after a known place, in order, each compared with the
//! record before it. The reader goes on where it stopped, also after the log was written to, files were moved away, or a new
//! process has begun.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::store::owner_only;

use super::chain::{self, Chain, Link, MAX_LINE_LEN};
use super::day::{self, Day};
use super::file;
use super::head;
use super::snapshot::{Snapshot, unreadable};

/// End of a record in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPlace {
    /// Number of the record.
    pub seq: u64,
    /// Chain value of the record.
    pub chain: Chain,
    /// Day of the record's file.
    pub day: Day,
    /// Offset after the record's line in this file.
    pub offset: u64,
}

/// Record of a log as its line, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SealedRecord {
    /// Text of the line without its line break.
    pub line: String,
    /// Place of the record.
    pub place: LogPlace,
}

/// Next part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TailEvent {
    /// A record.
    Record(SealedRecord),
    /// A problem before the next record.
    Problem(TailProblem),
}

/// Problem between two records. Numbers are the `seq` of records; ranges are inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TailProblem {
    /// Records were removed before they were read.
    Removed {
        /// First missing record.
        first: u64,
        /// Last missing record.
        last: u64,
    },
    /// A record does not match its chain value.
    Changed {
        /// Number of the record.
        seq: u64,
    },
    /// The log has other records than those that were read.
    Restarted {
        /// Number of the last record that was read.
        after: u64,
    },
    /// Lines without a chain value.
    Unchained {
        /// Number of lines.
        lines: u64,
    },
}

impl fmt::Display for TailProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed { first, last } if first == last => {
                write!(f, "record {first} is missing: it was removed before it was read here")
            }
            Self::Removed { first, last } => {
                write!(f, "records {first} to {last} are missing: they were removed before they were read here")
            }
            Self::Changed { seq } => write!(f, "record {seq} does not match its chain value: the log was changed"),
            Self::Restarted { after } => {
                write!(f, "the log no longer has record {after}, which was read before: it was rewritten or begun anew")
            }
            Self::Unchained { lines: 1 } => f.write_str("1 line has no chain value and is left out"),
            Self::Unchained { lines } => write!(f, "{lines} lines have no chain value and are left out"),
        }
    }
}

/// Reader of the records after a place, with one line in memory at a time.
#[derive(Debug)]
pub struct LogTail {
    folder: PathBuf,
    /// The last record that was read, by this reader or before it.
    last: Option<LogPlace>,
    open: Option<OpenLog>,
    line: Vec<u8>,
    /// Lines without a chain value since the last record.
    unchained: u64,
    events: VecDeque<TailEvent>,
}

/// A file of the log that is being read.
#[derive(Debug)]
struct OpenLog {
    day: Day,
    reader: BufReader<File>,
    /// Start of the next line.
    offset: u64,
    /// End of the bytes that are known to be written.
    end: u64,
}

/// Result of reading a line.
#[derive(Debug, PartialEq, Eq)]
enum LineEnd {
    /// There is no further byte.
    Nothing,
    /// The bytes end before the line does.
    Unfinished,
    Whole,
}

/// Reads the log in a folder from its beginning, or after a record that was read before.
///
/// # Errors
///
/// [`Error::AuditUnread`] if the log cannot be read. A log that does not exist yet has no records.
pub fn tail(folder: impl AsRef<Path>, after: Option<LogPlace>) -> Result<LogTail, Error> {
    let folder = folder.as_ref().to_path_buf();
    let mut tail = LogTail { folder, last: after, open: None, line: Vec::new(), unchained: 0, events: VecDeque::new() };
    tail.locate()?;
    Ok(tail)
}

/// Returns the number and the chain value that end a line of a log; `None` if it does not end with both.
pub fn sealed(line: &[u8]) -> Option<(u64, Chain)> {
    chain::parse_sealed(line).map(|(_, Link { seq, chain })| (seq, chain))
}

/// Returns `true` if a line of a log is intact and follows the record with this chain value.
pub fn continues(before: Chain, line: &[u8]) -> bool {
    chain::parse_sealed(line).is_some_and(|(covered, link)| before.after(covered) == link.chain)
}

impl LogTail {
    /// Reads the next record or problem. `None` means that nothing more is written yet: a later call reads on.
    ///
    /// # Errors
    ///
    /// [`Error::AuditUnread`] if the log cannot be read; a later call tries again.
    #[expect(clippy::should_implement_trait, reason = "an iterator that goes on after `None` would mislead")]
    pub fn next(&mut self) -> Result<Option<TailEvent>, Error> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if self.read_line()? {
                self.take_line();
            } else if !self.advance()? {
                self.report_unchained();
                return Ok(self.events.pop_front());
            }
        }
    }

    /// Place of the last record that was read.
    pub fn place(&self) -> Option<LogPlace> {
        self.last
    }

    /// Reads the next line of the open file.
    fn read_line(&mut self) -> Result<bool, Error> {
        let Some(open) = &mut self.open else { return Ok(false) };
        let end =
            open.next(&mut self.line).map_err(|error| unreadable(&self.folder.join(open.day.file_name()), error))?;
        // A last line that only lacks its line break is complete, if its chain value proves it.
        let before = self.last.map_or(Link::START.chain, |last| last.chain);
        if end == LineEnd::Unfinished && continues(before, &self.line) {
            return open.skip_rest().map(|()| true).map_err(|error| unreadable(&self.folder, error));
        }
        Ok(end == LineEnd::Whole)
    }

    /// Turns the line into a record, after the problems before it.
    fn take_line(&mut self) {
        let Some(open) = &self.open else { return };
        let Some((covered, link)) = chain::parse_sealed(&self.line) else {
            self.unchained += u64::from(!self.line.is_empty());
            return;
        };
        let problem = match self.last {
            None if link.seq != 1 => None,
            None => (Link::START.chain.after(covered) != link.chain).then_some(TailProblem::Changed { seq: 1 }),
            Some(last) if link.seq <= last.seq => Some(TailProblem::Restarted { after: last.seq }),
            Some(last) if link.seq > last.seq + 1 => {
                Some(TailProblem::Removed { first: last.seq + 1, last: link.seq - 1 })
            }
            Some(last) => (last.chain.after(covered) != link.chain).then_some(TailProblem::Changed { seq: link.seq }),
        };
        let place = LogPlace { seq: link.seq, chain: link.chain, day: open.day, offset: open.offset };
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.report_unchained();
        self.events.extend(problem.map(TailEvent::Problem));
        self.events.push_back(TailEvent::Record(SealedRecord { line, place }));
        self.last = Some(place);
    }

    fn report_unchained(&mut self) {
        if self.unchained > 0 {
            let lines = std::mem::take(&mut self.unchained);
            self.events.push_back(TailEvent::Problem(TailProblem::Unchained { lines }));
        }
    }

    /// Looks for bytes that were written since, in the open file and then in a newer one; `false` if there are none.
    fn advance(&mut self) -> Result<bool, Error> {
        if self.is_unchanged()? {
            return Ok(false);
        }
        let files = self.files()?;
        let Some(open) = &mut self.open else {
            self.locate_in(&files)?;
            return Ok(self.open.is_some() || !self.events.is_empty());
        };
        let length = files.iter().find(|(day, _)| *day == open.day).map(|(_, length)| *length);
        let is_in_place = owner_only::is_file_at(open.reader.get_ref(), &self.folder.join(open.day.file_name()));
        if !is_in_place || length.is_none_or(|length| length < open.offset) {
            // The file was moved away, or shortened.
            self.open = None;
            self.locate_in(&files)?;
            return Ok(self.open.is_some() || !self.events.is_empty());
        }
        let end = length.unwrap_or_default();
        let is_longer = end > open.end;
        open.end = end;
        if is_longer {
            return Ok(true);
        }
        // A newer file with records means that this one gets no more.
        let Some((day, end)) = files.into_iter().find(|(day, _)| *day > open.day) else { return Ok(false) };
        self.unchained += u64::from(open.offset < open.end);
        self.begin(day, 0, end)?;
        Ok(true)
    }

    /// Returns `true` if the open file is in its place with its length, and no newer one has content. It takes no lock: a reader
    /// that waits for records does not hold up writers.
    fn is_unchanged(&self) -> Result<bool, Error> {
        let days = match day::days(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            days => days.map_err(|error| unreadable(&self.folder, error))?,
        };
        let length = |day: Day| self.folder.join(day.file_name()).metadata().map_or(0, |metadata| metadata.len());
        let newest = self.open.as_ref().map(|open| open.day);
        if days.into_iter().any(|day| Some(day) > newest && length(day) > 0) {
            return Ok(false);
        }
        let Some(open) = &self.open else { return Ok(true) };
        let is_in_place = owner_only::is_file_at(open.reader.get_ref(), &self.folder.join(open.day.file_name()));
        Ok(is_in_place && length(open.day) == open.end)
    }

    /// Lists the files with content, with their lengths.
    fn files(&self) -> Result<Vec<(Day, u64)>, Error> {
        let is_missing = self.folder.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        let files = if is_missing { Vec::new() } else { Snapshot::take(&self.folder)?.files };
        Ok(files.into_iter().filter(|(_, length)| *length > 0).collect())
    }

    fn locate(&mut self) -> Result<(), Error> {
        let files = self.files()?;
        self.locate_in(&files)
    }

    /// Opens the file with the line after the last record that was read.
    fn locate_in(&mut self, files: &[(Day, u64)]) -> Result<(), Error> {
        let Some((oldest, end)) = files.first().copied() else { return Ok(()) };
        let Some(last) = self.last else { return self.begin(oldest, 0, end) };
        let link = Link { seq: last.seq, chain: last.chain };
        let expected = files.iter().find(|(day, length)| *day == last.day && *length >= last.offset);
        if let Some((day, end)) = expected {
            let path = self.folder.join(day.file_name());
            let found = File::open(&path).and_then(|file| match ends_line(&file, last.offset)? {
                true => head::last_link(&file, 0, last.offset),
                false => Ok(None),
            });
            if found.map_err(|error| unreadable(&path, error))? == Some(link) {
                return self.begin(*day, last.offset, *end);
            }
        }
        // It is not where it was: the files were moved, or have other records.
        let mut first = None;
        for (day, end) in files {
            self.begin(*day, 0, *end)?;
            while let Some(open) = &mut self.open {
                let read = open.next(&mut self.line).map_err(|error| unreadable(&self.folder, error))?;
                let found = chain::parse_sealed(&self.line).map(|(_, found)| found);
                first = first.or(found.map(|found| found.seq));
                if found == Some(link) {
                    let is_whole = read == LineEnd::Whole;
                    return if is_whole {
                        Ok(())
                    } else {
                        open.skip_rest().map_err(|error| unreadable(&self.folder, error))
                    };
                }
                if read != LineEnd::Whole {
                    break;
                }
            }
        }
        if first.is_some_and(|first| first <= last.seq) {
            self.events.push_back(TailEvent::Problem(TailProblem::Restarted { after: last.seq }));
            self.last = None;
        }
        self.begin(oldest, 0, end)
    }

    /// Opens a file at the start of a line.
    fn begin(&mut self, day: Day, offset: u64, end: u64) -> Result<(), Error> {
        let path = self.folder.join(day.file_name());
        let open = || {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(offset))?;
            Ok(OpenLog { day, reader: BufReader::with_capacity(64 << 10, file), offset, end })
        };
        self.open = Some(open().map_err(|error| unreadable(&path, error))?);
        Ok(())
    }
}

impl OpenLog {
    /// Reads the next line without its line break. A line that exceeds the maximum length is truncated to it. After an unfinished
    /// line, the next attempt reads it again.
    fn next(&mut self, line: &mut Vec<u8>) -> io::Result<LineEnd> {
        line.clear();
        let left = self.end.saturating_sub(self.offset);
        let read = self.reader.by_ref().take(left.min(MAX_LINE_LEN as u64)).read_until(b'\n', line)? as u64;
        if line.pop_if(|last| *last == b'\n').is_some() {
            self.offset += read;
        } else if read == MAX_LINE_LEN as u64 {
            self.offset += read + self.reader.by_ref().take(left - read).skip_until(b'\n')? as u64;
        } else {
            // The file may have been shortened since its length was read.
            self.end = self.offset + read;
            self.reader.seek(SeekFrom::Start(self.offset))?;
            return Ok(if read == 0 { LineEnd::Nothing } else { LineEnd::Unfinished });
        }
        Ok(LineEnd::Whole)
    }

    /// Skips the bytes of a last line.
    fn skip_rest(&mut self) -> io::Result<()> {
        self.offset = self.end;
        self.reader.seek(SeekFrom::Start(self.offset)).map(drop)
    }
}

/// Returns `true` if a line ends before an offset, with or without its line break. A line before it that was shortened moves others
/// over it.
fn ends_line(file: &File, offset: u64) -> io::Result<bool> {
    let mut around = [0; 2];
    let around = file::read_up_to(file, &mut around, offset.saturating_sub(1))?;
    Ok(matches!(around, [b'\n', ..] | [_, b'\n'] | [_]))
}

#[cfg(test)]
mod tests;
