//! Reading the records of a log, one at a time. Filters are those of any iterator; a day is asked for here, because whole
//! files are skipped by it.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::Error;

use super::day::Day;
use super::snapshot::{Lines, Snapshot};

/// A record as it stands in the log. What older or younger programs write otherwise is empty here.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    /// The file that it stands in.
    pub file: PathBuf,
    /// Its line there, counted from 1.
    pub line: u64,
    /// The line without its line break: one JSON object.
    pub text: String,
    /// The end of the call, RFC 3339 in UTC.
    pub ts: String,
    /// The name that was called, of a tool or not.
    pub tool: String,
    /// How the call ended, as [`Outcome::as_str`](crate::Outcome::as_str) writes it.
    pub outcome: String,
    /// Wall-clock milliseconds.
    pub ms: f64,
    /// What was granted, as `read:FOLDER` or `write:FOLDER`.
    pub granted: Vec<String>,
    /// What was asked for or tried and not granted, as `read:PATH`, `write:PATH` or `env:NAME`.
    pub denied: Vec<String>,
}

/// The fields of a line that people look at.
#[derive(Deserialize)]
struct Fields {
    ts: String,
    tool: String,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    ms: f64,
    #[serde(default)]
    granted: Vec<String>,
    #[serde(default)]
    denied: Vec<Denied>,
}

#[derive(Deserialize)]
struct Denied {
    capability: String,
}

/// The records of a log as it stood when this was made, oldest first. It holds one line. Lines that are no record are
/// passed over: [`verify`](super::verify) tells of them.
#[derive(Debug)]
pub struct LogRecords {
    folder: PathBuf,
    lines: Lines,
    day: Option<Day>,
}

/// Reads the log in a folder.
///
/// # Errors
///
/// [`Error::AuditUnread`] where there is no such folder or it cannot be read; each item may be one too.
pub fn records(folder: impl AsRef<Path>) -> Result<LogRecords, Error> {
    let folder = folder.as_ref();
    let snapshot = Snapshot::take(folder)?;
    Ok(LogRecords { folder: folder.to_path_buf(), lines: Lines::new(folder, snapshot.files), day: None })
}

impl LogRecords {
    /// Only the records of a UTC day, by their own time. A record never lies in a file older than its day.
    #[must_use]
    pub fn of(mut self, day: Day) -> Self {
        self.lines.skip_before(day);
        self.day = Some(day);
        self
    }
}

impl Iterator for LogRecords {
    type Item = Result<LogEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (place, line) = match self.lines.next() {
                Ok(line) => line?,
                Err(error) => return Some(Err(error)),
            };
            let Some((text, fields)) = std::str::from_utf8(line).ok().and_then(|text| Some((text, read(text)?))) else {
                continue;
            };
            if self.day.is_some_and(|day| !fields.ts.starts_with(&day.to_string())) {
                continue;
            }
            let Fields { ts, tool, outcome, ms, granted, denied } = fields;
            return Some(Ok(LogEntry {
                file: self.folder.join(place.day.file_name()),
                line: place.line,
                text: text.to_owned(),
                ts,
                tool,
                outcome,
                ms,
                granted,
                denied: denied.into_iter().map(|denied| denied.capability).collect(),
            }));
        }
    }
}

fn read(text: &str) -> Option<Fields> {
    text.starts_with('{').then(|| serde_json::from_str(text).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_whatever_else_stands_there_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| std::fs::write(dir.path().join(name), text).unwrap();
        write(
            "20260301.log",
            b"{\"ts\":\"2026-03-01T\",\"tool\":\"a\",\"ms\":1.5,\"denied\":[{\"capability\":\"env:X\"}]}\n",
        );
        write("20260302.log", b"{\"ts\":\"2026-\n\xff\n[\"t\",\"no\"]\n\"x\"\n{\"ts\":\"2026-03-01T\",\"tool\":\"late\"}\n{\"ts\":\"2026-03-02T\",\"tool\":\"b\"}");
        write("20260302.log.gz", b"{\"ts\":\"2026-03-02T\",\"tool\":\"no\"}\n");
        let tools = |records: LogRecords| records.map(|entry| entry.unwrap().tool).collect::<Vec<_>>();
        assert_eq!(tools(records(dir.path()).unwrap()), ["a", "late", "b"]);
        assert_eq!(tools(records(dir.path()).unwrap().of("2026-03-01".parse().unwrap())), ["a", "late"]);
        assert_eq!(tools(records(dir.path()).unwrap().of("2026-03-02".parse().unwrap())), ["b"]);
        let first = records(dir.path()).unwrap().next().unwrap().unwrap();
        assert_eq!((first.line, first.ms, first.denied), (1, 1.5, vec!["env:X".to_owned()]));
        assert!(records(dir.path().join("none")).is_err());
    }
}
