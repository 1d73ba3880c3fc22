//! The gate before the engine's own file system: the engine keeps a guest inside its folders, and the gate notes what
//! that refused, counts what is written and made, and opens nothing but regular files and folders.

mod beneath;
mod change;
#[cfg(target_os = "linux")]
mod entry;
mod held;
#[cfg(unix)]
mod listing;
#[cfg(not(unix))]
#[path = "files/listing_whole.rs"]
mod listing;
#[cfg(target_os = "linux")]
mod moved;
mod open;
mod quota;

use std::sync::Arc;

use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode,
    Filesize, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use crate::tool::{Access, Limits};

use super::trap::deadline;
use super::usage::Usage;

pub(super) use change::Fence;
pub(super) use held::{OpenFiles, Places};
pub(super) use quota::OverQuota;

use change::Change;
use held::Held;
use open::Asked;
use quota::{Counted, Quota};

/// The most folders that one call lists at once.
const MAX_LISTINGS: usize = 16;

/// What one call may still do with files.
pub(super) struct Allowance {
    quota: Quota,
    held: Held,
    /// Folder listings that are open.
    listings: usize,
    fence: Fence,
}

impl Allowance {
    pub(super) fn new(limits: &Limits, usage: &Arc<Usage>, all: &Arc<OpenFiles>, fence: Fence) -> Self {
        let fence = Fence { until: Some(deadline(limits)), ..fence };
        Self { quota: Quota::new(limits, usage), held: Held::new(all), listings: 0, fence }
    }
}

/// The files of one call.
pub(super) struct Files<'a> {
    pub(super) inner: WasiFilesystemCtxView<'a>,
    pub(super) allowance: &'a mut Allowance,
}

pub(super) struct GatedFiles;

impl HasData for GatedFiles {
    type Data<'a> = Files<'a>;
}

fn same(fd: &Resource<Descriptor>) -> Resource<Descriptor> {
    Resource::new_borrow(fd.rep())
}

impl Files<'_> {
    /// Passes a result on and notes a refusal.
    fn note<T>(&self, access: Access, path: &str, result: FsResult<T>) -> FsResult<T> {
        if let Err(error) = &result
            && matches!(error.downcast_ref(), Some(ErrorCode::NotPermitted))
        {
            self.allowance.quota.usage.denied(access, path);
        }
        result
    }

    fn folder(&self, fd: &Resource<Descriptor>) -> FsResult<&Dir> {
        match self.inner.table.get(fd)? {
            Descriptor::Dir(folder) => Ok(folder),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    /// The file that a guest may write by this handle; `None` is refused by the engine, in its own words.
    fn writable(&self, fd: &Resource<Descriptor>) -> FsResult<Option<&File>> {
        match self.inner.table.get(fd)? {
            Descriptor::File(file) if !file.perms.write_not_permitted() => Ok(Some(file)),
            _ => Ok(None),
        }
    }

    /// What failed has made no entry, though it was counted.
    fn made(&self, result: FsResult<()>) -> FsResult<()> {
        result.inspect_err(|_| self.allowance.quota.no_entry())
    }

    /// Counts what is written to a stream of the engine.
    fn count(
        &mut self,
        stream: Resource<DynOutputStream>,
        start: Option<(Arc<std::fs::File>, Filesize)>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let inner = self.inner.table.delete(stream)?;
        let counted: DynOutputStream = Box::new(Counted::new(inner, self.allowance.quota.clone(), start));
        Ok(self.inner.table.push(counted)?)
    }
}

impl preopens::Host for Files<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let folders = preopens::Host::get_directories(&mut self.inner)?;
        if folders.is_empty() {
            self.allowance.quota.usage.without_folders();
        }
        Ok(folders)
    }
}

impl types::Host for Files<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        types::Host::convert_error_code(&mut self.inner, error)
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        if self.inner.table.get(&error)?.is::<OverQuota>() {
            return Ok(Some(ErrorCode::Quota));
        }
        types::Host::filesystem_error_code(&mut self.inner, error)
    }
}

