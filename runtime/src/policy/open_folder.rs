//! Open folder of a permission, held by its handle.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;

use super::identity::Identity;
use super::location::{Location, Mounts, identity_of, path_of};

/// An open folder that a [`Permission`](super::Permission) grants or denies by its handle. Another folder that takes its path is
/// neither granted nor denied.
#[derive(Debug, Clone)]
pub struct OpenFolder {
    handle: Arc<File>,
    path: PathBuf,
    identity: Identity,
}

impl OpenFolder {
    /// Holds an open folder.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if the folder was removed, or the error of the system.
    pub fn new(folder: Dir) -> io::Result<Self> {
        let handle = folder.into_std_file();
        let path = path_of(&handle, Path::new("."))?;
        let identity = identity_of(&handle).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { handle: Arc::new(handle), path, identity })
    }

    /// Path of the folder when it was held.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn handle(&self) -> &File {
        &self.handle
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// Finds the current location of the folder.
    pub(super) fn location(&self, mounts: &Mounts) -> Location {
        let path = path_of(&self.handle, &self.path).unwrap_or_else(|_| self.path.clone());
        Location::of_open(&self.handle, &path, mounts)
    }
}

impl PartialEq for OpenFolder {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl Eq for OpenFolder {}

#[cfg(test)]
mod tests {
    use std::fs;

    use cap_std::ambient_authority;

    #[cfg(unix)]
    use crate::policy::{Permission, Policy, resolved::Allowed};
    #[cfg(unix)]
    use crate::tool::Access;

    use super::*;

    fn open(path: &Path) -> OpenFolder {
        OpenFolder::new(Dir::open_ambient_dir(path, ambient_authority()).unwrap()).unwrap()
    }

    #[test]
    fn a_folder_is_one_by_any_handle_and_names_its_path() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("other")).unwrap();
        assert_eq!(open(dir.path()), open(dir.path()));
        assert_ne!(open(dir.path()), open(&dir.path().join("other")));
        assert_eq!(open(dir.path()).path(), crate::policy::canonical(dir.path()).unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_another_takes_the_path_of_is_the_one_that_is_granted_and_denied() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| crate::policy::canonical(dir.path()).unwrap().join(name);
        fs::create_dir_all(at("held/inner")).unwrap();
        let held = open(&at("held"));
        fs::rename(at("held"), at("moved")).unwrap();
        fs::create_dir(at("held")).unwrap();
        let allowed = |policy: Policy| Allowed::resolve(&policy).unwrap();
        let granted = allowed(Policy::default().allow(Permission::Folder(held.clone(), Access::Read)));
        let [(folder, Access::Read)] = &granted.folders[..] else { panic!("{granted:?}") };
        assert_eq!(folder.path, at("moved"));
        let denied = allowed(Policy::default().deny(Permission::Folder(held, Access::Read)));
        let left = |name: &str| denied.left_of(&Location::of(&at(name), &Mounts::none()), Access::Read).unwrap();
        assert_eq!((left("moved"), left("moved/inner"), left("held")), (None, None, Some(Access::Read)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_system_of_the_host_is_granted_by_no_handle_and_a_removed_folder_is_not_held() {
        let held = Permission::Folder(open(Path::new("/proc/self")), Access::Read);
        let error = Allowed::resolve(&Policy::default().allow(held)).unwrap_err().to_string();
        assert!(error.contains("never granted"), "{error}");
        let dir = tempfile::tempdir().unwrap();
        let gone = Dir::open_ambient_dir(dir.path(), ambient_authority()).unwrap();
        drop(dir);
        assert_eq!(OpenFolder::new(gone).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
