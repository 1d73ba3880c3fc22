//! Files and folders with owner-only rights on Windows: by owner and access list. They are created with a list that gives
//! access to the user, the system and the administrators, and takes no entries of the folder above.

use std::fs::File;
use std::io;
use std::path::Path;

use toolcrib_windows_files::access::OtherAccess;
use toolcrib_windows_files::{check, check_folder, patience};

use super::SharedAccess;

pub(super) use toolcrib_windows_files::PrivateOptions as Options;
pub(super) use toolcrib_windows_files::{create_folder, persist, persist_new, temporary};

/// Refuses a path that is a link, belongs to someone else or can be written by someone else.
pub(super) fn refuse_shared(path: &Path) -> io::Result<()> {
    check_folder(path, false, OtherAccess::Read)
}

/// Refuses a folder in which other users could replace files. Links to it are followed.
pub(super) fn refuse_shared_target(folder: &Path) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("its folder `{}`: {error}", folder.display()));
    check_folder(folder, true, OtherAccess::Read).map_err(named)
}

/// Checks the type, the owner and the access list of an open file.
pub(super) fn check_file(file: &File, shared: SharedAccess) -> io::Result<()> {
    let others = match shared {
        SharedAccess::None => OtherAccess::None,
        SharedAccess::Read => OtherAccess::Read,
    };
    check(file, others)
}

pub(super) fn options() -> Options {
    Options::new()
}

/// Renames a file, and waits for a program that holds one of the two open.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    patience::patiently(|| std::fs::rename(from, to))
}
