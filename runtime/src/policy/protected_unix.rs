//! Identities of protected names and files, read through open folders.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, statat};

use crate::policy::identity::Identity;
use crate::policy::location::identity_of;
use crate::policy::walk::{Step, root, walk};
use crate::tool::names::folded;

/// Names on paths, and the files at their ends.
pub(super) struct RecordedPaths<'a> {
    entries: &'a mut HashSet<(Identity, String)>,
    files: &'a mut HashSet<Identity>,
    /// Folder of the last path, after the names on its path were recorded; without a handle if it does not exist.
    folder: Option<(PathBuf, Option<File>)>,
}

impl<'a> RecordedPaths<'a> {
    pub(super) fn new(entries: &'a mut HashSet<(Identity, String)>, files: &'a mut HashSet<Identity>) -> Self {
        Self { entries, files, folder: None }
    }

    /// Records each name on a path, and the file at its end.
    pub(super) fn add(&mut self, path: &Path) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return drop(self.walk(path)) };
        if self.folder.as_ref().is_none_or(|(last, _)| last != folder) {
            let handle = self.walk(folder);
            self.folder = Some((folder.to_path_buf(), handle));
        }
        // Nothing below a folder that does not exist has an identity.
        let Some((_, Some(handle))) = &self.folder else { return };
        match Step::at(handle, name) {
            Ok(step) if step.is_link() => drop(self.walk(path)),
            Ok(step) => record(&step, self.entries, self.files),
            Err(_) => {}
        }
    }

    /// Records each name on a path, and returns the folder at its end.
    fn walk(&mut self, path: &Path) -> Option<File> {
        let from = root().ok()?;
        // A missing name ends the walk after it was recorded.
        let end = walk(from, path, |step| {
            record(step, self.entries, self.files);
            Ok(())
        });
        end.ok()
    }
}

fn record(step: &Step<'_>, entries: &mut HashSet<(Identity, String)>, files: &mut HashSet<Identity>) {
    entries.extend(identity_of(step.folder).map(|folder| (folder, folded(&step.name.to_string_lossy()))));
    files.extend(step.file());
}

/// Adds the entries of a folder to those that are `left`, and a file with several names to those that are `linked`.
///
/// # Errors
///
/// The error of the system.
pub(super) fn search(path: &Path, left: &mut Vec<PathBuf>, linked: &mut HashSet<Identity>) -> io::Result<()> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink > 1 => drop(linked.insert(Identity::of(&stat))),
        FileType::Directory => {
            for entry in path.read_dir()? {
                left.push(entry?.path());
            }
        }
        _ => {}
    }
    Ok(())
}
