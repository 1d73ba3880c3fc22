//! Facts about an open file or folder: its identity, its path and its descriptor.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::ERROR_INSUFFICIENT_BUFFER;
use windows_sys::Win32::Security::{DACL_SECURITY_INFORMATION, GetKernelObjectSecurity, OWNER_SECURITY_INFORMATION};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_ID_INFO, FILE_READ_ATTRIBUTES, FILE_SHARE_READ, FILE_SHARE_WRITE, FileIdInfo, GetFileInformationByHandle,
    GetFileInformationByHandleEx, GetFinalPathNameByHandleW, READ_CONTROL,
};

/// Characters of a path that most paths need.
const PATH_CHARS: usize = 512;
/// Maximum characters of a path, equal to the system's maximum.
const MAX_PATH_CHARS: usize = 1 << 15;
/// Bytes of a descriptor that most descriptors need.
const DESCRIPTOR_BYTES: usize = 1 << 10;
/// Maximum bytes of an access list are 64 KiB; a descriptor has one, and two identifiers.
const MAX_DESCRIPTOR_BYTES: usize = 1 << 17;

/// Volume of a file or folder and its number there, which are the same under all its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// Serial number of the volume.
    pub volume: u64,
    /// Number in the volume. ReFS needs all of its bits.
    pub number: u128,
}

/// Opens a folder to read its attributes and its descriptor. A link at the path is followed if `follow` is set.
///
/// # Errors
///
/// The error of the system.
pub fn open_folder(path: &Path, follow: bool) -> io::Result<File> {
    let link = if follow { 0 } else { FILE_FLAG_OPEN_REPARSE_POINT };
    let mut options = OpenOptions::new();
    options.access_mode(FILE_READ_ATTRIBUTES | READ_CONTROL).share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE);
    options.custom_flags(FILE_FLAG_BACKUP_SEMANTICS | link).open(path)
}

/// Opens a file or folder to read its attributes alone, which no other handle can exclude. A link at the path is followed if
/// `follow` is set; else the link itself is opened.
///
/// # Errors
///
/// The error of the system.
pub fn open_attributes(path: &Path, follow: bool) -> io::Result<File> {
    let link = if follow { 0 } else { FILE_FLAG_OPEN_REPARSE_POINT };
    let mut options = OpenOptions::new();
    options.access_mode(FILE_READ_ATTRIBUTES).custom_flags(FILE_FLAG_BACKUP_SEMANTICS | link).open(path)
}

/// Opens a folder, or what else is at the path, so that no other handle can move or remove it or a folder above it until this
/// one is closed. A link at the path is followed if `follow` is set; else the link itself is opened.
///
/// # Errors
///
/// The error of the system.
pub fn pin(path: &Path, follow: bool) -> io::Result<File> {
    let link = if follow { 0 } else { FILE_FLAG_OPEN_REPARSE_POINT };
    let mut options = OpenOptions::new();
    options.read(true).share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE);
    options.custom_flags(FILE_FLAG_BACKUP_SEMANTICS | link).open(path)
}

/// Creates a file in a pinned folder. A link with its name is not followed.
///
/// # Errors
///
/// The file exists, or the error of the system.
pub fn create_in(folder: &File, name: &str) -> io::Result<File> {
    let path = final_path(folder)?.join(name);
    OpenOptions::new().write(true).create_new(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)
}

/// Returns `true` for a link, a junction, or a file whose content is elsewhere.
#[must_use]
pub fn is_reparse_point(about: &Metadata) -> bool {
    about.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0
}

/// Finds the identity of an open file or folder. File systems without 128-bit numbers report their 64-bit number.
///
/// # Errors
///
/// The error of the system.
pub fn identity(file: &File) -> io::Result<FileIdentity> {
    if let Some(FILE_ID_INFO { VolumeSerialNumber: volume, FileId: id }) = id_info(file) {
        return Ok(FileIdentity { volume, number: u128::from_le_bytes(id.Identifier) });
    }
    let about = basic(file)?;
    let number = u128::from(about.nFileIndexHigh) << 32 | u128::from(about.nFileIndexLow);
    Ok(FileIdentity { volume: u64::from(about.dwVolumeSerialNumber), number })
}

#[expect(unsafe_code, reason = "a call of the system that fills a structure")]
fn id_info(file: &File) -> Option<FILE_ID_INFO> {
    let mut info = MaybeUninit::<FILE_ID_INFO>::uninit();
    let len = u32::try_from(size_of::<FILE_ID_INFO>()).ok()?;
    // SAFETY: the handle is open, and the structure has the given length.
    let filled =
        unsafe { GetFileInformationByHandleEx(file.as_raw_handle(), FileIdInfo, info.as_mut_ptr().cast(), len) };
    // SAFETY: the call succeeded and has filled the structure, which any bytes make valid.
    (filled != 0).then(|| unsafe { info.assume_init() })
}

