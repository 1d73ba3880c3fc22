//! Listing of an open folder on Windows.

use std::fs::{DirEntry, File, ReadDir};
use std::io;

use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};

/// Listing with a position of its own. The system reads it in parts.
pub(in crate::sandbox::wasi::files) struct OpenListing(ReadDir);

impl OpenListing {
    pub(in crate::sandbox::wasi::files) fn of(folder: &File) -> io::Result<Self> {
        // The open folder stays at its path.
        Ok(Self(toolcrib_windows_files::final_path(folder)?.read_dir()?))
    }

    /// Returns the next entry, or `Some(Ok(None))` for one with a name that is not Unicode; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Result<Option<DirectoryEntry>, ErrorCode>> {
        Some(match self.0.next()? {
            Ok(entry) => described(&entry),
            Err(error) => Err(error.into()),
        })
    }
}

/// Describes an entry; `None` if its name is not Unicode.
fn described(entry: &DirEntry) -> Result<Option<DirectoryEntry>, ErrorCode> {
    let kind = entry.file_type()?;
    let type_ = match (kind.is_symlink(), kind.is_dir()) {
        (true, _) => DescriptorType::SymbolicLink,
        (_, true) => DescriptorType::Directory,
        _ => DescriptorType::RegularFile,
    };
    Ok(entry.file_name().into_string().ok().map(|name| DirectoryEntry { type_, name }))
}

#[cfg(test)]
pub(super) fn open_for_test(path: &std::path::Path) -> File {
    crate::sandbox::wasi::files::entry::pinned(path).unwrap()
}
