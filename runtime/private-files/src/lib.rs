//! Files and folders that only their user can access, for every crate that keeps files of the host: by owner and mode on Unix,
//! by owner and access list on Windows. A file is opened first and judged by its handle, so that no swap between the check and
//! its use matters.

mod lock;
#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

pub use lock::FileLock;
pub use system::{
    Options, check_file, create_folder, is_file_at, open_linked, options, persist, persist_new, refuse_shared,
    refuse_shared_target, rename, temporary,
};

/// Access of other users that an existing file may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedAccess {
    /// Other users may neither read nor write the file, and its folder must belong to this user and not be
    /// writable by others.
    None,
    /// Other users may read the file.
    Read,
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_was_removed_or_replaced_is_not_the_one_at_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let new = || temporary(tempfile::Builder::new().prefix("x-"), folder.path()).unwrap();
        let first = persist_new(new(), &path).unwrap();
        assert!(is_file_at(&first, &path));
        std::fs::rename(&path, folder.path().join("other")).unwrap();
        assert!(!is_file_at(&first, &path));
        let second = persist_new(new(), &path).unwrap();
        assert!(is_file_at(&second, &path) && !is_file_at(&first, &path));
    }

    #[test]
    fn a_new_file_is_private_keeps_its_name_and_replaces_none_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let new = |content: &str| {
            let mut file = temporary(tempfile::Builder::new().prefix("x-"), folder.path()).unwrap();
            file.write_all(content.as_bytes()).unwrap();
            file
        };
        persist_new(new("one"), &path).unwrap();
        assert!(persist_new(new("two"), &path).is_err());
        for opened in [open_linked(&path), options().read(true).open(&path)] {
            check_file(&opened.unwrap(), SharedAccess::None).unwrap();
        }
        persist(new("three"), &path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three");
        let opened = open_linked(folder.path()).and_then(|folder| check_file(&folder, SharedAccess::Read));
        assert!(opened.is_err(), "a folder is no file");
    }
}
