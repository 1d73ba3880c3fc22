//! Functions on paths beneath an open folder. Every path goes through the files of the call.

use wasmtime_wasi::filesystem::Descriptor as Handle;
use wasmtime_wasi::p1::types::{Fd, Fdflags, Fstflags, Lookupflags, Oflags, Rights, Size, Timestamp};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, HostDescriptor, OpenFlags};
use wiggle::{GuestMemory, GuestPtr};

use crate::sandbox::wasi::descriptor_table::{Descriptor, Folder, OpenFile};
use crate::sandbox::wasi::state::WasiState;

use super::descriptors::folder;
use super::memory::{Result, put};
use super::stat::{follow, times};

/// Mode in which a program opens a file or folder.
pub(super) struct Opening {
    pub(super) lookup: Lookupflags,
    pub(super) oflags: Oflags,
    pub(super) rights: Rights,
    pub(super) fdflags: Fdflags,
}

impl Opening {
    fn open(&self) -> OpenFlags {
        [
            (Oflags::CREAT, OpenFlags::CREATE),
            (Oflags::DIRECTORY, OpenFlags::DIRECTORY),
            (Oflags::EXCL, OpenFlags::EXCLUSIVE),
            (Oflags::TRUNC, OpenFlags::TRUNCATE),
        ]
        .into_iter()
        .filter(|(source, _)| self.oflags.contains(*source))
        .fold(OpenFlags::empty(), |flags, (_, flag)| flags | flag)
    }

    fn descriptor(&self) -> DescriptorFlags {
        [
            (self.rights.contains(Rights::FD_READ), DescriptorFlags::READ),
            (self.rights.contains(Rights::FD_WRITE), DescriptorFlags::WRITE),
            (self.fdflags.contains(Fdflags::SYNC), DescriptorFlags::FILE_INTEGRITY_SYNC),
            (self.fdflags.contains(Fdflags::DSYNC), DescriptorFlags::DATA_INTEGRITY_SYNC),
            (self.fdflags.contains(Fdflags::RSYNC), DescriptorFlags::REQUESTED_WRITE_SYNC),
        ]
        .into_iter()
        .filter(|(source, _)| *source)
        .fold(DescriptorFlags::empty(), |flags, (_, flag)| flags | flag)
    }
}

/// Opens a regular file or a folder.
pub(super) async fn open(state: &mut WasiState, fd: Fd, path: String, opening: Opening) -> Result<Fd> {
    let folder = folder(state, fd)?;
    let (open, flags) = (opening.open(), opening.descriptor());
    let file = state.files().open_at(folder, follow(opening.lookup), path, open, flags).await?;
    let descriptor = match state.table.get(&file)? {
        Handle::Dir(_) => Descriptor::Folder(Folder { file, granted_as: None, listing: None }),
        Handle::File(_) => Descriptor::File(OpenFile {
            file,
            position: 0,
            append: opening.fdflags.contains(Fdflags::APPEND),
            nonblock: opening.fdflags.contains(Fdflags::NONBLOCK),
        }),
    };
    Ok(state.preview1.descriptors.insert(descriptor))
}

/// Writes the target of a link, cut to the buffer.
pub(super) async fn read_link(
    state: &mut WasiState,
    memory: &mut GuestMemory<'_>,
    fd: Fd,
    path: String,
    (at, room): (GuestPtr<u8>, Size),
) -> Result<Size> {
    let folder = folder(state, fd)?;
    let target = state.files().readlink_at(folder, path).await?;
    let fits = target.len().min(room as usize);
    put(memory, at, &target.as_bytes()[..fits])?;
    Ok(Size::try_from(fits)?)
}

/// Sets the times of a file by its path.
pub(super) async fn set_times(
    state: &mut WasiState,
    fd: Fd,
    lookup: Lookupflags,
    path: String,
    (accessed, changed, flags): (Timestamp, Timestamp, Fstflags),
) -> Result<()> {
    let (accessed, changed) = times(accessed, changed, flags)?;
    let folder = folder(state, fd)?;
    Ok(state.files().set_times_at(folder, follow(lookup), path, accessed, changed).await?)
}

/// Creates another name for a file. The link itself is never followed.
pub(super) async fn link(
    state: &mut WasiState,
    (from, lookup, old): (Fd, Lookupflags, String),
    (to, new): (Fd, String),
) -> Result<()> {
    let (from, to) = (folder(state, from)?, folder(state, to)?);
    Ok(state.files().link_at(from, follow(lookup), old, to, new).await?)
}

/// Renames a file or folder.
pub(super) async fn rename(state: &mut WasiState, (from, old): (Fd, String), (to, new): (Fd, String)) -> Result<()> {
    let (from, to) = (folder(state, from)?, folder(state, to)?);
    Ok(state.files().rename_at(from, old, to, new).await?)
}
