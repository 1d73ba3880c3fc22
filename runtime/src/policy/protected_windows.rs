//! Identities of protected names and files on Windows.

use std::collections::HashSet;
use std::fs::{read_link, symlink_metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::policy::identity::Identity;
use crate::policy::location::identity;
use crate::tool::names::folded;

/// Maximum number of links on one path.
const MAX_LINKS: usize = 40;

/// Names on paths, and the files at their ends.
pub(super) struct RecordedPaths<'a> {
    entries: &'a mut HashSet<(Identity, String)>,
    files: &'a mut HashSet<Identity>,
}

impl<'a> RecordedPaths<'a> {
    pub(super) fn new(entries: &'a mut HashSet<(Identity, String)>, files: &'a mut HashSet<Identity>) -> Self {
        Self { entries, files }
    }

    pub(super) fn add(&mut self, path: &Path) {
        record_path(path, self.entries, self.files);
    }
}

/// Records each name on a path, links and their targets included, and the file at its end.
fn record_path(path: &Path, entries: &mut HashSet<(Identity, String)>, files: &mut HashSet<Identity>) {
    let (mut at, mut links) = (PathBuf::new(), 0);
    let mut left: Vec<PathBuf> = reversed(path);
    while let Some(part) = left.pop() {
        match part.components().next() {
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::Normal(name)) => {
                entries.extend(identity(&at).map(|folder| (folder, folded(&name.to_string_lossy()))));
                let entry = at.join(name);
                // A missing name ends the path after it was recorded.
                let Ok(about) = symlink_metadata(&entry) else { return };
                match read_link(&entry) {
                    Ok(target) if about.is_symlink() && links < MAX_LINKS => {
                        links += 1;
                        left.extend(reversed(&target));
                    }
                    _ if about.is_symlink() => return,
                    _ => at = entry,
                }
            }
            _ => at.push(part),
        }
    }
    files.extend(identity(&at).filter(|_| at.is_file()));
}

/// Lists the names of a path, last first.
fn reversed(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// Adds the entries of a folder to those that are `left`, and a file with several names to those that are `linked`.
///
/// # Errors
///
/// The error of the system.
pub(super) fn search(path: &Path, left: &mut Vec<PathBuf>, linked: &mut HashSet<Identity>) -> io::Result<()> {
    let about = symlink_metadata(path)?;
    if about.is_dir() {
        for entry in path.read_dir()? {
            left.push(entry?.path());
        }
    } else if about.is_file()
        && let (file, true) = Identity::of_linked(&toolcrib_windows_files::open_attributes(path, false)?)?
    {
        linked.insert(file);
    }
    Ok(())
}
