//! Verification of a log: every file and every line in order, with one line in memory at a time.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Severity};

use super::chain::Chain;
use super::chain_check::{ChainCheck, Finding};
use super::head::Head;
use super::problem::{LogProblem, LogProblemKind};
use super::snapshot::{Lines, Sidecar, Snapshot};

/// Iterator over the problems of a log. At its end, [`summary`](Self::summary) describes the whole log.
#[derive(Debug)]
pub struct Verification {
    folder: PathBuf,
    lines: Lines,
    check: ChainCheck,
    sidecar: Sidecar,
    files: usize,
    /// Expected chain values that have not occurred yet.
    expected: Vec<Chain>,
    /// Problems of the log as a whole, found at its end.
    overall: Vec<LogProblem>,
    ended: bool,
}

/// Summary of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Number of files.
    pub files: usize,
    /// Number of lines with a chain value.
    pub records: u64,
    /// Number of the first record. If it is not 1, older records were moved away, and the link of the first record to
    /// them is not checked.
    pub first: Option<u64>,
    /// Number of the last record.
    pub last: Option<u64>,
    /// Chain value of the last record. Note it elsewhere: a log that is rewritten will not contain it.
    pub head: Option<Chain>,
}

/// Verifies a snapshot of the log in a folder; later records are not included.
///
/// # Errors
///
/// [`Error::AuditUnread`] if the folder does not exist or cannot be read; items may be this error too.
pub fn verify(folder: impl AsRef<Path>) -> Result<Verification, Error> {
    let folder = folder.as_ref();
    let Snapshot { files, sidecar } = Snapshot::take(folder)?;
    let head = match sidecar {
        Sidecar::Head(head) => Some(head.link),
        Sidecar::Missing | Sidecar::Invalid => None,
    };
    Ok(Verification {
        folder: folder.to_path_buf(),
        files: files.len(),
        lines: Lines::new(folder, files),
        check: ChainCheck::new(head),
        sidecar,
        expected: Vec::new(),
        overall: Vec::new(),
        ended: false,
    })
}

impl Verification {
    /// Expects a record with this chain value, which was noted earlier. Its absence is a problem.
    #[must_use]
    pub fn expect(mut self, chain: Chain) -> Self {
        self.expected.push(chain);
        self
    }

    /// Summarizes the lines read so far.
    pub fn summary(&self) -> Summary {
        let last = self.check.last();
        Summary {
            files: self.files,
            records: self.check.records,
            first: self.check.first,
            last: last.map(|last| last.seq),
            head: last.map(|last| last.chain),
        }
    }

    fn problem(&self, (position, severity, kind): Finding) -> LogProblem {
        LogProblem { severity, file: self.folder.join(position.day.file_name()), line: Some(position.line), kind }
    }

    /// Checks the log as a whole, after its last line.
    fn end(&mut self) {
        self.check.end();
        let head = Head::path(&self.folder);
        let error = |file: &Path, kind| LogProblem { severity: Severity::Error, file: file.into(), line: None, kind };
        match self.sidecar {
            Sidecar::Invalid => self.overall.push(error(&head, LogProblemKind::HeadUnreadable)),
            Sidecar::Missing if self.check.records > 0 => self.overall.push(error(&head, LogProblemKind::HeadMissing)),
            // No line is left after which records could be reported missing.
            Sidecar::Head(Head { link, .. }) if self.check.is_empty() && link.seq > 0 => {
                self.overall.push(error(&head, LogProblemKind::RemovedAtEnd { first: 1, last: link.seq }));
            }
            Sidecar::Head(_) | Sidecar::Missing => {}
        }
        let missing = self.expected.drain(..).map(|chain| error(&self.folder, LogProblemKind::NotedMissing { chain }));
        self.overall.extend(missing);
        self.overall.reverse();
    }
}

impl Iterator for Verification {
    type Item = Result<LogProblem, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(finding) = self.check.findings.pop_front() {
                return Some(Ok(self.problem(finding)));
            }
            if self.ended {
                return self.overall.pop().map(Ok);
            }
            match self.lines.next() {
                Ok(Some((position, line))) => {
                    let chain = self.check.line(position, line);
                    self.expected.retain(|expected| Some(*expected) != chain);
                }
                Ok(None) => {
                    self.ended = true;
                    self.end();
                }
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
