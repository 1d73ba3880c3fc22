//! Listing of a folder in parts: the host holds a few entries at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{DirectoryEntry, DirectoryEntryStream, ErrorCode};
use wasmtime_wasi::runtime::spawn_blocking;

use super::single::Names;
use super::staged::{StagedListing, list_below};
use super::state::Files;

#[cfg(unix)]
#[path = "listing_unix.rs"]
mod system;
#[cfg(windows)]
#[path = "listing_windows.rs"]
mod system;

use system::OpenListing;

/// Number of entries that are read at once.
const PART: usize = 256;

/// Unread rest of a real folder.
pub(super) type Rest = OpenListing;

pub(super) type Part = VecDeque<Result<DirectoryEntry, ErrorCode>>;

/// Listing in progress. It is stored in the table in place of the engine's own listing, under the number of the guest's
/// handle.
struct Listing {
    /// Unread rest of the folder; `None` at its end.
    rest: Option<OpenListing>,
    part: Part,
    /// Names of the granted files, if nothing else in the folder is granted.
    only: Option<Names>,
    /// Listing of the stage, if writes are held back.
    staged: Option<StagedListing>,
    /// Reference that keeps the descriptor of the listing taken.
    _marker: Arc<()>,
}

impl Files<'_> {
    /// Starts a listing of a folder.
    pub(super) async fn list(&mut self, fd: &Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        let dir = self.folder(fd)?.dir.clone();
        let only = self.single(fd).cloned();
        let staged = self.staged(fd);
        self.state.descriptors.take()?;
        let folder = staged.clone();
        let opened = spawn_blocking(move || match &folder {
            Some(folder) => list_below(folder),
            None => OpenListing::of(&dir).map(Some),
        });
        let rest = match opened.await {
            Ok(rest) => rest,
            Err(error) => {
                self.state.descriptors.give_back();
                return Err(error.into());
            }
        };
        let staged = staged.map(StagedListing::new);
        let marker = Arc::new(());
        self.state.descriptors.assign(&marker);
        let listing = self.inner.table.push(Listing { rest, part: Part::new(), only, staged, _marker: marker })?;
        Ok(Resource::new_own(listing.rep()))
    }

    /// Returns the next entry; `None` at the end.
    pub(super) async fn next(&mut self, it: &Resource<DirectoryEntryStream>) -> FsResult<Option<DirectoryEntry>> {
        let key = Resource::<Listing>::new_borrow(it.rep());
        loop {
            let listing = self.inner.table.get_mut(&key)?;
            while let Some(entry) = listing.part.pop_front() {
                let entry = entry?;
                if listing.only.as_ref().is_none_or(|only| only.contains(&entry.name)) {
                    return Ok(Some(entry));
                }
            }
            let (rest, staged) = (listing.rest.take(), listing.staged.clone());
            let Some(read) = spawn_blocking(move || read_part(rest, staged)).await else { return Ok(None) };
            let listing = self.inner.table.get_mut(&key)?;
            (listing.rest, listing.part, listing.staged) = read;
        }
    }

    /// Ends a listing.
    pub(super) fn unlist(&mut self, it: &Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.inner.table.delete(Resource::<Listing>::new_own(it.rep()))?;
        Ok(())
    }
}

/// Reads the next part of what a stage shows and of the real folder; `None` at the end.
fn read_part(
    rest: Option<OpenListing>,
    mut staged: Option<StagedListing>,
) -> Option<(Option<OpenListing>, Part, Option<StagedListing>)> {
    if let Some(part) = staged.as_mut().and_then(|staged| staged.next_staged(PART)) {
        return Some((rest, part, staged));
    }
    let (rest, mut part) = part(rest?);
    if let Some(staged) = &staged {
        staged.retain_shown(&mut part);
    }
    Some((rest, part, staged))
}

/// Reads the next part, and returns the rest of the folder. Entries with names that are not Unicode are left out: WASI has no
/// text for them, and the libraries of most languages end a listing at an error. A part of such entries alone is empty.
fn part(mut folder: OpenListing) -> (Option<OpenListing>, Part) {
    let mut part = Part::with_capacity(PART);
    for _ in 0..PART {
        match folder.next() {
            None => return (None, part),
            Some(Ok(None)) => {}
            Some(Ok(Some(entry))) => part.push_back(Ok(entry)),
            Some(Err(error)) => part.push_back(Err(error)),
        }
    }
    (Some(folder), part)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_folder_is_read_in_parts_and_each_entry_once() {
        let dir = tempfile::tempdir().unwrap();
        let names: BTreeSet<String> = (0..PART + 10).map(|number| format!("file-{number}")).collect();
        for name in &names {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let folder = system::open_for_test(dir.path());
        let (rest, first) = part(OpenListing::of(&folder).unwrap());
        assert_eq!(first.len(), PART, "no more is held at once");
        let (end, second) = part(rest.unwrap());
        assert!(end.is_none());
        let found: BTreeSet<String> = first.into_iter().chain(second).map(|entry| entry.unwrap().name).collect();
        assert_eq!(found, names);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn names_that_are_not_unicode_are_left_out_and_hide_no_others() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let dir = tempfile::tempdir().unwrap();
        for number in 0..2 * PART {
            let name = [format!("{number}").as_bytes(), b"\xff"].concat();
            std::fs::write(dir.path().join(OsStr::from_bytes(&name)), "").unwrap();
        }
        std::fs::write(dir.path().join("readable"), "").unwrap();
        let mut rest = Some(OpenListing::of(&system::open_for_test(dir.path())).unwrap());
        let (mut found, mut parts) = (Vec::new(), 0);
        while let Some(folder) = rest {
            let (after, entries) = part(folder);
            found.extend(entries.into_iter().map(|entry| entry.unwrap().name));
            (rest, parts) = (after, parts + 1);
        }
        assert_eq!(found, ["readable"]);
        assert_eq!(parts, 3, "a part is bounded by the entries that are read");
    }
}
