//! Opening of a path below a folder on Windows: the folders on the way are opened name by name, the file is opened without
//! following a link, and its handle is checked before anything in it changes.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;

use cap_fs_ext::{OpenOptionsFollowExt, OpenOptionsMaybeDirExt};
use cap_primitives::fs::FollowSymlinks;
use winapi_util::file::typ;

use crate::policy::Identity;
use crate::sandbox::wasi::files::entry::{
    FILE_FLAG_OPEN_REPARSE_POINT, FolderEntry, ResolveError, ResolvedPath, code, is_reparse_point, located, pinned,
};
use crate::tool::names::plain;

use super::{ErrorCode, OpenRequest, OpenedFile, PathGuard, Quota};

/// Number of attempts to open a file that others create and remove.
const ATTEMPTS: usize = 16;

/// Opens a regular file or a folder. A link is followed within the folder and for reading alone.
pub(in crate::sandbox::wasi::files) fn open(
    folder: &File,
    request: &OpenRequest,
    quota: &Quota,
    guard: &PathGuard,
) -> Result<OpenedFile, ErrorCode> {
    match open_unlinked(folder, request, quota, guard) {
        Err(ResolveError::Link) if request.writes() => Err(ErrorCode::NotPermitted),
        Err(ResolveError::Link) => open_linked(folder, request, guard),
        Err(ResolveError::Refused(code)) => Err(code),
        Ok(opened) => Ok(opened),
    }
}

/// Opens a file or folder behind a link for reading. Each link on the path is followed by handles, and leads nowhere out of the
/// folder.
fn open_linked(folder: &File, request: &OpenRequest, guard: &PathGuard) -> Result<OpenedFile, ErrorCode> {
    let links = if request.follows() { FollowSymlinks::Yes } else { FollowSymlinks::No };
    // A device is not even opened.
    let there = cap_primitives::fs::stat(folder, request.path.as_ref(), links).map_err(code)?;
    if !there.is_dir() && !there.is_file() && !there.is_symlink() {
        return Err(ErrorCode::NotPermitted);
    }
    let mut options = cap_primitives::fs::OpenOptions::new();
    options.read(true).follow(links).maybe_dir(true);
    let opened = cap_primitives::fs::open(folder, request.path.as_ref(), &options).map_err(code)?;
    located(&opened, &toolcrib_windows_files::final_path(folder).map_err(code)?)?;
    if opened.metadata().map_err(code)?.is_dir() {
        return Ok(OpenedFile::Folder(opened));
    }
    if request.is_folder() {
        return Err(ErrorCode::NotDirectory);
    }
    judge_file(&opened, guard)?;
    Ok(OpenedFile::Regular(opened))
}

fn open_unlinked(
    folder: &File,
    request: &OpenRequest,
    quota: &Quota,
    guard: &PathGuard,
) -> Result<OpenedFile, ResolveError> {
    for _ in 0..ATTEMPTS {
        let at = ResolvedPath::of(folder, &request.path)?;
        if at.name.is_none() && request.path.is_empty() {
            return Err(ErrorCode::NoEntry.into());
        }
        let Some(about) = at.metadata()? else {
            if !request.creates() {
                return Err(ErrorCode::NoEntry.into());
            }
            match create(at, request, quota, guard)? {
                Some(created) => return Ok(created),
                None => continue,
            }
        };
        if request.is_exclusive() {
            return Err(ErrorCode::Exist.into());
        }
        if is_reparse_point(&about) {
            return Err(if request.follows() { ResolveError::Link } else { ErrorCode::Loop.into() });
        }
        if about.is_dir() {
            return Ok(open_folder(&at, request)?);
        }
        if request.is_folder() || at.slash {
            return Err(ErrorCode::NotDirectory.into());
        }
        match options(request).open(at.path()) {
            // The file was removed in the meantime.
            Err(error) if error.kind() == ErrorKind::NotFound && request.creates() => {}
            opened => return Ok(check_opened(opened.map_err(code)?, &at, request, guard)?),
        }
    }
    Err(ErrorCode::Busy.into())
}

fn open_folder(at: &ResolvedPath, request: &OpenRequest) -> Result<OpenedFile, ErrorCode> {
    if request.writes() {
        return Err(ErrorCode::IsDirectory);
    }
    let folder = pinned(&at.path()).map_err(code)?;
    at.located(&folder, at.path())?;
    let about = folder.metadata().map_err(code)?;
    match about.is_dir() && !is_reparse_point(&about) {
        true => Ok(OpenedFile::Folder(folder)),
        // Replaced in the meantime.
        false => Err(ErrorCode::Busy),
    }
}

/// Creates a file; `None` if it exists by now.
fn create(
    at: ResolvedPath,
    request: &OpenRequest,
    quota: &Quota,
    guard: &PathGuard,
) -> Result<Option<OpenedFile>, ErrorCode> {
    let entry = FolderEntry::at(at, &request.path);
    entry.judge(guard)?;
    if entry.slash() {
        return Err(ErrorCode::IsDirectory);
    }
    quota.entry().map_err(|_| ErrorCode::Quota)?;
    let created = options(request).write(true).create_new(true).open(entry.system_path());
    match created.inspect_err(|_| quota.uncount_entry()) {
        Ok(created) => check_opened(created, entry.resolved(), request, guard).map(Some),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && request.is_exclusive() => Err(ErrorCode::Exist),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(code(error)),
    }
}

/// Returns the options for opening, without those for creating.
fn options(request: &OpenRequest) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(request.reads()).write(request.writes()).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    options
}

