//! Files and folders that only their user can access: created with an access list of their own, opened without following a
//! link, and checked by their handle.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle};
use std::path::{Path, PathBuf, absolute};
use std::ptr::null_mut;

use tempfile::NamedTempFile;
use windows_sys::Win32::Foundation::{GENERIC_READ, GENERIC_WRITE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, FILE_ATTRIBUTE_NORMAL, FILE_FLAG_OPEN_REPARSE_POINT, FILE_SHARE_DELETE,
    FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_TYPE_DISK, FILE_WRITE_ATTRIBUTES, GetFileType, OPEN_ALWAYS, OPEN_EXISTING,
    READ_CONTROL, SECURITY_IDENTIFICATION, SECURITY_SQOS_PRESENT,
};

use crate::access::{OtherAccess, judge, private_descriptor};
use crate::handle::{descriptor, is_reparse_point, open_folder};
use crate::paths::long_form;
use crate::patience::patiently;
use crate::user;

/// Options that open a regular file without following a link, and create it for its user alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct PrivateOptions {
    read: bool,
    write: bool,
    truncate: bool,
    create: bool,
    create_new: bool,
}

impl PrivateOptions {
    /// Options without any access.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens for reading.
    pub fn read(&mut self, read: bool) -> &mut Self {
        self.read = read;
        self
    }

    /// Opens for writing.
    pub fn write(&mut self, write: bool) -> &mut Self {
        self.write = write;
        self
    }

    /// Removes the content, once the file was judged.
    pub fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.truncate = truncate;
        self
    }

    /// Creates a missing file.
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.create = create;
        self
    }

    /// Creates the file, which must be missing.
    pub fn create_new(&mut self, create_new: bool) -> &mut Self {
        self.create_new = create_new;
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// The path leads to a link, a device or a folder, or the error of the system.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        // The time of the last use is written to files that are read.
        let opened = match self.create_file(path.as_ref(), FILE_WRITE_ATTRIBUTES) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => self.create_file(path.as_ref(), 0),
            opened => opened,
        };
        let file = opened?;
        refuse_special(&file)?;
        if self.truncate {
            file.set_len(0)?;
        }
        Ok(file)
    }

    #[expect(unsafe_code, reason = "the standard library cannot create a file with an access list")]
    fn create_file(&self, path: &Path, more: u32) -> io::Result<File> {
        let path = wide(path)?;
        let mut descriptor = words(&private_descriptor(&user::current()?, false));
        let attributes = attributes(&mut descriptor);
        let access =
            more | READ_CONTROL | if self.read { GENERIC_READ } else { 0 } | if self.write { GENERIC_WRITE } else { 0 };
        let disposition = match (self.create_new, self.create) {
            (true, _) => CREATE_NEW,
            (_, true) => OPEN_ALWAYS,
            _ => OPEN_EXISTING,
        };
        // The far end of a pipe learns who asks and cannot act as this user.
        let flags =
            FILE_FLAG_OPEN_REPARSE_POINT | SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION | FILE_ATTRIBUTE_NORMAL;
        let share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
        // SAFETY: the path ends in a zero, and the attributes and the descriptor in them outlive the call.
        let handle =
            unsafe { CreateFileW(path.as_ptr(), access, share, &raw const attributes, disposition, flags, null_mut()) };
        match handle {
            INVALID_HANDLE_VALUE => Err(io::Error::last_os_error()),
            // SAFETY: the call succeeded, so the handle is open and nobody else closes it.
            handle => Ok(unsafe { File::from_raw_handle(handle) }),
        }
    }
}

/// Creates a folder and its missing parents, each for the user alone. Existing folders stay as they are.
///
/// # Errors
///
/// The error of the system, or a file is in the way.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    match create_one(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => match folder.parent() {
            Some(above) if !above.as_os_str().is_empty() => {
                create_folder(above)?;
                create_one(folder)
            }
            _ => Err(error),
        },
        Err(_) if folder.is_dir() => Ok(()),
        done => done,
    }
}