#[expect(unsafe_code, reason = "a call of the system that fills a structure")]
fn basic(file: &File) -> io::Result<BY_HANDLE_FILE_INFORMATION> {
    let mut info = MaybeUninit::<BY_HANDLE_FILE_INFORMATION>::uninit();
    // SAFETY: the handle is open, and the structure is of the kind that the call fills.
    match unsafe { GetFileInformationByHandle(file.as_raw_handle(), info.as_mut_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        // SAFETY: the call succeeded and has filled the structure.
        _ => Ok(unsafe { info.assume_init() }),
    }
}

/// Finds the current path of an open file or folder, without links and short names, with the prefix `\\?\`.
///
/// # Errors
///
/// The error of the system, such as for a volume without a drive letter.
pub fn final_path(file: &File) -> io::Result<PathBuf> {
    final_path_from(file, PATH_CHARS)
}

/// Finds the path with room for `chars` characters at first.
fn final_path_from(file: &File, chars: usize) -> io::Result<PathBuf> {
    let mut path = vec![0u16; chars];
    loop {
        match final_path_into(file, &mut path) {
            0 => return Err(io::Error::last_os_error()),
            used if used < path.len() => return Ok(OsString::from_wide(&path[..used]).into()),
            needed if needed > MAX_PATH_CHARS || needed <= path.len() => {
                return Err(io::ErrorKind::InvalidFilename.into());
            }
            needed => path.resize(needed, 0),
        }
    }
}

/// Returns the number of characters without the last zero, or the number that is needed with it.
#[expect(unsafe_code, reason = "a call of the system that fills a buffer")]
fn final_path_into(file: &File, path: &mut [u16]) -> usize {
    let len = u32::try_from(path.len()).unwrap_or_default();
    // SAFETY: the handle is open, and the buffer has the given length. Zero flags mean a normalized path with a drive.
    let used = unsafe { GetFinalPathNameByHandleW(file.as_raw_handle(), path.as_mut_ptr(), len, 0) };
    used as usize
}

/// Reads the owner and the access list of an open file or folder.
pub(crate) fn descriptor(file: &File) -> io::Result<Vec<u8>> {
    let mut words = vec![0u64; DESCRIPTOR_BYTES / size_of::<u64>()];
    loop {
        let (done, needed) = descriptor_into(file, &mut words);
        if done {
            return Ok(words.iter().flat_map(|word| word.to_ne_bytes()).collect());
        }
        let error = io::Error::last_os_error();
        let is_short = error.raw_os_error() == i32::try_from(ERROR_INSUFFICIENT_BUFFER).ok();
        if !is_short || needed <= size_of_val(words.as_slice()) || needed > MAX_DESCRIPTOR_BYTES {
            return Err(error);
        }
        words.resize(needed.div_ceil(size_of::<u64>()), 0);
    }
}

#[expect(unsafe_code, reason = "a call of the system that fills a buffer")]
fn descriptor_into(file: &File, words: &mut [u64]) -> (bool, usize) {
    let (len, mut needed) = (u32::try_from(size_of_val(words)).unwrap_or_default(), 0);
    let parts = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
    // SAFETY: the handle is open, and the buffer has the given length and the alignment of a descriptor.
    let done = unsafe {
        GetKernelObjectSecurity(file.as_raw_handle(), parts, words.as_mut_ptr().cast(), len, &raw mut needed)
    };
    (done != 0, needed as usize)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn one_file_has_one_identity_and_one_path_under_all_its_names() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/one"), "1").unwrap();
        fs::write(dir.path().join("sub/two"), "2").unwrap();
        fs::hard_link(dir.path().join("sub/one"), dir.path().join("other")).unwrap();
        let open = |name: &str| File::open(dir.path().join(name)).unwrap();
        let of = |name: &str| identity(&open(name)).unwrap();
        assert_eq!(of("sub/one"), of("SUB/ONE"));
        assert_eq!(of("sub/one"), of("other"));
        assert_ne!(of("sub/one"), of("sub/two"));
        assert_eq!(final_path(&open("sub/one")).unwrap(), final_path(&open("SUB/../Sub/ONE")).unwrap());
        let folder = open_folder(&dir.path().join("SUB"), true).unwrap();
        assert!(final_path(&folder).unwrap().ends_with("sub"), "the name as it is stored");
    }

    #[test]
    fn a_pinned_folder_stays_where_it_is_with_the_folders_above_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("above/inner")).unwrap();
        let pinned = pin(&dir.path().join("above/inner"), false).unwrap();
        assert!(fs::rename(dir.path().join("above/inner"), dir.path().join("moved")).is_err());
        assert!(fs::remove_dir(dir.path().join("above/inner")).is_err());
        create_in(&pinned, "new").unwrap();
        assert!(create_in(&pinned, "new").is_err() && dir.path().join("above/inner/new").exists());
        drop(pinned);
        fs::rename(dir.path().join("above"), dir.path().join("moved")).unwrap();
    }

    #[test]
    fn a_path_for_which_there_is_no_room_at_first_is_found_whole() {
        let dir = tempfile::tempdir().unwrap();
        let folder = open_folder(dir.path(), false).unwrap();
        let whole = final_path(&folder).unwrap();
        for chars in [1, 4, whole.as_os_str().len(), whole.as_os_str().len() + 1] {
            assert_eq!(final_path_from(&folder, chars).unwrap(), whole, "{chars}");
        }
    }
}
