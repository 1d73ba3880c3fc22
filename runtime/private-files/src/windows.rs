//! Private files on Windows: by owner and access list. They are created with a list that gives
//! access to the user, the system and the administrators, and takes no entries of the folder above.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;

use toolcrib_windows_files::access::OtherAccess;
use toolcrib_windows_files::{check, check_folder, identity, patience};

use crate::SharedAccess;

/// Level at which the far end of a pipe learns who asks and cannot act as this user.
const SECURITY_IDENTIFICATION: u32 = 1 << 16;

pub use toolcrib_windows_files::PrivateOptions as Options;
pub use toolcrib_windows_files::{create_folder, persist, persist_new, temporary};

/// Returns `true` if an open file is still the one at a path.
pub fn is_file_at(file: &File, path: &Path) -> bool {
    match (identity(file), File::open(path).and_then(|there| identity(&there))) {
        (Ok(open), Ok(there)) => open == there,
        _ => false,
    }
}

/// Refuses a path that is a link, belongs to someone else or can be written by someone else.
///
/// # Errors
///
/// The reason, or the error of the system.
pub fn refuse_shared(path: &Path) -> io::Result<()> {
    check_folder(path, false, OtherAccess::Read)
}

/// Refuses a folder in which other users could replace files. Links to it are followed.
///
/// # Errors
///
/// The reason, or the error of the system.
pub fn refuse_shared_target(folder: &Path) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("its folder `{}`: {error}", folder.display()));
    check_folder(folder, true, OtherAccess::Read).map_err(named)
}

/// Checks that an open file is a regular one of this user, without further access by others.
///
/// # Errors
///
/// [`io::ErrorKind::PermissionDenied`] with the reason, or the error of the system.
pub fn check_file(file: &File, shared: SharedAccess) -> io::Result<()> {
    let others = match shared {
        SharedAccess::None => OtherAccess::None,
        SharedAccess::Read => OtherAccess::Read,
    };
    check(file, others)
}

/// Options that create files for the user alone, and follow no link at the path.
pub fn options() -> Options {
    Options::new()
}

/// Opens a file for reading. Links are followed.
///
/// # Errors
///
/// The error of the system.
pub fn open_linked(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).security_qos_flags(SECURITY_IDENTIFICATION).open(path)
}

/// Renames a file or folder over another, and waits within a bound for a program that holds one of the two open.
///
/// # Errors
///
/// The error of the system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    patience::patiently(|| std::fs::rename(from, to))
}
