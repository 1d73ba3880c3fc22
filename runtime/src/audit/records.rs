//! Reading the records of a log, one at a time. Filters are iterator adapters, except the day, which skips whole
//! files.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;

use super::day::{Day, Position};
use super::snapshot::{Lines, Snapshot};

/// A record of the log. Fields that the program that wrote it did not know are empty.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LogEntry {
    /// File of the record.
    pub file: PathBuf,
    /// Line in the file, counted from 1; 0 if the file was [read from its end](LogRecords::newest_first).
    pub line: u64,
    /// Text of the line without its line break: one JSON object.
    pub text: String,
    /// End of the call, RFC 3339 in UTC.
    pub ts: String,
    /// Name that was called; not necessarily a tool's name.
    pub tool: String,
    /// Outcome of the call, as a word from [`Outcome::as_str`](crate::Outcome::as_str).
    pub outcome: String,
    /// Duration in wall-clock milliseconds.
    pub ms: f64,
    /// Granted permissions, such as `read:FOLDER` or `write:FOLDER`.
    pub granted: Vec<String>,
    /// Permissions that were requested or used without a grant, such as `read:PATH`, `write:PATH` or `env:NAME`.
    pub denied: Vec<String>,
    /// Identifier of the call's run, as [`Builder::run_id`](crate::Builder::run_id) sets it.
    pub run: String,
    /// `true` for a call that another one made, such as a program, a script or a hook.
    pub is_nested: bool,
    /// Arguments of the call as the record represents them, an object with `json`, `text`, `cut` or only `bytes`; null if
    /// the record has none.
    pub arguments: Value,
}

/// The parsed fields of a line.
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
    #[serde(default)]
    run: String,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    arguments: Value,
}

#[derive(Deserialize)]
struct Denied {
    capability: String,
}

/// Iterator over the records in a log snapshot, oldest first, with one line in memory at a time. Lines that are not
/// records are skipped; [`verify`](super::verify) reports them.
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
/// [`Error::AuditUnread`] if the folder does not exist or cannot be read; items may be this error too.
pub fn records(folder: impl AsRef<Path>) -> Result<LogRecords, Error> {
    let folder = folder.as_ref();
    let snapshot = Snapshot::take(folder)?;
    Ok(LogRecords { folder: folder.to_path_buf(), lines: Lines::new(folder, snapshot.files), day: None })
}

impl LogRecords {
    /// Selects the records of a UTC day by their own time. A record is never in the file of an older day.
    #[must_use]
    pub fn of(mut self, day: Day) -> Self {
        self.lines.skip_before(day);
        self.day = Some(day);
        self
    }

    /// Returns the records in the opposite order, newest first. Files are read from their ends, as far as records are taken.
    /// The [`line`](LogEntry::line) of each record is 0, as the lines before it are not counted. A file is left out if
    /// one of its records was taken already.
    pub fn newest_first(self) -> impl Iterator<Item = Result<LogEntry, Error>> {
        let Self { folder, lines, day } = self;
        let mut lines = lines.newest_first();
        std::iter::from_fn(move || {
            loop {
                let (file, line) = match lines.next() {
                    Ok(line) => line?,
                    Err(error) => return Some(Err(error)),
                };
                if let Some(entry) = entry(&folder, Position { day: file, line: 0 }, line, day) {
                    return Some(Ok(entry));
                }
            }
        })
    }
}

impl Iterator for LogRecords {
    type Item = Result<LogEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (position, line) = match self.lines.next() {
                Ok(line) => line?,
                Err(error) => return Some(Err(error)),
            };
            if let Some(entry) = entry(&self.folder, position, line, self.day) {
                return Some(Ok(entry));
            }
        }
    }
}

/// Returns the record in a line, if it is one and of the selected day.
fn entry(folder: &Path, position: Position, line: &[u8], day: Option<Day>) -> Option<LogEntry> {
    let text = std::str::from_utf8(line).ok()?;
    let Fields { ts, tool, outcome, ms, granted, denied, run, parent, arguments } = read(text)?;
    day.is_none_or(|day| ts.starts_with(&day.to_string())).then(|| LogEntry {
        file: folder.join(position.day.file_name()),
        line: position.line,
        text: text.to_owned(),
        ts,
        tool,
        outcome,
        ms,
        granted,
        denied: denied.into_iter().map(|denied| denied.capability).collect(),
        run,
        is_nested: parent.is_some(),
        arguments,
    })
}

fn read(text: &str) -> Option<Fields> {
    text.starts_with('{').then(|| serde_json::from_str(text).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_other_lines_are_skipped() {
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
        for day in [None, Some("2026-03-01"), Some("2026-03-02"), Some("2026-03-03")] {
            let selected = || day.iter().fold(records(dir.path()).unwrap(), |all, day| all.of(day.parse().unwrap()));
            let mut reversed: Vec<_> = selected().map(|entry| LogEntry { line: 0, ..entry.unwrap() }).collect();
            reversed.reverse();
            assert_eq!(selected().newest_first().map(Result::unwrap).collect::<Vec<_>>(), reversed, "{day:?}");
        }
    }

    #[test]
    fn the_newest_records_are_read_without_the_older_files() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("20260301.log", "{\"ts\":\"2026-03-01T\",\"tool\":\"old\"}\n");
        write(
            "20260302.log",
            "torn\n{\"ts\":\"2026-03-02T\",\"tool\":\"a\"}\n{\"ts\":\"2026-03-02T\",\"tool\":\"b\"}\n{\"ts",
        );
        let [forward, backward] = [(); 2].map(|()| records(dir.path()).unwrap());
        // A folder cannot be read as a file, not even by the administrator.
        std::fs::remove_file(dir.path().join("20260301.log")).unwrap();
        std::fs::create_dir(dir.path().join("20260301.log")).unwrap();
        assert!({ forward }.next().unwrap().is_err());
        let mut backward = backward.newest_first();
        let newest: Vec<_> = backward.by_ref().take(2).map(|entry| entry.unwrap().tool).collect();
        assert_eq!(newest, ["b", "a"]);
        assert!(backward.next().unwrap().is_err(), "the older file is read when its records are taken");
        assert!(backward.next().is_none());
    }
}
