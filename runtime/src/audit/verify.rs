//! Verifying a log: every file, every line, in order, with the memory of one line.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::Error;

use super::chain::Chain;
use super::chain_check::{Finding, Walk};
use super::head::Head;
use super::problem::{LogProblem, LogProblemKind, Severity};
use super::snapshot::{Lines, Sidecar, Snapshot};

/// A walk through a log that yields each problem as it is found. When it has ended, [`summary`](Self::summary) says what
/// the log holds.
#[derive(Debug)]
pub struct Verification {
    folder: PathBuf,
    lines: Lines,
    walk: Walk,
    sidecar: Sidecar,
    files: usize,
    noted: Vec<Chain>,
    /// What is wrong with the log as a whole; filled at the end.
    whole: Vec<LogProblem>,
    ended: bool,
}

/// What a log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The files of days.
    pub files: usize,
    /// The lines that carry a chain.
    pub records: u64,
    /// The number of the first record. Where it is not 1, older records were moved away, and what the first one continues
    /// cannot be told.
    pub first: Option<u64>,
    /// The number of the last record.
    pub last: Option<u64>,
    /// The chain after the last record: note it elsewhere, and a log that is written anew will not have it.
    pub head: Option<Chain>,
}

/// Verifies the log in a folder as it stands now; calls that are signed for meanwhile are not looked at.
///
/// # Errors
///
/// [`Error::AuditUnread`] where there is no such folder or it cannot be read; each item may be one too.
pub fn verify(folder: impl AsRef<Path>) -> Result<Verification, Error> {
    let folder = folder.as_ref();
    let Snapshot { files, sidecar } = Snapshot::take(folder)?;
    let head = match sidecar {
        Sidecar::Head(head) => Some(head.link),
        Sidecar::Missing | Sidecar::Foreign => None,
    };
    Ok(Verification {
        folder: folder.to_path_buf(),
        files: files.len(),
        lines: Lines::new(folder, files),
        walk: Walk::new(head),
        sidecar,
        noted: Vec::new(),
        whole: Vec::new(),
        ended: false,
    })
}

impl Verification {
    /// Finds it a problem where no record has this chain value, which was noted earlier.
    #[must_use]
    pub fn noted(mut self, chain: Chain) -> Self {
        self.noted.push(chain);
        self
    }

    /// What was read so far.
    pub fn summary(&self) -> Summary {
        let last = self.walk.last();
        Summary {
            files: self.files,
            records: self.walk.records,
            first: self.walk.first,
            last: last.map(|last| last.seq),
            head: last.map(|last| last.chain),
        }
    }

    fn problem(&self, (place, severity, found): Finding) -> LogProblem {
        LogProblem { severity, file: self.folder.join(place.day.file_name()), line: Some(place.line), found }
    }

    /// Looks at the log as a whole, once every line was read.
    fn end(&mut self) {
        self.walk.end();
        let head = Head::path(&self.folder);
        let error = |file: &Path, found| LogProblem { severity: Severity::Error, file: file.into(), line: None, found };
        match self.sidecar {
            Sidecar::Foreign => self.whole.push(error(&head, LogProblemKind::HeadUnreadable)),
            Sidecar::Missing if self.walk.records > 0 => self.whole.push(error(&head, LogProblemKind::HeadMissing)),
            // Not a line is left that something could be missing after.
            Sidecar::Head(Head { link, .. }) if self.walk.is_empty() && link.seq > 0 => {
                self.whole.push(error(&head, LogProblemKind::RemovedAtEnd { first: 1, last: link.seq }));
            }
            Sidecar::Head(_) | Sidecar::Missing => {}
        }
        let missing = self.noted.drain(..).map(|chain| error(&self.folder, LogProblemKind::NotedMissing { chain }));
        self.whole.extend(missing);
        self.whole.reverse();
    }
}

impl Iterator for Verification {
    type Item = Result<LogProblem, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.walk.found.pop_front() {
                return Some(Ok(self.problem(found)));
            }
            if self.ended {
                return self.whole.pop().map(Ok);
            }
            match self.lines.next() {
                Ok(Some((place, line))) => {
                    let chain = self.walk.line(place, line);
                    self.noted.retain(|noted| Some(*noted) != chain);
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
