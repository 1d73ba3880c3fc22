//! Opening of files for a guest. Only regular files and folders are opened: a FIFO or a device can block the host, or
//! give access to more than a file.

use std::path::Path;
use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, FsPerms};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor, OpenFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::runtime::spawn_blocking;

use crate::policy::Identity;

use super::beneath::{self, OpenedFile};
use super::request::OpenRequest;
use super::resolve::OpenError;
use super::state::Files;

impl Files<'_> {
    /// Opens a regular file or a folder, on a descriptor from the budget.
    pub(super) async fn open(
        &mut self,
        fd: &Resource<Descriptor>,
        request: OpenRequest,
    ) -> FsResult<Resource<Descriptor>> {
        let Dir { dir, perms, .. } = self.folder(fd)?;
        let (dir, perms) = (dir.clone(), *perms);
        request.check(perms)?;
        self.state.descriptors.take()?;
        let opened = self.open_beneath(dir, perms, &request).await;
        let opened = match opened {
            Ok(Some(descriptor)) => self.inner.table.push(descriptor).map_err(Into::into),
            Ok(None) => self.open_looking(fd, request).await,
            Err(refused) => Err(refused.into()),
        };
        match &opened {
            Ok(descriptor) => match self.inner.table.get(descriptor)? {
                Descriptor::File(file) => self.state.descriptors.assign(&file.file),
                Descriptor::Dir(folder) => self.state.descriptors.assign(&folder.dir),
            },
            Err(_) => self.state.descriptors.give_back(),
        }
        opened
    }

    /// Opens without a race; `None` if this system cannot.
    async fn open_beneath(
        &mut self,
        dir: Arc<std::fs::File>,
        perms: FsPerms,
        request: &OpenRequest,
    ) -> Result<Option<Descriptor>, ErrorCode> {
        let (mode, request, quota) = (request.mode(), request.clone(), self.state.quota.clone());
        let guard = self.state.guard.clone();
        match spawn_blocking(move || beneath::open(&dir, &request, &quota, &guard)).await {
            Ok(OpenedFile::Regular(file)) => Ok(Some(Descriptor::File(File::new(file, perms, mode, false)))),
            Ok(OpenedFile::Folder(folder)) => Ok(Some(Descriptor::Dir(Dir::new(folder, perms, mode, false)))),
            Err(OpenError::Unsupported) => Ok(None),
            Err(OpenError::Refused(code)) => Err(code),
        }
    }

    /// Checks the path before the engine opens it. A special file that appears in between is opened and then refused. A file is
    /// truncated only after its handle was judged.
    async fn open_looking(
        &mut self,
        fd: &Resource<Descriptor>,
        request: OpenRequest,
    ) -> FsResult<Resource<Descriptor>> {
        let borrowed = |fd: &Resource<Descriptor>| Resource::new_borrow(fd.rep());
        let is_protected = request.writes() && self.state.guard.protected.is_named(Path::new(&request.path));
        if is_protected {
            return Err(ErrorCode::NotPermitted.into());
        }
        let (truncates, reads) = (request.truncates(), request.reads());
        let OpenRequest { path, link, open, mut flags } = request;
        if truncates {
            // The engine opens without the truncation, and so not for writing by itself.
            flags |= DescriptorFlags::WRITE;
            flags |= if reads { DescriptorFlags::READ } else { DescriptorFlags::empty() };
        }
        let mut created = false;
        match self.inner.stat_at(borrowed(fd), link, path.clone()).await {
            Ok(stat) => refuse_special(stat.type_)?,
            Err(error) if matches!(error.downcast_ref(), Some(ErrorCode::NoEntry)) => {
                created = open.contains(OpenFlags::CREATE);
                if created {
                    self.state.quota.entry()?;
                }
            }
            Err(error) => return Err(error),
        }
        let open = open & !OpenFlags::TRUNCATE;
        let opened = self.inner.open_at(borrowed(fd), link, path, open, flags).await;
        let opened = opened.inspect_err(|_| {
            if created {
                self.state.quota.uncount_entry();
            }
        })?;
        let kind = self.inner.get_type(borrowed(&opened)).await?;
        let is_own = match self.inner.table.get(&opened)? {
            // Another hard link may belong to the host's own files.
            Descriptor::File(file) => Identity::of_linked(&file.file)
                .map_or(true, |(identity, is_linked)| is_linked && self.state.guard.protected.is_own(identity)),
            Descriptor::Dir(_) => false,
        };
        let judged = if is_own { Err(ErrorCode::NotPermitted) } else { refuse_special(kind) };
        let ended = match judged {
            Ok(()) if truncates => self.inner.set_size(borrowed(&opened), 0).await,
            judged => judged.map_err(Into::into),
        };
        if let Err(refused) = ended {
            HostDescriptor::drop(&mut self.inner, opened).map_err(FsError::trap)?;
            return Err(refused);
        }
        Ok(opened)
    }
}

fn refuse_special(kind: DescriptorType) -> Result<(), ErrorCode> {
    match kind {
        DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink => Ok(()),
        _ => Err(ErrorCode::NotPermitted),
    }
}