#[expect(unsafe_code, reason = "the standard library cannot create a folder with an access list")]
fn create_one(folder: &Path) -> io::Result<()> {
    let path = wide(folder)?;
    let mut descriptor = words(&private_descriptor(&user::current()?, true));
    let attributes = attributes(&mut descriptor);
    // SAFETY: the path ends in a zero, and the attributes and the descriptor in them outlive the call.
    match unsafe { CreateDirectoryW(path.as_ptr(), &raw const attributes) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Creates a temporary file for the user alone, which is removed unless it gets another name.
///
/// # Errors
///
/// The error of the system.
pub fn temporary(builder: &tempfile::Builder<'_, '_>, folder: &Path) -> io::Result<NamedTempFile> {
    builder.make_in(folder, |path| PrivateOptions::new().read(true).write(true).create_new(true).open(path))
}

/// Gives a complete temporary file its final name, in place of the file that has it.
///
/// # Errors
///
/// The error of the system, after a bounded wait for a program that holds that file open.
pub fn persist(file: NamedTempFile, path: &Path) -> io::Result<File> {
    let (file, mut temporary) = file.into_parts();
    patiently(|| fs::rename(&temporary, path))?;
    temporary.disable_cleanup(true);
    Ok(file)
}

/// Gives a complete temporary file its final name, which must be free.
///
/// # Errors
///
/// The file, with the error of the system after a bounded wait for a program that holds it open.
pub fn persist_new(file: NamedTempFile, path: &Path) -> Result<File, (io::Error, NamedTempFile)> {
    let mut left = Some(file);
    let persisted = patiently(|| match left.take().map(|file| file.persist_noclobber(path)) {
        Some(Ok(file)) => Ok(file),
        Some(Err(failed)) => {
            left = Some(failed.file);
            Err(failed.error)
        }
        None => Err(ErrorKind::NotFound.into()),
    });
    match (persisted, left) {
        (Ok(file), _) => Ok(file),
        (Err(error), Some(file)) => Err((error, file)),
        (Err(_), None) => unreachable!("a failed attempt returns the file"),
    }
}

/// Checks that an open file is a regular one that belongs to the user, the system or the administrators, and that
/// others have no access beyond `others`.
///
/// # Errors
///
/// [`ErrorKind::PermissionDenied`] with the reason, or the error of the system.
pub fn check(file: &File, others: OtherAccess) -> io::Result<()> {
    refuse_special(file)?;
    judge_handle(file, others)
}

/// Checks that a folder belongs to the user, the system or the administrators, and that others have no access beyond
/// `others`. A link is refused unless `follow` is set.
///
/// # Errors
///
/// [`ErrorKind::PermissionDenied`] with the reason, or the error of the system.
pub fn check_folder(folder: &Path, follow: bool, others: OtherAccess) -> io::Result<()> {
    // With a separator at its end, the path of a link names the target of the link.
    let folder: PathBuf = folder.components().collect();
    let folder = open_folder(&folder, follow)?;
    if is_reparse_point(&folder.metadata()?) {
        return Err(refused("it is a link".to_owned()));
    }
    judge_handle(&folder, others)
}

fn judge_handle(file: &File, others: OtherAccess) -> io::Result<()> {
    let advice = "take the rights of others away with `icacls PATH /inheritance:r /grant:r \"%USERNAME%:F\"`";
    judge(&descriptor(file)?, &user::current()?, others).map_err(|reason| refused(format!("{reason}: {advice}")))
}

/// Refuses everything but a regular file whose content is in the file itself.
fn refuse_special(file: &File) -> io::Result<()> {
    if !is_on_disk(file) {
        return Err(refused("it is a device".to_owned()));
    }
    let about = file.metadata()?;
    if is_reparse_point(&about) {
        return Err(refused("it is a link, and no link is followed here".to_owned()));
    }
    match about.is_file() {
        true => Ok(()),
        false => Err(refused("it is not a regular file".to_owned())),
    }
}

#[expect(unsafe_code, reason = "a call of the system without pointers")]
fn is_on_disk(file: &File) -> bool {
    // SAFETY: the handle is open.
    unsafe { GetFileType(file.as_raw_handle()) == FILE_TYPE_DISK }
}

fn refused(reason: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, reason)
}

/// Returns a path for the system's calls: absolute, of any length, with a zero at its end.
fn wide(path: &Path) -> io::Result<Vec<u16>> {
    let path = absolute(path)?;
    let mut wide: Vec<u16> = match path.to_str() {
        Some(text) => long_form(text).encode_utf16().collect(),
        // Not Unicode: without a prefix, such a path must be short.
        None => path.as_os_str().encode_wide().collect(),
    };
    if wide.contains(&0) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the path has a zero character"));
    }
    wide.push(0);
    Ok(wide)
}

/// Copies a descriptor into words, for which the system requires it to be aligned.
fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    bytes.chunks(4).map(word).collect()
}