fn check_opened(
    file: File,
    at: &ResolvedPath,
    request: &OpenRequest,
    guard: &PathGuard,
) -> Result<OpenedFile, ErrorCode> {
    let (identity, is_linked) = judge_file(&file, guard)?;
    let path = plain(at.located(&file, at.path())?);
    if request.writes() {
        let is_protected = guard.protected.holds_file(identity, is_linked, &path);
        if is_protected || guard.protected.is_named(Path::new(&request.path)) {
            return Err(ErrorCode::NotPermitted);
        }
    }
    if request.truncates() {
        file.set_len(0).map_err(code)?;
    }
    Ok(OpenedFile::Regular(file))
}

/// Refuses an open file that is no regular file, or another name of the host's own. Returns its identity, and `true` if it has
/// several names.
fn judge_file(file: &File, guard: &PathGuard) -> Result<(Identity, bool), ErrorCode> {
    let about = file.metadata().map_err(code)?;
    let is_on_disk = typ(file).is_ok_and(|kind| kind.is_disk());
    if !is_on_disk || !about.is_file() || is_reparse_point(&about) {
        return Err(ErrorCode::NotPermitted);
    }
    let (identity, is_linked) = Identity::of_linked(file).map_err(code)?;
    match is_linked && guard.protected.is_own(identity) {
        true => Err(ErrorCode::NotPermitted),
        false => Ok((identity, is_linked)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};

    use crate::policy::Protected;
    use crate::tool::Limits;

    use super::*;

    const WRITE: DescriptorFlags = DescriptorFlags::WRITE;

    struct Fixture {
        dir: tempfile::TempDir,
        root: File,
        guard: PathGuard,
    }

    impl Fixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("granted/sub")).unwrap();
            fs::write(dir.path().join("granted/file"), "content").unwrap();
            let root = pinned(&dir.path().join("granted")).unwrap();
            Self { dir, root, guard: PathGuard::default() }
        }

        fn open(&self, path: &str, open: OpenFlags, flags: DescriptorFlags) -> Result<OpenedFile, ErrorCode> {
            let request = OpenRequest { path: path.into(), link: PathFlags::SYMLINK_FOLLOW, open, flags };
            let quota = Quota::new(&Limits::default(), &Arc::default());
            super::open(&self.root, &request, &quota, &self.guard)
        }
    }

    #[test]
    fn files_and_folders_are_opened_created_and_emptied_below_the_folder() {
        let at = Fixture::new();
        assert!(matches!(at.open("file", OpenFlags::empty(), DescriptorFlags::READ), Ok(OpenedFile::Regular(_))));
        assert!(matches!(at.open("sub", OpenFlags::DIRECTORY, DescriptorFlags::READ), Ok(OpenedFile::Folder(_))));
        assert!(matches!(at.open(".", OpenFlags::empty(), DescriptorFlags::READ), Ok(OpenedFile::Folder(_))));
        assert!(at.open("sub/new", OpenFlags::CREATE, WRITE).is_ok());
        assert!(at.dir.path().join("granted/sub/new").exists());
        assert!(matches!(at.open("sub/new", OpenFlags::CREATE | OpenFlags::EXCLUSIVE, WRITE), Err(ErrorCode::Exist)));
        assert!(at.open("file", OpenFlags::TRUNCATE, WRITE).is_ok());
        assert_eq!(fs::read(at.dir.path().join("granted/file")).unwrap(), b"");
        assert!(matches!(at.open("file", OpenFlags::DIRECTORY, DescriptorFlags::READ), Err(ErrorCode::NotDirectory)));
        assert!(matches!(at.open("sub", OpenFlags::empty(), WRITE), Err(ErrorCode::IsDirectory)));
        assert!(matches!(at.open("absent", OpenFlags::empty(), WRITE), Err(ErrorCode::NoEntry)));
        assert!(matches!(at.open("../x", OpenFlags::CREATE, WRITE), Err(ErrorCode::NotPermitted)));
    }

    #[test]
    fn a_protected_file_is_not_written_under_any_spelling_and_keeps_its_content() {
        let mut at = Fixture::new();
        let path = at.dir.path().join("granted/settings");
        fs::write(&path, "kept").unwrap();
        fs::hard_link(&path, at.dir.path().join("granted/alias")).unwrap();
        let mut protected = Protected::default();
        protected.add(&path);
        at.guard = PathGuard { protected: Arc::new(protected), ..PathGuard::default() };
        for name in ["settings", "SETTINGS", "./sub/../Settings", "alias", "Tools.json", ".GIT/config"] {
            let opened = at.open(name, OpenFlags::TRUNCATE | OpenFlags::CREATE, WRITE);
            assert!(matches!(opened, Err(ErrorCode::NotPermitted | ErrorCode::NoEntry)), "{name}");
        }
        assert_eq!(fs::read(&path).unwrap(), b"kept");
        assert!(at.open("alias", OpenFlags::empty(), DescriptorFlags::READ).is_ok());
    }

    #[test]
    fn another_name_of_the_hosts_own_file_is_not_even_read() {
        let mut at = Fixture::new();
        fs::create_dir(at.dir.path().join("state")).unwrap();
        fs::write(at.dir.path().join("state/secret"), "s").unwrap();
        fs::hard_link(at.dir.path().join("state/secret"), at.dir.path().join("granted/alias")).unwrap();
        fs::hard_link(at.dir.path().join("granted/file"), at.dir.path().join("granted/twin")).unwrap();
        let protected = Protected::new([at.dir.path().join("state")]);
        at.guard = PathGuard { protected: Arc::new(protected), ..PathGuard::default() };
        let read = |name| at.open(name, OpenFlags::empty(), DescriptorFlags::READ);
        assert!(matches!(read("alias"), Err(ErrorCode::NotPermitted)));
        assert!(read("twin").is_ok());
    }
}
