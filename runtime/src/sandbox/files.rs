//! The gate before the engine's own file system: the engine keeps a guest inside its folders, and the gate notes what
//! that refused and lets nothing but regular files and folders be opened, for a FIFO or a device can block the host or
//! be more than a file.

use std::sync::Arc;

use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode,
    Filesize, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use crate::tool::Access;

use super::meter::Meter;

/// The most folders that one call lists at once: the engine keeps a whole listing in the host's memory.
const MOST_LISTINGS: usize = 16;

/// The files of one call.
pub(super) struct Files<'a> {
    pub(super) inner: WasiFilesystemCtxView<'a>,
    pub(super) meter: Arc<Meter>,
    pub(super) listings: &'a mut usize,
}

pub(super) struct GatedFiles;

impl HasData for GatedFiles {
    type Data<'a> = Files<'a>;
}

impl Files<'_> {
    /// Passes a result on and notes a refusal.
    fn note<T>(&self, access: Access, path: &str, result: FsResult<T>) -> FsResult<T> {
        if let Err(error) = &result
            && matches!(error.downcast_ref(), Some(ErrorCode::NotPermitted))
        {
            self.meter.denied(access, path);
        }
        result
    }

    /// Refuses what is neither a regular file nor a folder. What is not there yet may be created.
    async fn refuse_special(&mut self, folder: u32, flags: PathFlags, path: &str) -> FsResult<()> {
        let found = self.inner.stat_at(Resource::new_borrow(folder), flags, path.to_owned()).await;
        match found {
            Ok(stat) => match stat.type_ {
                DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink => Ok(()),
                _ => Err(ErrorCode::NotPermitted.into()),
            },
            Err(error) if matches!(error.downcast_ref(), Some(ErrorCode::NoEntry)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl preopens::Host for Files<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        preopens::Host::get_directories(&mut self.inner)
    }
}

impl types::Host for Files<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        types::Host::convert_error_code(&mut self.inner, error)
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        types::Host::filesystem_error_code(&mut self.inner, error)
    }
}

impl HostDirectoryEntryStream for Files<'_> {
    async fn read_directory_entry(&mut self, it: Resource<DirectoryEntryStream>) -> FsResult<Option<DirectoryEntry>> {
        self.inner.read_directory_entry(it).await
    }

    fn drop(&mut self, it: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        *self.listings = self.listings.saturating_sub(1);
        HostDirectoryEntryStream::drop(&mut self.inner, it)
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
        let changes = open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE)
            || flags.intersects(DescriptorFlags::WRITE | DescriptorFlags::MUTATE_DIRECTORY);
        let access = if changes { Access::Write } else { Access::Read };
        let special = match open.contains(OpenFlags::DIRECTORY) {
            true => Ok(()),
            false => self.refuse_special(fd.rep(), path_flags, &path).await,
        };
        let opened = match special {
            Ok(()) => self.inner.open_at(fd, path_flags, path.clone(), open, flags).await,
            Err(refused) => Err(refused),
        };
        self.note(access, &path, opened)
    }

    async fn stat_at(&mut self, fd: Resource<Descriptor>, flags: PathFlags, path: String) -> FsResult<DescriptorStat> {
        let stat = self.inner.stat_at(fd, flags, path.clone()).await;
        self.note(Access::Read, &path, stat)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        let target = self.inner.readlink_at(fd, path.clone()).await;
        self.note(Access::Read, &path, target)
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let hash = self.inner.metadata_hash_at(fd, flags, path.clone()).await;
        self.note(Access::Read, &path, hash)
    }

    async fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let made = self.inner.create_directory_at(fd, path.clone()).await;
        self.note(Access::Write, &path, made)
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let set = self.inner.set_times_at(fd, flags, path.clone(), accessed, modified).await;
        self.note(Access::Write, &path, set)
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        from: String,
        folder: Resource<Descriptor>,
        to: String,
    ) -> FsResult<()> {
        let linked = self.inner.link_at(fd, flags, from, folder, to.clone()).await;
        self.note(Access::Write, &to, linked)
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        from: String,
        folder: Resource<Descriptor>,
        to: String,
    ) -> FsResult<()> {
        let renamed = self.inner.rename_at(fd, from, folder, to.clone()).await;
        self.note(Access::Write, &to, renamed)
    }

    async fn symlink_at(&mut self, fd: Resource<Descriptor>, target: String, path: String) -> FsResult<()> {
        let linked = self.inner.symlink_at(fd, target, path.clone()).await;
        self.note(Access::Write, &path, linked)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let removed = self.inner.unlink_file_at(fd, path.clone()).await;
        self.note(Access::Write, &path, removed)
    }

    async fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let removed = self.inner.remove_directory_at(fd, path.clone()).await;
        self.note(Access::Write, &path, removed)
    }

    // What follows works on what is open already, and is the engine's own.

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
        self.inner.set_size(fd, size).await
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.inner.set_times(fd, accessed, modified).await
    }

    async fn read(&mut self, fd: Resource<Descriptor>, len: Filesize, at: Filesize) -> FsResult<(Vec<u8>, bool)> {
        self.inner.read(fd, len, at).await
    }

    async fn write(&mut self, fd: Resource<Descriptor>, bytes: Vec<u8>, at: Filesize) -> FsResult<Filesize> {
        self.inner.write(fd, bytes, at).await
    }

    async fn read_directory(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        if *self.listings >= MOST_LISTINGS {
            return Err(ErrorCode::InsufficientMemory.into());
        }
        let listing = self.inner.read_directory(fd).await?;
        *self.listings += 1;
        Ok(listing)
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        self.inner.stat(fd).await
    }

    async fn is_same_object(&mut self, a: Resource<Descriptor>, b: Resource<Descriptor>) -> wasmtime::Result<bool> {
        self.inner.is_same_object(a, b).await
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        self.inner.metadata_hash(fd).await
    }

    fn read_via_stream(&mut self, fd: Resource<Descriptor>, at: Filesize) -> FsResult<Resource<DynInputStream>> {
        self.inner.read_via_stream(fd, at)
    }

    fn write_via_stream(&mut self, fd: Resource<Descriptor>, at: Filesize) -> FsResult<Resource<DynOutputStream>> {
        self.inner.write_via_stream(fd, at)
    }

    fn append_via_stream(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DynOutputStream>> {
        self.inner.append_via_stream(fd)
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        HostDescriptor::drop(&mut self.inner, fd)
    }
}
