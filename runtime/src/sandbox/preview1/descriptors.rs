//! The descriptor table of one program: preview 1's numbers for what lies in the store's own table, which counts it
//! against the handles of the call.

use std::collections::BTreeMap;

use wasmtime::component::Resource;
use wasmtime_wasi::cli::WasiCliView;
use wasmtime_wasi::filesystem;
use wasmtime_wasi::p1::types::{Errno, Error, Fd, Prestat, PrestatDir, Size};
use wasmtime_wasi::p2::bindings::cli::{stderr, stdin, stdout};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::HostDescriptor;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};
use wiggle::{GuestMemory, GuestPtr};

use super::listing::{self, Listing};
use super::{Result, put};
use crate::sandbox::host::Host;

/// The descriptors of a program by their numbers.
#[derive(Default)]
pub(in crate::sandbox) struct Descriptors {
    open: BTreeMap<u32, Descriptor>,
}

pub(super) enum Descriptor {
    Input(Resource<DynInputStream>),
    Output(Resource<DynOutputStream>),
    Folder(Folder),
    File(OpenFile),
}

/// An open folder.
pub(super) struct Folder {
    pub(super) file: Resource<filesystem::Descriptor>,
    /// The name under which it was granted, of a folder that was.
    pub(super) granted_as: Option<String>,
    pub(super) listing: Option<Listing>,
}

/// An open file.
pub(super) struct OpenFile {
    pub(super) file: Resource<filesystem::Descriptor>,
    pub(super) position: u64,
    pub(super) append: bool,
    pub(super) nonblock: bool,
}

impl Descriptors {
    pub(super) fn get(&self, fd: Fd) -> Result<&Descriptor> {
        Ok(self.open.get(&fd.into()).ok_or(Errno::Badf)?)
    }

    pub(super) fn get_mut(&mut self, fd: Fd) -> Result<&mut Descriptor> {
        Ok(self.open.get_mut(&fd.into()).ok_or(Errno::Badf)?)
    }

    /// The handle of an open folder, lent.
    pub(super) fn folder(&self, fd: Fd) -> Result<Resource<filesystem::Descriptor>> {
        match self.get(fd)? {
            Descriptor::Folder(folder) => Ok(lent(&folder.file)),
            Descriptor::File(_) => Err(Errno::Notdir.into()),
            _ => Err(Errno::Badf.into()),
        }
    }

    /// The open file of a number that has a position.
    pub(super) fn file(&self, fd: Fd) -> Result<&OpenFile> {
        match self.get(fd)? {
            Descriptor::File(file) => Ok(file),
            Descriptor::Folder(_) => Err(Errno::Badf.into()),
            _ => Err(Errno::Spipe.into()),
        }
    }

    pub(super) fn file_mut(&mut self, fd: Fd) -> Result<&mut OpenFile> {
        match self.get_mut(fd)? {
            Descriptor::File(file) => Ok(file),
            Descriptor::Folder(_) => Err(Errno::Badf.into()),
            _ => Err(Errno::Spipe.into()),
        }
    }

    /// The handle of an open file or folder, lent.
    pub(super) fn any(&self, fd: Fd) -> Result<Resource<filesystem::Descriptor>> {
        match self.get(fd)? {
            Descriptor::Folder(Folder { file, .. }) | Descriptor::File(OpenFile { file, .. }) => Ok(lent(file)),
            _ => Err(Errno::Badf.into()),
        }
    }

    /// Every open folder.
    pub(super) fn folders_mut(&mut self) -> impl Iterator<Item = &mut Folder> {
        self.open.values_mut().filter_map(|descriptor| match descriptor {
            Descriptor::Folder(folder) => Some(folder),
            _ => None,
        })
    }

    pub(super) fn has_folders(&self) -> bool {
        self.open.values().any(|descriptor| matches!(descriptor, Descriptor::Folder(_)))
    }

