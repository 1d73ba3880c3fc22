//! Opening, moving and closing of descriptors.

use wasmtime::component::Resource;
use wasmtime_wasi::cli::WasiCliView;
use wasmtime_wasi::filesystem;
use wasmtime_wasi::p1::types::{Errno, Error, Fd, Prestat, PrestatDir, Size};
use wasmtime_wasi::p2::bindings::cli::{stderr, stdin, stdout};
use wasmtime_wasi::p2::bindings::filesystem::types::{HostDescriptor, HostDirectoryEntryStream};
use wiggle::{GuestMemory, GuestPtr};

use crate::sandbox::wasi::descriptor_table::{Descriptor, Folder, Listing, OpenFile};
use crate::sandbox::wasi::state::WasiState;

use super::memory::{Result, put};

/// Returns the open folder of a number. A program without any folder is recorded.
pub(super) fn folder(state: &WasiState, fd: Fd) -> Result<Resource<filesystem::Descriptor>> {
    let descriptors = &state.preview1.descriptors;
    descriptors.folder(fd).inspect_err(|_| {
        if !descriptors.has_folders() {
            state.usage().record_missing_folders();
        }
    })
}

/// Opens the standard streams and the granted folders, under the numbers at which programs expect them.
pub(super) fn open_standard(state: &mut WasiState) -> wasmtime::Result<()> {
    let input = stdin::Host::get_stdin(&mut state.cli())?;
    let output = stdout::Host::get_stdout(&mut state.cli())?;
    let error = stderr::Host::get_stderr(&mut state.cli())?;
    let folders = state.files().granted()?;
    let descriptors = &mut state.preview1.descriptors;
    descriptors.insert(Descriptor::Input(input));
    descriptors.insert(Descriptor::Output(output));
    descriptors.insert(Descriptor::Output(error));
    for (file, name) in folders {
        descriptors.insert(Descriptor::Folder(Folder { file, granted_as: Some(name), listing: None }));
    }
    Ok(())
}

/// Closes a descriptor.
pub(super) fn close(state: &mut WasiState, fd: Fd) -> Result<()> {
    let descriptor = state.preview1.descriptors.open.remove(&fd.into()).ok_or(Errno::Badf)?;
    match descriptor {
        Descriptor::Input(stream) => drop(state.table.delete(stream)?),
        Descriptor::Output(stream) => drop(state.table.delete(stream)?),
        Descriptor::File(OpenFile { file, .. }) => {
            HostDescriptor::drop(&mut state.files(), file).map_err(Error::trap)?
        }
        Descriptor::Folder(Folder { file, listing, .. }) => {
            if let Some(listing) = listing {
                end_listing(state, listing)?;
            }
            HostDescriptor::drop(&mut state.files(), file).map_err(Error::trap)?;
        }
    }
    Ok(())
}

/// Ends a listing.
pub(super) fn end_listing(state: &mut WasiState, listing: Listing) -> Result<()> {
    HostDirectoryEntryStream::drop(&mut state.files(), listing.stream).map_err(Error::trap)
}

/// Moves a descriptor to a number in use, and closes the descriptor there.
pub(super) fn renumber(state: &mut WasiState, from: Fd, to: Fd) -> Result<()> {
    state.preview1.descriptors.get(from)?;
    state.preview1.descriptors.get(to)?;
    let (from, to) = (u32::from(from), u32::from(to));
    if from == to {
        return Ok(());
    }
    close(state, to.into())?;
    let open = &mut state.preview1.descriptors.open;
    let moved = open.remove(&from).ok_or(Errno::Badf)?;
    open.insert(to, moved);
    Ok(())
}

/// Describes a granted folder. A program queries one number after the other until there is no folder.
pub(super) fn granted(state: &WasiState, fd: Fd) -> Result<Prestat> {
    match state.preview1.descriptors.get(fd) {
        Ok(Descriptor::Folder(Folder { granted_as: Some(name), .. })) => {
            Ok(Prestat::Dir(PrestatDir { pr_name_len: Size::try_from(name.len())? }))
        }
        _ => {
            if !state.preview1.descriptors.has_folders() {
                state.usage().record_missing_folders();
            }
            Err(Errno::Badf.into())
        }
    }
}

/// Writes the guest path of a granted folder.
pub(super) fn granted_name(
    state: &WasiState,
    memory: &mut GuestMemory<'_>,
    fd: Fd,
    at: GuestPtr<u8>,
    room: Size,
) -> Result<()> {
    match state.preview1.descriptors.get(fd)? {
        Descriptor::Folder(Folder { granted_as: Some(name), .. }) if name.len() as u64 <= room.into() => {
            put(memory, at, name.as_bytes())
        }
        Descriptor::Folder(Folder { granted_as: Some(_), .. }) => Err(Errno::Nametoolong.into()),
        _ => Err(Errno::Badf.into()),
    }
}
