//! Opening of files for a guest. Only regular files and folders are opened: a FIFO or a device can block the host, or
//! give access to more than a file.

use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, FsPerms};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::runtime::spawn_blocking;

use super::beneath::{self, OpenedFile};
use super::request::OpenRequest;
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
        if request.writes() {
            self.state.quota.flow()?;
        }
        let read = self.requested_read(fd, &request);
        self.state.descriptors.take()?;
        let opened = match self.staged(fd) {
            Some(folder) => {
                let mode = request.mode();
                match self.open_staged(folder, request).await {
                    Ok(entry) => self.push_staged(entry, perms, mode),
                    Err(refused) => Err(refused),
                }
            }
            None => self.open_real(dir, request, perms).await,
        };
        match &opened {
            Ok(descriptor) => {
                match self.inner.table.get(descriptor)? {
                    Descriptor::File(file) => self.state.descriptors.assign(&file.file),
                    Descriptor::Dir(folder) => self.state.descriptors.assign(&folder.dir),
                }
                self.note_opened(descriptor, read).await;
            }
            Err(_) => self.state.descriptors.give_back(),
        }
        opened
    }

    /// Opens a real file or folder.
    async fn open_real(
        &mut self,
        dir: Arc<std::fs::File>,
        request: OpenRequest,
        perms: FsPerms,
    ) -> FsResult<Resource<Descriptor>> {
        let (mode, quota, guard) = (request.mode(), self.state.quota.clone(), self.state.guard.clone());
        let descriptor = match spawn_blocking(move || beneath::open(&dir, &request, &quota, &guard)).await? {
            OpenedFile::Regular(file) => Descriptor::File(File::new(file, perms, mode, false)),
            OpenedFile::Folder(folder) => Descriptor::Dir(Dir::new(folder, perms, mode, false)),
        };
        Ok(self.inner.table.push(descriptor)?)
    }
}
