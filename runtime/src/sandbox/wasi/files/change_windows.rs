//! Changes of entries on Windows: an entry's folder is open while the entry is checked and changed, and an open folder
//! can be neither moved nor removed.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::windows::fs::{FileTypeExt, symlink_dir, symlink_file};
use std::path::Path;

use crate::policy::{Identity, is_link_out, lock_moves, protects_names_below};
use crate::sandbox::wasi::files::entry::{code, pinned};
use crate::sandbox::wasi::files::moved;

use super::{Change, ErrorCode, FolderEntry, PathGuard};

/// Performs a change. Changes that place a link or a folder hold a lock from the check on. No link is followed.
pub(super) fn apply(folder: &File, path: &str, change: &Change, guard: &PathGuard) -> Result<(), ErrorCode> {
    let makes_folder = matches!(change, Change::MakeFolder);
    let _turn = match change {
        Change::RemoveFile | Change::RemoveFolder => None,
        _ => Some(lock_moves(guard.end()).ok_or(ErrorCode::Busy)?),
    };
    let entry = match FolderEntry::resolve(folder, path) {
        // `.` and `..` exist.
        Err(ErrorCode::Invalid) if makes_folder => return Err(ErrorCode::Exist),
        entry => entry?,
    };
    // A program that creates every folder on the way to a file continues past an existing one, protected or not.
    if makes_folder && entry.metadata().is_ok() {
        return Err(ErrorCode::Exist);
    }
    entry.judge(guard)?;
    let at = entry.system_path();
    let done = match change {
        Change::MakeFolder => fs::create_dir(at),
        Change::RemoveFile => {
            let about = entry.metadata()?;
            require_folder_after_slash(&entry, &about)?;
            match about.file_type().is_symlink_dir() {
                true => fs::remove_dir(at),
                false if about.is_dir() => return Err(ErrorCode::IsDirectory),
                false => fs::remove_file(at),
            }
        }
        Change::RemoveFolder => match entry.metadata()?.is_dir() {
            true => fs::remove_dir(at),
            false => return Err(ErrorCode::NotDirectory),
        },
        Change::Link(_) if entry.slash() => return Err(ErrorCode::NotDirectory),
        Change::Link(target) => {
            check_link(&entry, Path::new(target))?;
            let target = target.replace('/', "\\");
            match at.parent().is_some_and(|folder| folder.join(&target).is_dir()) {
                true => symlink_dir(target, at),
                false => symlink_file(target, at),
            }
        }
        Change::Name(into, to) => {
            let to = FolderEntry::resolve(into, to)?;
            to.judge(guard)?;
            if entry.slash() || to.slash() {
                return Err(ErrorCode::NotDirectory);
            }
            check_moved(&entry, &to, guard)?;
            fs::hard_link(at, to.system_path())
        }
        Change::Move(into, to) => {
            let to = FolderEntry::resolve(into, to)?;
            to.judge(guard)?;
            let about = entry.metadata()?;
            require_folder_after_slash(&entry, &about)?;
            if to.slash() && !about.is_dir() {
                return Err(ErrorCode::NotDirectory);
            }
            check_moved(&entry, &to, guard)?;
            match fs::rename(at, to.system_path()) {
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    return Err(refused_move(&about, &to, error));
                }
                moved => moved,
            }
        }
    };
    done.map_err(code)
}

fn require_folder_after_slash(entry: &FolderEntry, about: &Metadata) -> Result<(), ErrorCode> {
    match entry.slash() && !about.is_dir() {
        true => Err(ErrorCode::NotDirectory),
        false => Ok(()),
    }
}

/// Returns the error of a move to an entry that cannot be replaced. The system reports only that access is denied.
fn refused_move(about: &Metadata, to: &FolderEntry, error: io::Error) -> ErrorCode {
    let has_entries = || fs::read_dir(to.system_path()).is_ok_and(|mut entries| entries.next().is_some());
    match (about.is_dir(), to.metadata().is_ok_and(|there| there.is_dir())) {
        (false, true) => ErrorCode::IsDirectory,
        (true, true) if has_entries() => ErrorCode::NotEmpty,
        _ => code(error),
    }
}

/// Refuses a link that would lead out of its folder, or whose name could turn names below it into protected ones.
fn check_link(entry: &FolderEntry, target: &Path) -> Result<(), ErrorCode> {
    refuse_above(entry)?;
    match is_link_out(target, entry.depth()) {
        true => Err(ErrorCode::NotPermitted),
        false => Ok(()),
    }
}

/// Refuses a link or a moved folder if its new name could turn names below it into protected ones.
fn refuse_above(entry: &FolderEntry) -> Result<(), ErrorCode> {
    match protects_names_below(&entry.path) {
        true => Err(ErrorCode::NotPermitted),
        false => Ok(()),
    }
}

