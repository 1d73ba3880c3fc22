//! Listing of a folder by cookies, the numbers of its entries: a program continues where it stopped, or starts again at
//! any entry. A few entries are read at a time, and no listing is held whole.

use wasmtime_wasi::p1::types::{Dircookie, Dirent, Errno, Error, Fd, Filetype, Size};
use wasmtime_wasi::p2::bindings::filesystem::types::{HostDescriptor, HostDirectoryEntryStream, PathFlags};
use wiggle::{GuestMemory, GuestPtr, GuestType};

use crate::sandbox::wasi::descriptor_table::{Descriptor, ListedEntry, Listing, borrow};
use crate::sandbox::wasi::state::WasiState;

use super::descriptors::end_listing;
use super::memory::Result;
use super::stat::filetype;

/// Entries of every folder before those that are read.
const DOTS: [&str; 2] = [".", ".."];
/// Maximum number of listings that a program has in progress. A call may have more.
const MAX_LISTINGS: usize = 8;

/// Writes the entries from a cookie on, until the buffer is full; the last entry may be cut.
pub(super) async fn read(
    state: &mut WasiState,
    memory: &mut GuestMemory<'_>,
    fd: Fd,
    (at, room): (GuestPtr<u8>, Size),
    mut cookie: Dircookie,
) -> Result<Size> {
    state.preview1.descriptors.folder(fd)?;
    memory.as_slice(at.as_array(room))?;
    if cookie == 0
        && let Some(passed) = take(state, fd)?
    {
        end_listing(state, passed)?;
    }
    let mut used = 0;
    while used < room {
        let Some(entry) = entry(state, fd, cookie).await? else { break };
        cookie += 1;
        let head = Dirent {
            d_next: cookie,
            d_ino: number(state, fd, &entry.name).await?,
            d_namlen: Size::try_from(entry.name.len())?,
            d_type: entry.kind,
        };
        let bytes = encoded(&head, &entry.name);
        let fits = u32::try_from(bytes.len())?.min(room - used);
        memory.copy_from_slice(&bytes[..fits as usize], at.add(used)?.as_array(fits))?;
        used += fits;
        if (fits as usize) < bytes.len() {
            keep(state, fd, entry)?;
        }
    }
    Ok(used)
}

/// Returns an entry as it is written to memory.
fn encoded(head: &Dirent, name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(Dirent::guest_size() as usize + name.len());
    bytes.extend(head.d_next.to_le_bytes());
    bytes.extend(head.d_ino.to_le_bytes());
    bytes.extend(head.d_namlen.to_le_bytes());
    bytes.push(head.d_type as u8);
    bytes.resize(Dirent::guest_size() as usize, 0);
    bytes.extend(name.as_bytes());
    bytes
}

/// Returns the serial number of a file; 0 if it was removed in the meantime.
async fn number(state: &mut WasiState, fd: Fd, name: &str) -> Result<u64> {
    let folder = state.preview1.descriptors.folder(fd)?;
    // Nothing is revealed about the folder above.
    let hash = match DOTS.contains(&name) {
        true => state.files().metadata_hash(folder).await,
        false => state.files().metadata_hash_at(folder, PathFlags::empty(), name.to_owned()).await,
    };
    match hash {
        Ok(hash) => Ok(hash.lower),
        Err(error) => error.downcast().map(|_| 0).map_err(Error::trap),
    }
}

/// Returns the entry of a number; `None` after the last.
async fn entry(state: &mut WasiState, fd: Fd, cookie: Dircookie) -> Result<Option<ListedEntry>> {
    if let Some(name) = usize::try_from(cookie).ok().and_then(|number| DOTS.get(number)) {
        return Ok(Some(ListedEntry { number: cookie, name: (*name).to_owned(), kind: Filetype::Directory }));
    }
    let mut listing = match take(state, fd)? {
        Some(Listing { left: Some(entry), stream, next }) if entry.number == cookie => {
            put_back(state, fd, Listing { stream, next, left: None })?;
            return Ok(Some(entry));
        }
        Some(listing) if listing.next <= cookie => listing,
        passed => {
            if let Some(passed) = passed {
                end_listing(state, passed)?;
            }
            begin(state, fd).await?
        }
    };
    listing.left = None;
    loop {
        let read = match state.files().read_directory_entry(borrow(&listing.stream)).await {
            Ok(Some(read)) => read,
            Ok(None) => {
                put_back(state, fd, listing)?;
                return Ok(None);
            }
            Err(error) => {
                end_listing(state, listing)?;
                return Err(error.into());
            }
        };
        let number = listing.next;
        listing.next += 1;
        if number == cookie {
            put_back(state, fd, listing)?;
            return Ok(Some(ListedEntry { number, name: read.name, kind: filetype(read.type_) }));
        }
    }
}

/// Starts a listing of a folder. If too many are in progress, another one ends; it starts again when it is read.
async fn begin(state: &mut WasiState, fd: Fd) -> Result<Listing> {
    let mut begun: Vec<_> = state.preview1.descriptors.folders_mut().filter(|it| it.listing.is_some()).collect();
    // Among nested folders, the outermost one is read again last.
    if begun.len() >= MAX_LISTINGS
        && let Some(other) = begun.first_mut().and_then(|folder| folder.listing.take())
    {
        end_listing(state, other)?;
    }
    let folder = state.preview1.descriptors.folder(fd)?;
    let stream = state.files().read_directory(folder).await?;
    Ok(Listing { stream, next: DOTS.len() as Dircookie, left: None })
}

fn slot(state: &mut WasiState, fd: Fd) -> Result<&mut Option<Listing>> {
    match state.preview1.descriptors.get_mut(fd)? {
        Descriptor::Folder(folder) => Ok(&mut folder.listing),
        _ => Err(Errno::Notdir.into()),
    }
}

fn take(state: &mut WasiState, fd: Fd) -> Result<Option<Listing>> {
    Ok(slot(state, fd)?.take())
}

fn put_back(state: &mut WasiState, fd: Fd, listing: Listing) -> Result<()> {
    *slot(state, fd)? = Some(listing);
    Ok(())
}

/// Stores an entry that did not fit: a program reads it next.
fn keep(state: &mut WasiState, fd: Fd, entry: ListedEntry) -> Result<()> {
    if let Some(listing) = slot(state, fd)? {
        listing.left = Some(entry);
    }
    Ok(())
}
