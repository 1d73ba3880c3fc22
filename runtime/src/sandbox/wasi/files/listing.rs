//! Listing of a folder in parts: the host holds a few entries at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, openat, statat};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode};
use wasmtime_wasi::runtime::spawn_blocking;

use super::state::Files;

/// Number of entries that are read at once.
const PART: usize = 256;

type Part = VecDeque<Result<DirectoryEntry, ErrorCode>>;

/// Listing in progress. It is stored in the table in place of the engine's own listing, under the number of the guest's
/// handle.
struct Listing {
    /// Unread rest of the folder; `None` at its end.
    rest: Option<Dir>,
    part: Part,
    /// Reference that keeps the descriptor of the listing taken.
    _marker: Arc<()>,
}

impl Files<'_> {
    /// Starts a listing of a folder.
    pub(super) async fn list(&mut self, fd: &Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        let dir = self.folder(fd)?.dir.clone();
        self.state.descriptors.take()?;
        // Each listing has a handle and therefore a position of its own.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = spawn_blocking(move || openat(&*dir, ".", flags, Mode::empty()).and_then(Dir::new)).await;
        let rest = match opened {
            Ok(rest) => Some(rest),
            Err(error) => {
                self.state.descriptors.give_back();
                return Err(std::io::Error::from(error).into());
            }
        };
        let marker = Arc::new(());
        self.state.descriptors.assign(&marker);
        let listing = self.inner.table.push(Listing { rest, part: Part::new(), _marker: marker })?;
        Ok(Resource::new_own(listing.rep()))
    }

    /// Returns the next entry; `None` at the end.
    pub(super) async fn next(&mut self, it: &Resource<DirectoryEntryStream>) -> FsResult<Option<DirectoryEntry>> {
        let key = Resource::<Listing>::new_borrow(it.rep());
        let listing = self.inner.table.get_mut(&key)?;
        if let Some(rest) = listing.rest.take_if(|_| listing.part.is_empty()) {
            let (rest, part) = spawn_blocking(move || part(rest)).await;
            let listing = self.inner.table.get_mut(&key)?;
            (listing.rest, listing.part) = (rest, part);
        }
        let listing = self.inner.table.get_mut(&key)?;
        Ok(listing.part.pop_front().transpose()?)
    }

    /// Ends a listing.
    pub(super) fn unlist(&mut self, it: &Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.inner.table.delete(Resource::<Listing>::new_own(it.rep()))?;
        Ok(())
    }
}

/// Reads the next part, and returns the rest of the folder.
fn part(mut dir: Dir) -> (Option<Dir>, Part) {
    let mut part = Part::with_capacity(PART);
    while part.len() < PART {
        match dir.read() {
            None => return (None, part),
            Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
            Some(Ok(entry)) => part.push_back(described(&dir, &entry)),
            Some(Err(error)) => part.push_back(Err(std::io::Error::from(error).into())),
        }
    }
    (Some(dir), part)
}

fn described(dir: &Dir, entry: &DirEntry) -> Result<DirectoryEntry, ErrorCode> {
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
    let name = name.to_str().map_err(|_| ErrorCode::IllegalByteSequence)?.to_owned();
    Ok(DirectoryEntry { type_, name })
}
