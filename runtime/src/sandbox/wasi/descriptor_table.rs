//! Descriptor table of a program for preview 1. It maps the program's numbers to entries of the store's own table, which
//! counts them against the handle limit of the call.

use std::collections::BTreeMap;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem;
use wasmtime_wasi::p1::types::{Dircookie, Errno, Error, Fd, Filetype};
use wasmtime_wasi::p2::bindings::filesystem::types::DirectoryEntryStream;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

type Result<T, E = Error> = std::result::Result<T, E>;

/// State of preview 1 in a store.
#[derive(Default)]
pub(in crate::sandbox) struct Preview1State {
    pub(super) descriptors: Descriptors,
    /// Maximum number of bytes that one host call copies.
    pub(super) host_call: usize,
}

/// Descriptors of a program by number.
#[derive(Default)]
pub(super) struct Descriptors {
    pub(super) open: BTreeMap<u32, Descriptor>,
}

pub(super) enum Descriptor {
    Input(Resource<DynInputStream>),
    Output(Resource<DynOutputStream>),
    Folder(Folder),
    File(OpenFile),
}

/// Open folder.
pub(super) struct Folder {
    pub(super) file: Resource<filesystem::Descriptor>,
    /// Guest path of a granted folder.
    pub(super) granted_as: Option<String>,
    pub(super) listing: Option<Listing>,
}

/// Open file.
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

    /// Borrows the handle of an open folder.
    pub(super) fn folder(&self, fd: Fd) -> Result<Resource<filesystem::Descriptor>> {
        match self.get(fd)? {
            Descriptor::Folder(folder) => Ok(borrow(&folder.file)),
            Descriptor::File(_) => Err(Errno::Notdir.into()),
            _ => Err(Errno::Badf.into()),
        }
    }

    /// Returns the open file of a number that has a position.
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

    /// Borrows the handle of an open file or folder.
    pub(super) fn any(&self, fd: Fd) -> Result<Resource<filesystem::Descriptor>> {
        match self.get(fd)? {
            Descriptor::Folder(Folder { file, .. }) | Descriptor::File(OpenFile { file, .. }) => Ok(borrow(file)),
            _ => Err(Errno::Badf.into()),
        }
    }

    /// Returns every open folder.
    pub(super) fn folders_mut(&mut self) -> impl Iterator<Item = &mut Folder> {
        self.open.values_mut().filter_map(|descriptor| match descriptor {
            Descriptor::Folder(folder) => Some(folder),
            _ => None,
        })
    }

    pub(super) fn has_folders(&self) -> bool {
        self.open.values().any(|descriptor| matches!(descriptor, Descriptor::Folder(_)))
    }

    /// Inserts a descriptor under the lowest free number.
    pub(super) fn insert(&mut self, descriptor: Descriptor) -> Fd {
        let taken = (0_u32..).zip(self.open.keys()).take_while(|(number, taken)| number == *taken).count();
        // The store's table is full long before the numbers are.
        let fd = u32::try_from(taken).unwrap_or(u32::MAX);
        self.open.insert(fd, descriptor);
        fd.into()
    }
}

/// Borrows a handle.
pub(super) fn borrow<T: 'static>(handle: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(handle.rep())
}

/// Listing in progress.
pub(super) struct Listing {
    pub(super) stream: Resource<DirectoryEntryStream>,
    /// Number of the entry that is read next.
    pub(super) next: Dircookie,
    /// Entry that was read last and did not fit.
    pub(super) left: Option<ListedEntry>,
}

/// Entry of a folder.
#[derive(Clone)]
pub(super) struct ListedEntry {
    pub(super) number: Dircookie,
    pub(super) name: String,
    pub(super) kind: Filetype,
}
