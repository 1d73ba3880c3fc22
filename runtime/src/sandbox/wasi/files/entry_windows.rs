//! Entry of a folder on Windows, found by the path that a guest gives. Each folder on the way is opened before the next name
//! is read in it, without following a link. An open folder can be neither moved nor removed, so that the path of the entry
//! leads to it as long as the handle is open.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

pub(super) use toolcrib_windows_files::is_reparse_point;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::policy::Identity;
use crate::tool::names::{NameRules, plain};

use super::guard::PathGuard;

/// Opens a link itself, and not its target.
pub(super) const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;

/// Reason why a path is not resolved.
pub(super) enum ResolveError {
    /// A link is among the folders on the way.
    Link,
    Refused(ErrorCode),
}

impl From<ErrorCode> for ResolveError {
    fn from(code: ErrorCode) -> Self {
        Self::Refused(code)
    }
}

/// Path below a folder, with every name but the last opened.
pub(super) struct ResolvedPath {
    /// The outer folder, and the folders on the way to the last name.
    pins: Vec<File>,
    /// Path of the outer folder.
    root: PathBuf,
    /// Path of the last one, in the form in which the system reads no name in it.
    folder: PathBuf,
    /// Last name; `None` if the path leads to the folder itself.
    pub(super) name: Option<String>,
    /// `true` if the path ends in a separator, which only a folder may have.
    pub(super) slash: bool,
}

impl ResolvedPath {
    /// Resolves a path below a folder.
    ///
    /// # Errors
    ///
    /// [`ResolveError::Link`] if a link is among the folders on the way; the path leaves the folder; or the error of the
    /// system.
    pub(super) fn of(root: &File, path: &str) -> Result<Self, ResolveError> {
        let is_separator = |c: char| c == '/' || c == '\\';
        if path.starts_with(is_separator) {
            return Err(ErrorCode::NotPermitted.into());
        }
        let whole = path.trim_end_matches(is_separator);
        let top = toolcrib_windows_files::final_path(root).map_err(code)?;
        let mut resolved = Self {
            pins: vec![root.try_clone().map_err(code)?],
            root: top.clone(),
            folder: top,
            name: None,
            slash: whole.len() != path.len(),
        };
        for name in whole.split(is_separator) {
            if let Some(name) = resolved.name.take() {
                resolved.enter(&name)?;
            }
            match name {
                "" | "." => {}
                ".." => resolved.leave()?,
                name => resolved.name = Some(name.to_owned()),
            }
        }
        Ok(resolved)
    }

    fn enter(&mut self, name: &str) -> Result<(), ResolveError> {
        let path = self.folder.join(name);
        let folder = pinned(&path).map_err(code)?;
        let about = folder.metadata().map_err(code)?;
        if is_reparse_point(&about) {
            return Err(ResolveError::Link);
        }
        if !about.is_dir() {
            return Err(ErrorCode::NotDirectory.into());
        }
        self.folder = self.located(&folder, path)?;
        self.pins.push(folder);
        Ok(())
    }

    fn leave(&mut self) -> Result<(), ErrorCode> {
        self.pins.pop();
        self.folder.pop();
        match self.pins.is_empty() {
            true => Err(ErrorCode::NotPermitted),
            false => Ok(()),
        }
    }

    /// Returns the path of a file or folder that was opened at `path`, and refuses one outside the outer folder.
    pub(super) fn located(&self, opened: &File, path: PathBuf) -> Result<PathBuf, ErrorCode> {
        Ok(located(opened, &self.root)?.unwrap_or(path))
    }

    /// Path of the entry, or the folder itself, which no system call reads in another way.
    pub(super) fn path(&self) -> PathBuf {
        self.name.as_ref().map_or_else(|| self.folder.clone(), |name| self.folder.join(name))
    }

    /// Returns the metadata of the entry; links are not followed. `None` if it does not exist.
    pub(super) fn metadata(&self) -> Result<Option<Metadata>, ErrorCode> {
        match toolcrib_windows_files::open_attributes(&self.path(), false).and_then(|entry| entry.metadata()) {
            Ok(about) => Ok(Some(about)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(code(error)),
        }
    }
}

/// Entry, existing or not.
pub(super) struct FolderEntry {
    at: ResolvedPath,
    /// Path of the entry on the host, as people write it.
    pub(super) path: PathBuf,
    /// Path as the guest gave it.
    request: PathBuf,
}

impl FolderEntry {
    /// Resolves all of a path but its last name, below a folder. No link is followed.
    pub(super) fn resolve(root: &File, path: &str) -> Result<Self, ErrorCode> {
        let at = ResolvedPath::of(root, path).map_err(|error| match error {
            ResolveError::Link => ErrorCode::NotPermitted,
            ResolveError::Refused(code) => code,
        })?;
        match at.name {
            None if path.is_empty() => Err(ErrorCode::NoEntry),
            None => Err(ErrorCode::Invalid),
            Some(_) => Ok(Self { path: plain(at.path()), request: PathBuf::from(path), at }),
        }
    }

    /// Returns the entry at a resolved path.
    pub(super) fn at(at: ResolvedPath, request: &str) -> Self {
        Self { path: plain(at.path()), request: PathBuf::from(request), at }
    }

    pub(super) fn resolved(&self) -> &ResolvedPath {
        &self.at
    }

    /// Path for calls of the system.
    pub(super) fn system_path(&self) -> PathBuf {
        self.at.path()
    }

