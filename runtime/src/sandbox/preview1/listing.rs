//! Listing a folder by cookies, the numbers of its entries: a program goes on where it was, or begins again at any of
//! them. The gate reads a few entries at a time, and no listing is held whole.

use wasmtime::component::Resource;
use wasmtime_wasi::p1::types::{Dircookie, Dirent, Errno, Error, Fd, Filetype, Size};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DirectoryEntryStream, HostDescriptor, HostDirectoryEntryStream, PathFlags,
};
use wiggle::{GuestMemory, GuestPtr, GuestType};

use super::Result;
use super::descriptors::{Descriptor, lent};
use super::stat::filetype;
use crate::sandbox::host::Host;

/// The entries that every folder has before those that are read.
const DOTS: [&str; 2] = [".", ".."];
/// The most listings that a program has begun and not ended; the gate has room for more.
const MAX_LISTINGS: usize = 8;

/// A listing that goes on.
pub(super) struct Listing {
    stream: Resource<DirectoryEntryStream>,
    /// The number of the entry that is read next.
    next: Dircookie,
    /// The entry that was read last and found no room.
    left: Option<Entry>,
}

/// An entry of a folder.
#[derive(Clone)]
struct Entry {
    number: Dircookie,
    name: String,
    kind: Filetype,
}

/// Writes the entries from a cookie on, until there is no more room: the last may be cut.
pub(super) async fn read(
    host: &mut Host,
    memory: &mut GuestMemory<'_>,
    fd: Fd,
    (at, room): (GuestPtr<u8>, Size),
    mut cookie: Dircookie,
) -> Result<Size> {
    host.preview1.descriptors.folder(fd)?;
    memory.as_slice(at.as_array(room))?;
    if cookie == 0
        && let Some(passed) = take(host, fd)?
    {
        end(host, passed)?;
    }
    let mut used = 0;
    while used < room {
        let Some(entry) = entry(host, fd, cookie).await? else { break };
        cookie += 1;
        let head = Dirent {
            d_next: cookie,
            d_ino: number(host, fd, &entry.name).await?,
            d_namlen: Size::try_from(entry.name.len())?,
            d_type: entry.kind,
        };
        let bytes = encoded(&head, &entry.name);
        let fits = u32::try_from(bytes.len())?.min(room - used);
        memory.copy_from_slice(&bytes[..fits as usize], at.add(used)?.as_array(fits))?;
        used += fits;
        if (fits as usize) < bytes.len() {
            keep(host, fd, entry)?;
        }
    }
    Ok(used)
}

/// An entry as it lies in memory.
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

/// The number by which a file is known, or none where it went away since.
async fn number(host: &mut Host, fd: Fd, name: &str) -> Result<u64> {
    let folder = host.preview1.descriptors.folder(fd)?;
    // Of the folder above, nothing is told.
    let hash = match DOTS.contains(&name) {
        true => host.files().metadata_hash(folder).await,
        false => host.files().metadata_hash_at(folder, PathFlags::empty(), name.to_owned()).await,
    };
    match hash {
        Ok(hash) => Ok(hash.lower),
        Err(error) => error.downcast().map(|_| 0).map_err(Error::trap),
    }
}

/// The entry of a number; `None` behind the last.
async fn entry(host: &mut Host, fd: Fd, cookie: Dircookie) -> Result<Option<Entry>> {
    if let Some(name) = usize::try_from(cookie).ok().and_then(|number| DOTS.get(number)) {
        return Ok(Some(Entry { number: cookie, name: (*name).to_owned(), kind: Filetype::Directory }));
    }
    let mut listing = match take(host, fd)? {
        Some(Listing { left: Some(entry), stream, next }) if entry.number == cookie => {
            put_back(host, fd, Listing { stream, next, left: None })?;
            return Ok(Some(entry));
        }
        Some(listing) if listing.next <= cookie => listing,
        passed => {
            if let Some(passed) = passed {
                end(host, passed)?;
            }
            begin(host, fd).await?
        }
    };
    listing.left = None;
    loop {
        let read = match host.files().read_directory_entry(lent(&listing.stream)).await {
            Ok(Some(read)) => read,
            Ok(None) => {
                put_back(host, fd, listing)?;
                return Ok(None);
            }
            Err(error) => {
                end(host, listing)?;
                return Err(error.into());
            }
        };
        let number = listing.next;
        listing.next += 1;
        if number == cookie {
            put_back(host, fd, listing)?;
            return Ok(Some(Entry { number, name: read.name, kind: filetype(read.type_) }));
        }
    }
}

/// Begins to list a folder. Where many listings have begun already, another one ends: it begins again when it is asked.
async fn begin(host: &mut Host, fd: Fd) -> Result<Listing> {
    let mut begun: Vec<_> = host.preview1.descriptors.folders_mut().filter(|it| it.listing.is_some()).collect();
    // Of folders inside one another, the outermost waits longest.
    if begun.len() >= MAX_LISTINGS
        && let Some(other) = begun.first_mut().and_then(|folder| folder.listing.take())
    {
        end(host, other)?;
    }
    let folder = host.preview1.descriptors.folder(fd)?;
    let stream = host.files().read_directory(folder).await?;
    Ok(Listing { stream, next: DOTS.len() as Dircookie, left: None })
}

/// Ends a listing.
pub(super) fn end(host: &mut Host, listing: Listing) -> Result<()> {
    HostDirectoryEntryStream::drop(&mut host.files(), listing.stream).map_err(Error::trap)
}

fn slot(host: &mut Host, fd: Fd) -> Result<&mut Option<Listing>> {
    match host.preview1.descriptors.get_mut(fd)? {
        Descriptor::Folder(folder) => Ok(&mut folder.listing),
        _ => Err(Errno::Notdir.into()),
    }
}

fn take(host: &mut Host, fd: Fd) -> Result<Option<Listing>> {
    Ok(slot(host, fd)?.take())
}

fn put_back(host: &mut Host, fd: Fd, listing: Listing) -> Result<()> {
    *slot(host, fd)? = Some(listing);
    Ok(())
}

/// Keeps an entry that found no room: a program asks for it next.
fn keep(host: &mut Host, fd: Fd, entry: Entry) -> Result<()> {
    if let Some(listing) = slot(host, fd)? {
        listing.left = Some(entry);
    }
    Ok(())
}
