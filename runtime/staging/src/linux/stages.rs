//! Stages on the disk: listed, opened by one process at a time, and read by others meanwhile.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_private_files::{create_folder, options};

use super::journal::Journal;
use super::lock::lock;
use super::part::remove_unfinished;
use super::stage::{CONTENTS, NOTHING, Stage, remove_folder};
use crate::types::Limits;

pub(crate) const JOURNAL: &str = "journal";
/// Maximum length of a stage's name.
const MAX_NAME: usize = 64;

/// A user's stages, in one folder.
#[derive(Debug, Clone)]
pub struct Stages(PathBuf);

impl Stages {
    /// Names the folder, without opening it.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Folder that holds them.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Lists the names of all stages.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name().into_string().unwrap_or_default();
            if check_name(&name).is_ok() && self.0.join(&name).join(JOURNAL).is_file() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens a stage for changes, and creates it if it is missing. One process at a time has it open.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a name that is not one, [`ErrorKind::WouldBlock`] if another process has it open,
    /// [`ErrorKind::ResourceBusy`] if its commit has begun, or the error of the system.
    pub fn open(&self, name: &str, limits: Limits) -> io::Result<Arc<Stage>> {
        let stage = self.open_any(name, limits)?;
        match stage.is_committing() {
            true => Err(io::Error::new(ErrorKind::ResourceBusy, "its commit has begun")),
            false => Ok(stage),
        }
    }

    /// Opens an existing stage to commit or remove it.
    ///
    /// # Errors
    ///
    /// As for [`Stages::open`], and [`ErrorKind::NotFound`] if there is none.
    pub fn take(&self, name: &str) -> io::Result<Arc<Stage>> {
        check_name(name)?;
        if !self.0.join(name).join(JOURNAL).is_file() {
            return Err(ErrorKind::NotFound.into());
        }
        self.open_any(name, Limits::default())
    }

    fn open_any(&self, name: &str, limits: Limits) -> io::Result<Arc<Stage>> {
        // Elsewhere, two names that differ in case can be one.
        if !cfg!(target_os = "linux") {
            return Err(ErrorKind::Unsupported.into());
        }
        check_name(name)?;
        let folder = self.0.join(name);
        create_folder(&folder)?;
        let lock = lock(&folder)?;
        // Without a journal, the rest is of a stage that was not wholly created or removed.
        if !folder.join(JOURNAL).is_file() && folder.join(CONTENTS).exists() {
            fs::remove_dir_all(folder.join(CONTENTS))?;
        }
        remove_unfinished(&folder)?;
        create_folder(&folder.join(CONTENTS))?;
        create_folder(&folder.join(NOTHING))?;
        let file = options().read(true).write(true).create(true).truncate(false).open(folder.join(JOURNAL))?;
        Stage::load(folder, limits, Some(lock), None, |apply| Journal::open(file, apply))
    }

    /// Removes a stage that cannot be opened, whatever is in it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WouldBlock`] if another process has it open, or the error of the system.
    pub fn discard(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        let folder = self.0.join(name);
        let _lock = lock(&folder)?;
        remove_folder(&folder)
    }

    /// Reads a stage that another process may have open. It cannot be changed by the returned value.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if there is none, or the error of the system.
    pub fn read(&self, name: &str) -> io::Result<Arc<Stage>> {
        check_name(name)?;
        let folder = self.0.join(name);
        let file = options().read(true).open(folder.join(JOURNAL))?;
        Stage::load(folder, Limits::default(), None, None, |apply| Journal::read_only(file, apply))
    }
}

/// Refuses a name that could be anything but the name of one folder.
fn check_name(name: &str) -> io::Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    match (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with('-') {
        true => Ok(()),
        false => Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("expected 1 to {MAX_NAME} lowercase letters, digits, `-` and `_`"),
        )),
    }
}
