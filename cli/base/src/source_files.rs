//! Source files at and below a path, as far as they are looked at: without hidden files and the output of builds, and within
//! limits, since a folder may hold anything.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

/// Maximum number of files and folders that are looked at.
pub const MAX_ENTRIES: usize = 10_000;
/// Maximum depth of folders.
pub const MAX_DEPTH: usize = 16;
/// Folders with output, which changes with every build.
const OUTPUT_FOLDERS: [&str; 3] = ["target", "node_modules", "__pycache__"];
/// Hidden folder of projects with tools.
const HARNESS: &str = ".harness";

/// Lists the files at and below a path. The path itself may be a link; links below it are not followed.
pub fn below(root: &Path) -> Vec<(PathBuf, Metadata)> {
    let (mut files, mut left) = (Vec::new(), MAX_ENTRIES);
    collect(root, root.metadata().ok(), MAX_DEPTH, &mut left, &mut files);
    files
}

/// Adds the files at and below a path, while of the entries to look at some are `left`, at least one.
fn collect(path: &Path, about: Option<Metadata>, depth: usize, left: &mut usize, files: &mut Vec<(PathBuf, Metadata)>) {
    *left -= 1;
    let Some(about) = about else { return };
    if about.is_file() {
        files.push((path.to_path_buf(), about));
        return;
    }
    let (true, true, Ok(entries)) = (about.is_dir(), depth > 0, fs::read_dir(path)) else { return };
    for entry in entries.flatten() {
        if *left == 0 {
            return;
        }
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_passed = OUTPUT_FOLDERS.contains(&&*name) || name.starts_with('.') && name != HARNESS;
        match is_passed {
            true => *left -= 1,
            false => collect(&entry.path(), entry.metadata().ok(), depth - 1, left, files),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_more_entries_or_more_depth_is_looked_at_in_part() {
        let folder = tempfile::tempdir().unwrap();
        (0..MAX_ENTRIES + 50).for_each(|at| fs::write(folder.path().join(at.to_string()), "").unwrap());
        // The folder itself is an entry.
        assert_eq!(below(folder.path()).len(), MAX_ENTRIES - 1);
        let folder = tempfile::tempdir().unwrap();
        let deepest = (1..MAX_DEPTH).fold(folder.path().to_path_buf(), |path, _| path.join("d"));
        fs::create_dir_all(deepest.join("d")).unwrap();
        fs::write(deepest.join("seen"), "").unwrap();
        fs::write(deepest.join("d/unseen"), "").unwrap();
        let seen: Vec<_> = below(folder.path()).into_iter().map(|(path, _)| path).collect();
        assert_eq!(seen, [deepest.join("seen")]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_path_itself_may_be_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("real")).unwrap();
        fs::write(path("real/a"), "").unwrap();
        std::os::unix::fs::symlink(path("real"), path("link")).unwrap();
        std::os::unix::fs::symlink(path("link"), path("real/again")).unwrap();
        assert_eq!(below(&path("link")).len(), 1);
    }
}