/// Refuses a moved entry that would lead out of its folder, or become a protected one at its new place.
fn check_moved(from: &FolderEntry, to: &FolderEntry, guard: &PathGuard) -> Result<(), ErrorCode> {
    let about = from.metadata()?;
    if about.is_symlink() {
        return check_link(to, &fs::read_link(from.system_path()).map_err(code)?);
    }
    if about.is_dir() {
        refuse_above(to)?;
        return moved::check_folder(from, to, guard);
    }
    // Another name for a protected file would bypass its protection.
    let file = pinned(&from.system_path()).map_err(code)?;
    let (identity, is_linked) = Identity::of_linked(&file).map_err(code)?;
    match guard.protected.holds_file(identity, is_linked, &from.path) {
        true => Err(ErrorCode::NotPermitted),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use crate::policy::Protected;

    use super::*;

    struct Fixture {
        dir: tempfile::TempDir,
        root: Arc<File>,
        guard: PathGuard,
    }

    impl Fixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("sub/inner")).unwrap();
            fs::write(dir.path().join("file"), "x").unwrap();
            let root = Arc::new(pinned(dir.path()).unwrap());
            let mut protected = Protected::default();
            fs::write(dir.path().join("kept"), "k").unwrap();
            protected.add(&dir.path().join("kept"));
            let until = Some(Instant::now() + Duration::from_secs(60));
            Self { dir, root, guard: PathGuard { protected: Arc::new(protected), until, ..PathGuard::default() } }
        }

        fn apply(&self, path: &str, change: Change) -> Result<(), ErrorCode> {
            apply(&self.root, path, &change, &self.guard)
        }

        fn moved(&self, from: &str, to: &str) -> Result<(), ErrorCode> {
            self.apply(from, Change::Move(self.root.clone(), to.into()))
        }
    }

    #[test]
    fn entries_are_created_moved_named_and_removed() {
        let at = Fixture::new();
        at.apply("new", Change::MakeFolder).unwrap();
        assert!(matches!(at.apply("new", Change::MakeFolder), Err(ErrorCode::Exist)));
        at.moved("file", "new/moved").unwrap();
        at.apply("new/moved", Change::Name(at.root.clone(), "again".into())).unwrap();
        at.moved("new", "sub/inner/new").unwrap();
        at.apply("sub/inner/new/moved", Change::RemoveFile).unwrap();
        at.apply("sub/inner/new", Change::RemoveFolder).unwrap();
        assert_eq!(fs::read(at.dir.path().join("again")).unwrap(), b"x");
        assert!(matches!(at.apply("again", Change::RemoveFolder), Err(ErrorCode::NotDirectory)));
        assert!(matches!(at.apply("sub", Change::RemoveFile), Err(ErrorCode::IsDirectory)));
        assert!(matches!(at.moved("again", "sub"), Err(ErrorCode::IsDirectory)));
        at.apply("other", Change::MakeFolder).unwrap();
        assert!(matches!(at.moved("other", "sub"), Err(ErrorCode::NotEmpty)));
    }

    #[test]
    fn protected_entries_are_neither_made_nor_moved_nor_removed_under_any_spelling() {
        let at = Fixture::new();
        fs::create_dir_all(at.dir.path().join("repo/.git")).unwrap();
        for name in ["Tools.JSON", ".GIT", "sub/.Vscode", "sub/../toolcrib.TOML"] {
            assert!(matches!(at.apply(name, Change::MakeFolder), Err(ErrorCode::NotPermitted)), "{name}");
            assert!(matches!(at.moved("file", name), Err(ErrorCode::NotPermitted)), "{name}");
        }
        for name in ["kept", "KEPT", "./sub/../Kept"] {
            assert!(matches!(at.apply(name, Change::RemoveFile), Err(ErrorCode::NotPermitted)), "{name}");
            assert!(matches!(at.moved(name, "other"), Err(ErrorCode::NotPermitted)), "{name}");
            let named = at.apply(name, Change::Name(at.root.clone(), "other".into()));
            assert!(matches!(named, Err(ErrorCode::NotPermitted)), "{name}");
        }
        assert!(matches!(at.moved("repo", "sub/repo"), Err(ErrorCode::NotPermitted)), "it brings its hooks");
        assert!(matches!(at.moved("sub", ".config"), Err(ErrorCode::NotPermitted)));
        assert!(at.dir.path().join("kept").exists());
    }

    #[test]
    fn no_link_leads_out_of_the_folder() {
        let at = Fixture::new();
        for target in ["..", "../x", r"..\x", "/x", r"C:\x", r"\\server\share", "a/../../x"] {
            let linked = at.apply("link", Change::Link(target.into()));
            assert!(matches!(linked, Err(ErrorCode::NotPermitted)), "{target}");
        }
    }
}
