//! Listing of a folder by the engine, on systems without another way to list handles: it holds the whole listing.

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DirectoryEntry, DirectoryEntryStream, HostDescriptor, HostDirectoryEntryStream,
};

use super::state::Files;

impl Files<'_> {
    /// Starts a listing of a folder.
    pub(super) async fn list(&mut self, fd: &Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        self.inner.read_directory(Resource::new_borrow(fd.rep())).await
    }

    /// Returns the next entry; `None` at the end.
    pub(super) async fn next(&mut self, it: &Resource<DirectoryEntryStream>) -> FsResult<Option<DirectoryEntry>> {
        self.inner.read_directory_entry(Resource::new_borrow(it.rep())).await
    }

    /// Ends a listing.
    pub(super) fn unlist(&mut self, it: &Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        HostDirectoryEntryStream::drop(&mut self.inner, Resource::new_own(it.rep()))
    }
}