    /// Gives a descriptor the lowest number that is free.
    pub(super) fn insert(&mut self, descriptor: Descriptor) -> Fd {
        let taken = (0_u32..).zip(self.open.keys()).take_while(|(number, taken)| number == *taken).count();
        // The store's table is full long before the numbers are.
        let fd = u32::try_from(taken).unwrap_or(u32::MAX);
        self.open.insert(fd, descriptor);
        fd.into()
    }
}

/// The same handle without its ownership.
pub(super) fn lent<T: 'static>(handle: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(handle.rep())
}

/// Opens the standard streams and the granted folders, under the numbers at which programs look for them.
pub(super) fn open_standard(host: &mut Host) -> wasmtime::Result<()> {
    let input = stdin::Host::get_stdin(&mut host.cli())?;
    let output = stdout::Host::get_stdout(&mut host.cli())?;
    let error = stderr::Host::get_stderr(&mut host.cli())?;
    let folders = preopens::Host::get_directories(&mut host.files().inner)?;
    let descriptors = &mut host.preview1.descriptors;
    descriptors.insert(Descriptor::Input(input));
    descriptors.insert(Descriptor::Output(output));
    descriptors.insert(Descriptor::Output(error));
    for (file, name) in folders {
        descriptors.insert(Descriptor::Folder(Folder { file, granted_as: Some(name), listing: None }));
    }
    Ok(())
}

/// Closes what a number stands for.
pub(super) fn close(host: &mut Host, fd: Fd) -> Result<()> {
    let descriptor = host.preview1.descriptors.open.remove(&fd.into()).ok_or(Errno::Badf)?;
    match descriptor {
        Descriptor::Input(stream) => drop(host.table.delete(stream)?),
        Descriptor::Output(stream) => drop(host.table.delete(stream)?),
        Descriptor::File(OpenFile { file, .. }) => {
            HostDescriptor::drop(&mut host.files(), file).map_err(Error::trap)?
        }
        Descriptor::Folder(Folder { file, listing, .. }) => {
            if let Some(listing) = listing {
                listing::end(host, listing)?;
            }
            HostDescriptor::drop(&mut host.files(), file).map_err(Error::trap)?;
        }
    }
    Ok(())
}

/// Moves a descriptor to a number that is taken, closing what is there.
pub(super) fn renumber(host: &mut Host, from: Fd, to: Fd) -> Result<()> {
    host.preview1.descriptors.get(from)?;
    host.preview1.descriptors.get(to)?;
    let (from, to) = (u32::from(from), u32::from(to));
    if from == to {
        return Ok(());
    }
    close(host, to.into())?;
    let open = &mut host.preview1.descriptors.open;
    let moved = open.remove(&from).ok_or(Errno::Badf)?;
    open.insert(to, moved);
    Ok(())
}

/// Describes a granted folder. A program asks for one after the other until there is none.
pub(super) fn granted(host: &Host, fd: Fd) -> Result<Prestat> {
    match host.preview1.descriptors.get(fd) {
        Ok(Descriptor::Folder(Folder { granted_as: Some(name), .. })) => {
            Ok(Prestat::Dir(PrestatDir { pr_name_len: Size::try_from(name.len())? }))
        }
        _ => {
            if !host.preview1.descriptors.has_folders() {
                host.memory.usage.without_folders();
            }
            Err(Errno::Badf.into())
        }
    }
}

/// Writes the name under which a folder was granted.
pub(super) fn granted_name(
    host: &Host,
    memory: &mut GuestMemory<'_>,
    fd: Fd,
    at: GuestPtr<u8>,
    room: Size,
) -> Result<()> {
    match host.preview1.descriptors.get(fd)? {
        Descriptor::Folder(Folder { granted_as: Some(name), .. }) if name.len() as u64 <= room.into() => {
            put(memory, at, name.as_bytes())
        }
        Descriptor::Folder(Folder { granted_as: Some(_), .. }) => Err(Errno::Nametoolong.into()),
        _ => Err(Errno::Badf.into()),
    }
}
