//! Stages and histories on systems that have none: no stage can be opened, and nothing is noted.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::types::{
    Change, CommitError, Committed, HistoryLimits, Limits, RecordHeader, RecordSummary, Recorded, Refused, StageMark,
    StagedCall,
};

/// Stages of one user.
#[derive(Debug, Clone)]
pub struct Stages(PathBuf);

impl Stages {
    /// Names the folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Folder that would hold them.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Lists the names of all stages.
    ///
    /// # Errors
    ///
    /// None.
    pub fn names(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Opens a stage for changes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`].
    pub fn open(&self, _: &str, _: Limits) -> io::Result<Arc<Stage>> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Opens an existing stage to commit or remove it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`].
    pub fn take(&self, _: &str) -> io::Result<Arc<Stage>> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Removes a stage that cannot be opened.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`].
    pub fn discard(&self, _: &str) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Reads a stage.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`].
    pub fn read(&self, _: &str) -> io::Result<Arc<Stage>> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// Open stage; none exists here.
#[derive(Debug)]
pub struct Stage(Infallible);

#[allow(missing_docs, clippy::missing_errors_doc, reason = "no value has these methods here")]
impl Stage {
    pub fn path(&self) -> &Path {
        match self.0 {}
    }

    pub fn name(&self) -> &str {
        match self.0 {}
    }

    pub fn nothing(&self) -> io::Result<File> {
        match self.0 {}
    }

    pub fn folders(&self) -> Vec<PathBuf> {
        match self.0 {}
    }

    pub fn lost(&self) -> &[String] {
        match self.0 {}
    }

    pub fn count_written(&self, _: u64) {
        match self.0 {}
    }

    pub fn changes(&self) -> io::Result<Vec<Change>> {
        match self.0 {}
    }

    pub fn mark(&self) -> io::Result<StageMark> {
        match self.0 {}
    }

    pub fn before(&self, _: &Change) -> io::Result<Option<File>> {
        match self.0 {}
    }

    pub fn after(&self, _: &Change) -> io::Result<Option<File>> {
        match self.0 {}
    }

    pub fn link(&self, _: &Change) -> Option<String> {
        match self.0 {}
    }

    pub fn withdraw(&self, _: &[Change]) -> io::Result<Vec<Refused>> {
        match self.0 {}
    }

    pub fn part(self: &Arc<Self>, _: &[Change]) -> io::Result<Arc<Self>> {
        match self.0 {}
    }

    pub fn progress(&self) -> io::Result<Option<(usize, usize)>> {
        match self.0 {}
    }

    pub fn clean(&self) -> io::Result<Vec<PathBuf>> {
        match self.0 {}
    }

    pub fn is_committing(&self) -> bool {
        match self.0 {}
    }

    pub fn commit(
        self: Arc<Self>,
        _: bool,
        _: Option<&Arc<Record>>,
        _: &mut dyn FnMut(usize, usize),
    ) -> Result<Committed, CommitError> {
        match self.0 {}
    }

    pub fn remove(&self) -> io::Result<()> {
        match self.0 {}
    }
}

/// History of one user's changes; it stays empty here.
#[derive(Debug, Clone)]
pub struct History {
    folder: PathBuf,
}

#[allow(missing_docs, clippy::missing_errors_doc, reason = "these methods do nothing here")]
impl History {
    pub fn new(folder: impl Into<PathBuf>, _: HistoryLimits) -> Self {
        Self { folder: folder.into() }
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    pub fn begin(&self, _: RecordHeader) -> Arc<Record> {
        Arc::new(Record { history: self.clone() })
    }

    pub fn records(&self) -> io::Result<Vec<RecordSummary>> {
        Ok(Vec::new())
    }

    pub fn sweep(&self, _: &Stages) -> io::Result<Option<String>> {
        Ok(None)
    }

    pub fn lock_undo(&self) -> io::Result<toolcrib_private_files::FileLock> {
        Err(ErrorKind::Unsupported.into())
    }

    pub fn remove_old(&self) -> io::Result<()> {
        Ok(())
    }

    pub fn undo(&self, _: &[Recorded], _: &Stages, _: bool) -> io::Result<Undo> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// Record of a command's changes, without any here.
#[derive(Debug)]
pub struct Record {
    history: History,
}

#[allow(missing_docs, reason = "these methods do nothing here")]
impl Record {
    #[must_use]
    pub fn of_commit(&self, _: &str) -> Arc<Self> {
        Arc::new(Self { history: self.history.clone() })
    }

    pub fn is_on(&self) -> bool {
        false
    }

    pub fn id(&self) -> Option<String> {
        None
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    pub fn problem(&self) -> Option<&str> {
        None
    }

    pub fn lost(&self) -> usize {
        0
    }

    pub fn call(self: &Arc<Self>, _: StagedCall, _: Option<Withhold>) -> Arc<CallHistory> {
        Arc::new(CallHistory(()))
    }
}

/// Check for contents that must not be kept; there are none here.
#[derive(Debug, Clone)]
pub struct Withhold(());

#[allow(missing_docs, reason = "nothing is checked here")]
impl Withhold {
    pub fn new(_: impl Fn(&mut File) -> bool + Send + Sync + 'static) -> Self {
        Self(())
    }
}

/// Notes of one call, without any here.
#[derive(Debug)]
pub struct CallHistory(());

#[allow(missing_docs, reason = "these methods do nothing here")]
impl CallHistory {
    pub fn writing(&self, _: &File, _: Option<Instant>) {}

    pub fn allow(&self, _: Arc<File>) {}

    pub fn making(&self, _: &Path) -> PlannedChange {
        PlannedChange(())
    }

    pub fn made(&self, _: &File) {}

    pub fn is_large(&self) -> bool {
        false
    }

    pub fn removing<F>(&self, _: F, _: &str, _: &Path, _: Option<Instant>) -> PlannedChange {
        PlannedChange(())
    }

    pub fn moving<F>(&self, _: (F, &str, &Path), _: (F, &str, &Path), _: Option<Instant>) -> PlannedChange {
        PlannedChange(())
    }

    pub fn end(&self) {}
}

/// Change that is not made yet.
#[derive(Debug)]
#[must_use]
pub struct PlannedChange(());

#[allow(missing_docs, reason = "this method does nothing here")]
impl PlannedChange {
    pub fn failed(self) {}
}

/// Undo that is ready to be committed; none exists here.
#[derive(Debug)]
pub struct Undo {
    /// Stage with the changes.
    pub stage: Arc<Stage>,
    /// Paths that stay as they are.
    pub refused: Vec<Refused>,
}
