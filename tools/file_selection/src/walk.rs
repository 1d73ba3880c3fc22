//! Walk through a folder in a fixed order, filtered by globs. Reads no file.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use toolcrib_guest::{Error, error};
use walkdir::{DirEntry, WalkDir};

use crate::default_exclude;

const MAX_DEPTH: usize = 64;
const MAX_GLOBS: usize = 20;
const MAX_GLOB_BYTES: usize = 200;

/// Globs of `include` and `exclude`.
pub struct Filter {
    include: GlobSet,
    /// Globs of `include` that name folders, which are included with everything in them.
    include_folders: GlobSet,
    exclude: GlobSet,
    /// `true` if excluded entries are reported: not for the default of `exclude`, which its schema states.
    reports_excluded: bool,
}

impl Filter {
    /// Compiles the globs.
    ///
    /// # Errors
    ///
    /// If a glob is invalid, or there are too many.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, Error> {
        let names_folder = |glob: &&String| glob.ends_with('/') || !glob.rsplit('/').next().is_some_and(has_wildcard);
        let folders: Vec<String> = include.iter().filter(names_folder).cloned().collect();
        Ok(Self {
            include: globs("include", include)?,
            include_folders: globs("include", &folders)?,
            exclude: globs("exclude", exclude)?,
            reports_excluded: exclude != default_exclude(),
        })
    }

    /// Returns `true` if `include` selects a file, by its path below the root.
    pub fn includes(&self, path: &Path) -> bool {
        self.include.is_empty()
            || self.include.is_match(path)
            || path.ancestors().skip(1).any(|folder| self.include_folders.is_match(folder))
    }
}

fn has_wildcard(glob: &str) -> bool {
    glob.contains(['*', '?', '[', '{'])
}

fn globs(name: &str, patterns: &[String]) -> Result<GlobSet, Error> {
    if patterns.len() > MAX_GLOBS {
        return Err(error!("`{name}` has {} globs, over the limit of {MAX_GLOBS}", patterns.len()));
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        if pattern.len() > MAX_GLOB_BYTES {
            return Err(error!("a glob in `{name}` is over the limit of {MAX_GLOB_BYTES} bytes"));
        }
        // As in a `.gitignore`: a glob without a slash matches names in any folder, a slash at its beginning means the folder
        // that is searched, and one at its end a folder.
        let inner = pattern.strip_suffix('/').unwrap_or(pattern);
        let anywhere = if inner.contains('/') { "" } else { "**/" };
        let below = inner.strip_prefix("./").unwrap_or(inner).trim_start_matches('/');
        if below.is_empty() {
            return Err(error!("{name} `{pattern}` names no file"));
        }
        let glob = GlobBuilder::new(&format!("{anywhere}{below}"))
            .literal_separator(true)
            .build()
            .map_err(|error| error!("{name} `{pattern}`: {}", error.kind()))?;
        set.add(glob);
    }
    Ok(set.build()?)
}

/// Entry of a folder.
pub enum Entry {
    /// File to read, by a path that another tool call accepts.
    File(String),
    /// File that no glob of `include` matches.
    NotIncluded,
    /// File or folder that a glob of `exclude` matches.
    Excluded,
    /// File or folder that cannot be read, or has a name that is not UTF-8.
    Unreadable,
    /// Symbolic link, which is not followed.
    Link,
    /// Folder below the maximum depth.
    TooDeep,
}

/// Lists the files to read and the entries to report, sorted by path. Folders that are excluded are not entered.
pub fn entries(root: &str, filter: &Filter) -> impl Iterator<Item = Entry> {
    let mut walk = WalkDir::new(root).max_depth(MAX_DEPTH).sort_by_file_name().into_iter();
    std::iter::from_fn(move || {
        loop {
            let Ok(entry) = walk.next()? else { return Some(Entry::Unreadable) };
            let below = below(root, &entry);
            if entry.depth() > 0 && filter.exclude.is_match(&below) {
                if entry.file_type().is_dir() {
                    walk.skip_current_dir();
                }
                match filter.reports_excluded {
                    true => return Some(Entry::Excluded),
                    false => continue,
                }
            }
            if let Some(entry) = found(&entry, &below, filter) {
                return Some(entry);
            }
        }
    })
}

/// Path of an entry below the root, which globs match.
fn below(root: &str, entry: &DirEntry) -> PathBuf {
    match entry.depth() {
        0 => entry.file_name().into(),
        _ => entry.path().strip_prefix(root).unwrap_or(entry.path()).to_path_buf(),
    }
}

/// Judges an entry that is not excluded; `None` for a folder that is entered.
fn found(entry: &DirEntry, below: &Path, filter: &Filter) -> Option<Entry> {
    let kind = entry.file_type();
    if kind.is_dir() {
        return (entry.depth() == MAX_DEPTH).then_some(Entry::TooDeep);
    }
    if !filter.includes(below) {
        return Some(Entry::NotIncluded);
    }
    if kind.is_symlink() {
        return Some(Entry::Link);
    }
    if !kind.is_file() {
        return Some(Entry::Unreadable);
    }
    let path = entry.path().strip_prefix(".").unwrap_or(entry.path());
    Some(path.to_str().map_or(Entry::Unreadable, |path| Entry::File(path.to_owned())))
}