impl HostDirectoryEntryStream for Files<'_> {
    async fn read_directory_entry(&mut self, it: Resource<DirectoryEntryStream>) -> FsResult<Option<DirectoryEntry>> {
        self.next(&it).await
    }

    fn drop(&mut self, it: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.allowance.listings = self.allowance.listings.saturating_sub(1);
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
        let asked = Asked { path: path.clone(), link: path_flags, open, flags };
        let access = if asked.changes() { Access::Write } else { Access::Read };
        let opened = self.open(&fd, asked).await;
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
        self.allowance.quota.entry()?;
        let made = match self.change(&fd, &path, Change::MakeFolder).await {
            Ok(None) => self.inner.create_directory_at(fd, path.clone()).await,
            done => done.map(drop),
        };
        let made = self.made(made);
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
        // The engine opens what a link leads to, be it a FIFO.
        let set = match flags.contains(PathFlags::SYMLINK_FOLLOW) {
            true => self.set_times_of(&fd, &path, accessed, modified).await,
            false => self.inner.set_times_at(fd, flags, path.clone(), accessed, modified).await,
        };
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
        self.allowance.quota.entry()?;
        let linked = match self.change_into(&fd, &from, flags, &folder, Change::Name, &to).await {
            Ok(None) => self.inner.link_at(same(&fd), flags, from.clone(), folder, to.clone()).await,
            done => done.map(drop),
        };
        let linked = self.made(linked);
        self.note_either(&fd, (&from, &to), linked).await
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        from: String,
        folder: Resource<Descriptor>,
        to: String,
    ) -> FsResult<()> {
        let renamed = match self.change_into(&fd, &from, PathFlags::empty(), &folder, Change::Move, &to).await {
            Ok(None) => self.inner.rename_at(same(&fd), from.clone(), folder, to.clone()).await,
            done => done.map(drop),
        };
        self.note_either(&fd, (&from, &to), renamed).await
    }

    async fn symlink_at(&mut self, fd: Resource<Descriptor>, target: String, path: String) -> FsResult<()> {
        self.allowance.quota.bytes(target.len() as u64)?;
        self.allowance.quota.entry()?;
        let linked = match self.change(&fd, &path, Change::Link(target.clone())).await {
            Ok(None) => self.inner.symlink_at(fd, target, path.clone()).await,
            done => done.map(drop),
        };
        let linked = self.made(linked);
        self.note(Access::Write, &path, linked)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let removed = match self.change(&fd, &path, Change::RemoveFile).await {
            Ok(None) => self.inner.unlink_file_at(fd, path.clone()).await,
            done => done.map(drop),
        };
        self.note(Access::Write, &path, removed)
    }

    async fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let removed = match self.change(&fd, &path, Change::RemoveFolder).await {
            Ok(None) => self.inner.remove_directory_at(fd, path.clone()).await,
            done => done.map(drop),
        };
        self.note(Access::Write, &path, removed)
    }

    // What follows works on what is open already: it is the engine's own, and what it writes is counted.

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
            self.allowance.quota.bytes(quota::hole(&file.file, size))?;
        }
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
        if let (false, Some(file)) = (bytes.is_empty(), self.writable(&fd)?) {
            let hole = quota::hole(&file.file, at);
            self.allowance.quota.bytes(hole.saturating_add(bytes.len() as u64))?;
        }
        self.inner.write(fd, bytes, at).await
    }

    async fn read_directory(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        if self.allowance.listings >= MAX_LISTINGS {
            return Err(ErrorCode::InsufficientMemory.into());
        }
        let listing = self.list(&fd).await?;
        self.allowance.listings += 1;
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
        let file = self.writable(&fd)?.map(|file| file.file.clone());
        let stream = self.inner.write_via_stream(fd, at)?;
        self.count(stream, file.map(|file| (file, at)))
    }

    fn append_via_stream(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.inner.append_via_stream(fd)?;
        self.count(stream, None)
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        HostDescriptor::drop(&mut self.inner, fd)
    }
}
