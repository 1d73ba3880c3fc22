//! Identities of protected names and files on Windows.

use std::collections::HashSet;
use std::fs::{File, read_link, symlink_metadata};
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

/// Finds the files with several names at and below these paths; `None` if there are more than `max` files.
pub(super) fn linked_files(own: &[PathBuf], max: usize) -> Option<HashSet<Identity>> {
    let (mut left, mut linked, mut searched) = (own.to_vec(), HashSet::new(), 0);
    while let Some(path) = left.pop() {
        searched += 1;
        if searched > max {
            return None;
        }
        let Ok(about) = symlink_metadata(&path) else { continue };
        if about.is_dir() {
            left.extend(path.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if about.is_file()
            && let Ok((file, true)) = File::open(&path).and_then(|file| Identity::of_linked(&file))
        {
            linked.insert(file);
        }
    }
    Some(linked)
}