    /// Number of folders between the guest's folder and the entry.
    pub(super) fn depth(&self) -> usize {
        self.at.pins.len() - 1
    }

    pub(super) fn slash(&self) -> bool {
        self.at.slash
    }

    /// Returns the metadata of the entry; links are not followed.
    pub(super) fn metadata(&self) -> Result<Metadata, ErrorCode> {
        self.at.metadata()?.ok_or(ErrorCode::NoEntry)
    }

    /// Refuses an entry that is protected by its place or by the names of its path.
    pub(super) fn judge(&self, guard: &PathGuard) -> Result<(), ErrorCode> {
        let folder = self.at.pins.last().ok_or(ErrorCode::NotPermitted)?;
        let folder = Identity::of(folder).map_err(code)?;
        match guard.protected.holds_entry(folder, &self.path) || guard.protected.is_named(&self.request) {
            true => Err(ErrorCode::NotPermitted),
            false => Ok(()),
        }
    }
}

/// Opens a folder, or a link itself, that no other handle can move or remove until this one is closed.
pub(super) fn pinned(path: &Path) -> io::Result<File> {
    toolcrib_windows_files::pin(path, false)
}

/// Returns the path of a file or folder that was opened below `root`; `None` if the system does not report it. One that is
/// elsewhere is refused: the system has followed a link that it does not show, as Wine does.
pub(super) fn located(opened: &File, root: &Path) -> Result<Option<PathBuf>, ErrorCode> {
    match toolcrib_windows_files::final_path(opened) {
        // Wine does not report a long path.
        Err(_) => Ok(None),
        Ok(found) if is_below(&found, root) => Ok(Some(found)),
        Ok(_) => Err(ErrorCode::NotPermitted),
    }
}

/// Returns the identity of an open file, `true` if it has several names, and its path on the host. A file without a known path
/// is judged by its identity alone.
pub(super) fn opened(file: &File) -> Result<(Identity, bool, PathBuf), ErrorCode> {
    let (identity, is_linked) = Identity::of_linked(file).map_err(code)?;
    Ok((identity, is_linked, toolcrib_windows_files::final_path(file).map(plain).unwrap_or_default()))
}

/// Returns `true` if a path names a folder or is below it, in any case.
fn is_below(path: &Path, folder: &Path) -> bool {
    let folded = |path: &Path| path.to_str().and_then(|path| NameRules::Windows.fold_path(path));
    let (Some(path), Some(folder)) = (folded(path), folded(folder)) else { return false };
    path.strip_prefix(folder.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Converts an error of the system.
pub(super) fn code(error: io::Error) -> ErrorCode {
    error.into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder() -> (tempfile::TempDir, File) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sub/deep")).unwrap();
        fs::write(dir.path().join("sub/file"), "x").unwrap();
        let root = pinned(dir.path()).unwrap();
        (dir, root)
    }

    #[test]
    fn a_path_stays_in_its_folder_and_means_one_entry() {
        let (_dir, root) = folder();
        let resolve = |path: &str| ResolvedPath::of(&root, path).map(|found| found.path());
        let top = toolcrib_windows_files::final_path(&root).unwrap();
        for path in ["sub/deep/../file", r"sub\.\file", "./sub//file", "sub/file/"] {
            assert_eq!(resolve(path).ok(), Some(top.join("sub").join("file")), "{path}");
        }
        assert_eq!(resolve("sub/..").ok(), Some(top.clone()));
        assert_eq!(resolve(".").ok(), Some(top));
        for path in ["..", "sub/../..", "sub/../../x", "/sub", r"\sub", "../x"] {
            assert!(matches!(resolve(path), Err(ResolveError::Refused(ErrorCode::NotPermitted))), "{path}");
        }
        assert!(matches!(resolve("sub/file/x"), Err(ResolveError::Refused(ErrorCode::NotDirectory))));
        assert!(matches!(resolve("absent/x"), Err(ResolveError::Refused(ErrorCode::NoEntry))));
    }

    #[test]
    fn an_opened_folder_that_is_elsewhere_is_refused() {
        let (dir, root) = folder();
        let at = ResolvedPath::of(&root, "sub/deep/x").ok().unwrap();
        let sub = pinned(&dir.path().join("SUB")).unwrap();
        assert!(at.located(&sub, PathBuf::new()).is_ok_and(|found| found.ends_with("sub")));
        let outside = pinned(dir.path().parent().unwrap()).unwrap();
        assert!(at.located(&outside, PathBuf::new()).is_err());
        for (path, folder, below) in [
            (r"\\?\C:\a\B", r"\\?\c:\A", true),
            (r"\\?\C:\a", r"\\?\C:\a", true),
            (r"\\?\C:\a", r"\\?\C:\", true),
            (r"\\?\C:\ab", r"\\?\C:\a", false),
            (r"\\?\C:\", r"\\?\C:\a", false),
        ] {
            assert_eq!(is_below(Path::new(path), Path::new(folder)), below, "{path} {folder}");
        }
    }

    #[test]
    fn a_folder_on_the_way_cannot_be_moved_before_the_entry_is_used() {
        let (dir, root) = folder();
        let entry = FolderEntry::resolve(&root, "sub/deep/new").ok().unwrap();
        assert!(fs::rename(dir.path().join("sub/deep"), dir.path().join("other")).is_err());
        assert_eq!(entry.depth(), 2);
        drop(entry);
        fs::rename(dir.path().join("sub/deep"), dir.path().join("other")).unwrap();
    }
}
