//! Stages on systems that have none: no stage can be opened.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::types::{Change, CommitError, Committed, Limits, Refused};

/// Stages of one user.
#[derive(Debug, Clone)]
pub struct Stages(());

impl Stages {
    /// Names the folder.
    pub fn new(_: impl Into<PathBuf>) -> Self {
        Self(())
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

    pub fn progress(&self) -> io::Result<Option<(usize, usize)>> {
        match self.0 {}
    }

    pub fn clean(&self) -> io::Result<Vec<PathBuf>> {
        match self.0 {}
    }

    pub fn is_committing(&self) -> bool {
        match self.0 {}
    }

    pub fn commit(self: Arc<Self>, _: bool, _: &mut dyn FnMut(usize, usize)) -> Result<Committed, CommitError> {
        match self.0 {}
    }

    pub fn remove(&self) -> io::Result<()> {
        match self.0 {}
    }
}
