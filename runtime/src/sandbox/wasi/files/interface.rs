//! `wasi:filesystem` of a call: denials are recorded, writes and new entries are counted, and only regular files and folders
//! are opened.

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode,
    Filesize, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use crate::sandbox::causes::WriteRefused;
use crate::tool::Access;

use super::change::Change;
use super::quota;
use super::request::OpenRequest;
use super::single::unfollowed;
use super::staged::{hash_of, is_same, stat_of};
use super::state::Files;

/// Maximum number of folders that one call lists at the same time.
const MAX_LISTINGS: usize = 16;

impl preopens::Host for Files<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let folders = self.granted()?;
        if folders.is_empty() {
            self.state.quota.usage.record_missing_folders();
        }
        Ok(folders)
    }
}

impl types::Host for Files<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        types::Host::convert_error_code(&mut self.inner, error)
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        if let Some(refused) = self.inner.table.get(&error)?.downcast_ref::<WriteRefused>() {
            return Ok(Some(refused.code()));
        }
        types::Host::filesystem_error_code(&mut self.inner, error)
    }
}

impl HostDirectoryEntryStream for Files<'_> {
    async fn read_directory_entry(&mut self, it: Resource<DirectoryEntryStream>) -> FsResult<Option<DirectoryEntry>> {
        self.next(&it).await
    }

    fn drop(&mut self, it: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.state.listings = self.state.listings.saturating_sub(1);
        self.unlist(&it)
    }
}

impl HostDescriptor for Files<'_> {
    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let request = OpenRequest { path: path.clone(), link: path_flags, open, flags };
        let access = if request.changes() { Access::Write } else { Access::Read };
        let opened = self.open_granted(&fd, request).await;
        self.record(access, &path, opened)
    }

    async fn stat_at(&mut self, fd: Resource<Descriptor>, flags: PathFlags, path: String) -> FsResult<DescriptorStat> {
        let stat = match self.admit_read(&fd, &path) {
            Ok(is_single) => self.stat_named(fd, unfollowed(flags, is_single), path.clone()).await,
            Err(refused) => Err(refused),
        };
        self.record(Access::Read, &path, stat)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        let target = match self.admit_read(&fd, &path) {
            Ok(_) => {
                self.note_listing(&fd).await;
                match self.staged(&fd) {
                    Some(folder) => self.read_link_staged(folder, path.clone()).await,
                    None => self.inner.readlink_at(fd, path.clone()).await,
                }
            }
            Err(refused) => Err(refused),
        };
        self.record(Access::Read, &path, target)
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let hash = match self.admit_read(&fd, &path) {
            Ok(is_single) => self.hash_named(fd, unfollowed(flags, is_single), path.clone()).await,
            Err(refused) => Err(refused),
        };
        self.record(Access::Read, &path, hash)
    }

    async fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.state.quota.entry()?;
        let created = self.change(&fd, &path, Change::MakeFolder).await;
        let created = self.uncount_failed(created);
        self.record(Access::Write, &path, created)
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let set = self.set_times_named(fd, flags, &path, accessed, modified).await;
        self.record(Access::Write, &path, set)
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        from: String,
        folder: Resource<Descriptor>,
        to: String,
    ) -> FsResult<()> {
        self.state.quota.entry()?;
        let linked = self.change_into(&fd, &from, flags, &folder, Change::Name, &to).await;
        let linked = self.uncount_failed(linked);
        self.record_either(&fd, (&from, &to), linked).await
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        from: String,
        folder: Resource<Descriptor>,
        to: String,
    ) -> FsResult<()> {
        let renamed = self.change_into(&fd, &from, PathFlags::empty(), &folder, Change::Move, &to).await;
        self.record_either(&fd, (&from, &to), renamed).await
    }

    async fn symlink_at(&mut self, fd: Resource<Descriptor>, target: String, path: String) -> FsResult<()> {
        self.state.quota.bytes(target.len() as u64)?;
        self.state.quota.entry()?;
        let linked = self.change(&fd, &path, Change::Link(target)).await;
        let linked = self.uncount_failed(linked);
        self.record(Access::Write, &path, linked)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let removed = self.change(&fd, &path, Change::RemoveFile).await;
        self.record(Access::Write, &path, removed)
    }

    async fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let removed = self.change(&fd, &path, Change::RemoveFolder).await;
        self.record(Access::Write, &path, removed)
    }

    // The following functions use open descriptors: they are the engine's own, with writes counted.

    async fn advise(&mut self, fd: Resource<Descriptor>, at: Filesize, len: Filesize, advice: Advice) -> FsResult<()> {
        self.inner.advise(fd, at, len, advice).await
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.inner.sync_data(fd).await
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.inner.sync(fd).await
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        self.inner.get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        self.inner.get_type(fd).await
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        if let Some(file) = self.writable(&fd)? {
            self.state.quota.bytes(quota::hole(&file.file, size))?;
        }
        self.inner.set_size(fd, size).await
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.set_times_open(fd, accessed, modified).await
    }

    async fn read(&mut self, fd: Resource<Descriptor>, len: Filesize, at: Filesize) -> FsResult<(Vec<u8>, bool)> {
        self.inner.read(fd, len, at).await
    }

    async fn write(&mut self, fd: Resource<Descriptor>, bytes: Vec<u8>, at: Filesize) -> FsResult<Filesize> {
        if let (false, Some(file)) = (bytes.is_empty(), self.writable(&fd)?) {
            let hole = quota::hole(&file.file, at);
            self.state.quota.bytes(hole.saturating_add(bytes.len() as u64))?;
        }
        self.inner.write(fd, bytes, at).await
    }

    async fn read_directory(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        if self.state.listings >= MAX_LISTINGS {
            return Err(ErrorCode::InsufficientMemory.into());
        }
        let listing = self.list(&fd).await?;
        self.note_listing(&fd).await;
        self.state.listings += 1;
        Ok(listing)
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        match self.staged(&fd) {
            Some(folder) => Ok(stat_of(&self.own_stat_staged(folder).await?)),
            None => self.inner.stat(fd).await,
        }
    }

    async fn is_same_object(&mut self, a: Resource<Descriptor>, b: Resource<Descriptor>) -> wasmtime::Result<bool> {
        match (self.staged(&a), self.staged(&b)) {
            (Some(one), Some(other)) => Ok(is_same(&one, &other)),
            _ => self.inner.is_same_object(a, b).await,
        }
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        match self.staged(&fd) {
            Some(folder) => Ok(hash_of(&self.own_stat_staged(folder).await?)),
            None => self.inner.metadata_hash(fd).await,
        }
    }

    fn read_via_stream(&mut self, fd: Resource<Descriptor>, at: Filesize) -> FsResult<Resource<DynInputStream>> {
        self.inner.read_via_stream(fd, at)
    }

    fn write_via_stream(&mut self, fd: Resource<Descriptor>, at: Filesize) -> FsResult<Resource<DynOutputStream>> {
        let file = self.writable(&fd)?.map(|file| file.file.clone());
        let stream = self.inner.write_via_stream(fd, at)?;
        self.count(stream, file.map(|file| (file, at)))
    }

    fn append_via_stream(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.inner.append_via_stream(fd)?;
        self.count(stream, None)
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        self.state.single.remove(&fd.rep());
        self.forget_staged(&fd);
        HostDescriptor::drop(&mut self.inner, fd)
    }
}
