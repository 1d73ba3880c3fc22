//! Opening of files for a guest. Only regular files and folders are opened: a FIFO or a device can block the host, or
//! give access to more than a file.

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, Dir, File};
use wasmtime_wasi::p2::{FsError, FsResult};
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
        self.state.descriptors.take()?;
        let (mode, quota, guard) = (request.mode(), self.state.quota.clone(), self.state.guard.clone());
        let opened = match spawn_blocking(move || beneath::open(&dir, &request, &quota, &guard)).await {
            Ok(OpenedFile::Regular(file)) => Ok(Descriptor::File(File::new(file, perms, mode, false))),
            Ok(OpenedFile::Folder(folder)) => Ok(Descriptor::Dir(Dir::new(folder, perms, mode, false))),
            Err(refused) => Err(FsError::from(refused)),
        };
        let opened = opened.and_then(|descriptor| Ok(self.inner.table.push(descriptor)?));
        match &opened {
            Ok(descriptor) => match self.inner.table.get(descriptor)? {
                Descriptor::File(file) => self.state.descriptors.assign(&file.file),
                Descriptor::Dir(folder) => self.state.descriptors.assign(&folder.dir),
            },
            Err(_) => self.state.descriptors.give_back(),
        }
        opened
    }
}
