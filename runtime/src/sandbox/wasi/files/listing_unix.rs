//! Listing of an open folder on Unix.

use std::fs::File;
use std::io;

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, openat, statat};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};

/// Listing with a handle and therefore a position of its own.
pub(in crate::sandbox::wasi::files) struct OpenListing(Dir);

impl OpenListing {
    pub(in crate::sandbox::wasi::files) fn of(folder: &File) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(openat(folder, ".", flags, Mode::empty()).and_then(Dir::new)?))
    }

    /// Returns the next entry, or `Some(Ok(None))` for one with a name that is not Unicode; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Result<Option<DirectoryEntry>, ErrorCode>> {
        loop {
            match self.0.read()? {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Ok(entry) => return Some(Ok(described(&self.0, &entry))),
                Err(error) => return Some(Err(io::Error::from(error).into())),
            }
        }
    }
}

/// Describes an entry; `None` if its name is not Unicode.
fn described(dir: &Dir, entry: &DirEntry) -> Option<DirectoryEntry> {
    let name = entry.file_name();
    let kind = match entry.file_type() {
        // Some file systems do not report the kind in a listing.
        FileType::Unknown => {
            let stat = dir.fd().and_then(|dir| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW));
            stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
        }
        kind => kind,
    };
    let type_ = match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        _ => DescriptorType::Unknown,
    };
    Some(DirectoryEntry { type_, name: name.to_str().ok()?.to_owned() })
}

#[cfg(test)]
pub(super) fn open_for_test(path: &std::path::Path) -> File {
    File::open(path).unwrap()
}