/// Refers to a descriptor, which must outlive the attributes. Programs that are started do not inherit the handle.
fn attributes(descriptor: &mut [u32]) -> SECURITY_ATTRIBUTES {
    let len = u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).unwrap_or_default();
    SECURITY_ATTRIBUTES { nLength: len, lpSecurityDescriptor: descriptor.as_mut_ptr().cast(), bInheritHandle: 0 }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use windows_sys::Win32::Security::{DACL_SECURITY_INFORMATION, SetFileSecurityW};

    use crate::access::tests::shared_descriptor;

    use super::*;

    fn options() -> PrivateOptions {
        PrivateOptions::new()
    }

    /// Creates a file with these rights for everyone.
    fn shared(path: &Path, mask: u32) -> File {
        let file = options().read(true).write(true).create_new(true).open(path).unwrap();
        share(path, mask);
        file
    }

    #[expect(unsafe_code, reason = "a call of the system that changes the access list of a file")]
    fn share(path: &Path, mask: u32) {
        let mut descriptor = words(&shared_descriptor(&user::current().unwrap(), mask));
        let path = wide(path).unwrap();
        // SAFETY: the path ends in a zero, and the descriptor outlives the call.
        let set = unsafe { SetFileSecurityW(path.as_ptr(), DACL_SECURITY_INFORMATION, descriptor.as_mut_ptr().cast()) };
        assert_ne!(set, 0, "{}", io::Error::last_os_error());
    }

    #[test]
    fn a_created_file_and_folder_belong_to_the_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("one/two");
        create_folder(&folder).unwrap();
        create_folder(&folder).unwrap();
        for folder in [&dir.path().join("one"), &folder] {
            check_folder(folder, false, OtherAccess::None).unwrap();
        }
        let path = folder.join("file");
        options().write(true).create_new(true).open(&path).unwrap().write_all(b"secret").unwrap();
        let mut file = options().read(true).open(&path).unwrap();
        check(&file, OtherAccess::None).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "secret");
        assert!(options().write(true).create_new(true).open(&path).is_err());
        assert_eq!(options().write(true).truncate(true).open(&path).unwrap().metadata().unwrap().len(), 0);
        let made = temporary(tempfile::Builder::new().prefix("x-"), &folder).unwrap();
        check(made.as_file(), OtherAccess::None).unwrap();
    }

    #[test]
    fn a_file_that_others_may_access_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let readable = shared(&dir.path().join("readable"), 0x0012_0089);
        assert!(check(&readable, OtherAccess::Read).is_ok());
        let reason = check(&readable, OtherAccess::None).unwrap_err();
        assert_eq!(reason.kind(), ErrorKind::PermissionDenied);
        assert!(reason.to_string().contains("S-1-1-0"), "{reason}");
        let writable = shared(&dir.path().join("writable"), 0x001f_01ff);
        assert!(check(&writable, OtherAccess::Read).is_err());
        let folder = dir.path().join("folder");
        create_folder(&folder).unwrap();
        check_folder(&folder, true, OtherAccess::Read).unwrap();
        share(&folder, 0x001f_01ff);
        assert_eq!(check_folder(&folder, true, OtherAccess::Read).unwrap_err().kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_replaced_file_keeps_the_list_of_the_new_one_and_one_that_is_held_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        drop(shared(&path, 0x001f_01ff));
        let new = |content: &str| {
            let mut file = temporary(tempfile::Builder::new().prefix("x-"), dir.path()).unwrap();
            file.write_all(content.as_bytes()).unwrap();
            file
        };
        persist(new("two"), &path).unwrap();
        check(&options().read(true).open(&path).unwrap(), OtherAccess::None).unwrap();
        let (error, left) = persist_new(new("three"), &path).unwrap_err();
        assert!(left.path().exists() && path.exists(), "{error}");
        // Another program, which shares nothing.
        let held =
            std::os::windows::fs::OpenOptionsExt::share_mode(fs::OpenOptions::new().read(true), 0).open(&path).unwrap();
        let freed = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            drop(held);
        });
        persist(new("four"), &path).unwrap();
        freed.join().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "four");
    }

    #[test]
    fn a_folder_is_no_file_and_a_device_is_none() {
        let dir = tempfile::tempdir().unwrap();
        assert!(options().read(true).open(dir.path()).is_err());
        assert!(options().read(true).open("NUL").is_err());
        fs::write(dir.path().join("plain"), "").unwrap();
        assert!(create_folder(&dir.path().join("plain")).is_err());
        assert!(create_folder(&dir.path().join("plain/in")).is_err());
    }

    #[test]
    fn a_path_longer_than_the_plain_limit_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let folder = (0..6).fold(dir.path().to_path_buf(), |path, _| path.join("b".repeat(60)));
        create_folder(&folder).unwrap();
        options().write(true).create(true).open(folder.join("file")).unwrap();
        check(&options().read(true).open(folder.join("file")).unwrap(), OtherAccess::None).unwrap();
    }
}
