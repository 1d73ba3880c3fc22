//! Files of CPython: a root folder with the archives of its standard library and of packages, which no program can change.

use std::cell::RefCell;

use crate::python::LIBRARY;

/// Folder of the archives below the root.
const FOLDER: &[u8] = b"usr/local/lib";
/// Archives by name.
static ARCHIVES: [(&[u8], &[u8]); 2] =
    [(LIBRARY, include_bytes!(env!("CPYTHON_ARCHIVE"))), (b"packages.zip", include_bytes!(env!("CPYTHON_PACKAGES")))];

/// Descriptor of the root.
pub(crate) const ROOT: u32 = 3;
/// First descriptor of an open archive.
const FIRST: u32 = 4;
/// Maximum number of open files.
const MAX_OPEN: usize = 64;

/// Open archive and the position in it.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    archive: usize,
    /// Position of the next byte that is read.
    pub(crate) position: u64,
}

thread_local! {
    /// Open archives by descriptor; none for a closed one.
    static OPEN: RefCell<[Option<Open>; MAX_OPEN]> = const { RefCell::new([None; MAX_OPEN]) };
}

/// Returns the archive that a path below the root names.
pub(crate) fn archive(path: &[u8]) -> Option<usize> {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let name = path.strip_prefix(FOLDER)?.strip_prefix(b"/")?;
    ARCHIVES.iter().position(|(other, _)| *other == name)
}

/// Returns `true` if a path below the root names the folder of the archives, or one above it.
pub(crate) fn is_folder(path: &[u8]) -> bool {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let is_above = || FOLDER.strip_prefix(path).is_some_and(|rest| rest.starts_with(b"/"));
    path.is_empty() || path == b"." || path == FOLDER || is_above()
}

/// Returns the size of an archive in bytes.
pub(crate) fn size(archive: usize) -> u64 {
    ARCHIVES[archive].1.len() as u64
}

/// Opens an archive, and returns its descriptor.
pub(crate) fn open(archive: usize) -> Option<u32> {
    OPEN.with_borrow_mut(|open| {
        let free = open.iter().position(Option::is_none)?;
        open[free] = Some(Open { archive, position: 0 });
        Some(FIRST + free as u32)
    })
}

/// Closes a descriptor; `false` if it is not open.
pub(crate) fn close(descriptor: u32) -> bool {
    with(descriptor, Option::take).flatten().is_some()
}

/// Returns the archive of an open descriptor.
pub(crate) fn opened(descriptor: u32) -> Option<Open> {
    with(descriptor, |open| *open).flatten()
}

impl Open {
    /// Returns the size of the archive in bytes.
    pub(crate) fn size(self) -> u64 {
        size(self.archive)
    }

    /// Returns the bytes of the archive from a position on.
    pub(crate) fn bytes(self, position: u64) -> &'static [u8] {
        let bytes = ARCHIVES[self.archive].1;
        usize::try_from(position).ok().and_then(|position| bytes.get(position..)).unwrap_or_default()
    }
}

/// Sets the position of an open archive.
pub(crate) fn seek(descriptor: u32, position: u64) {
    with(descriptor, |open| {
        if let Some(open) = open {
            open.position = position;
        }
    });
}

fn with<T>(descriptor: u32, change: impl FnOnce(&mut Option<Open>) -> T) -> Option<T> {
    let index = descriptor.checked_sub(FIRST)? as usize;
    OPEN.with_borrow_mut(|open| open.get_mut(index).map(change))
}
