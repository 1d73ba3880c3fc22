//! Notes of the files and folders that a call reads, for its label.

use std::path::PathBuf;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::runtime::spawn_blocking;

use crate::policy::{present_path, real_path};

use super::request::OpenRequest;
use super::staged::{Staged, own_staged_path, staged_path};
use super::state::Files;

/// File that a request reads, in the words of the request.
pub(super) struct RequestedRead {
    /// Folder of a stage, and the path in it.
    staged: Option<(Staged, String, bool)>,
}

impl Files<'_> {
    /// Returns the file that a request is about to read; `None` if it reads none.
    pub(super) fn requested_read(&self, fd: &Resource<Descriptor>, request: &OpenRequest) -> Option<RequestedRead> {
        let staged = || self.staged(fd).map(|folder| (folder, request.path.clone(), request.follows()));
        request.reads().then(|| RequestedRead { staged: staged() })
    }

    /// Notes that the call reads an opened file.
    pub(super) async fn note_opened(&mut self, opened: &Resource<Descriptor>, read: Option<RequestedRead>) {
        let (Some(RequestedRead { staged }), Ok(Descriptor::File(file))) = (read, self.inner.table.get(opened)) else {
            return;
        };
        let file = file.file.clone();
        self.note_read(move || match staged {
            Some((folder, path, follows)) => staged_path(&folder, &path, follows),
            None => present_path(&file),
        })
        .await;
    }

    /// Notes that the call lists a folder, or reads a link in it.
    pub(super) async fn note_listing(&mut self, fd: &Resource<Descriptor>) {
        let (staged, dir) = (self.staged(fd), self.folder(fd).ok().map(|folder| folder.dir.clone()));
        self.note_read(move || match staged {
            Some(folder) => Some(own_staged_path(&folder)),
            None => present_path(dir.as_deref()?),
        })
        .await;
    }

    /// Notes that an entry gets another name: there it can have other labels.
    pub(super) async fn note_renamed(&mut self, fd: &Resource<Descriptor>, path: &str) {
        let usage = self.state.quota.usage.clone();
        let flow = &usage.whole().flow;
        if !flow.needs_former_path() {
            return;
        }
        let (staged, dir) = (self.staged(fd), self.folder(fd).ok().map(|folder| folder.dir.clone()));
        let path = path.to_owned();
        let former = spawn_blocking(move || match staged {
            Some(folder) => staged_path(&folder, &path, false),
            None => Some(real_path(&present_path(dir.as_deref()?)?.join(path))),
        });
        flow.rename(former.await.as_deref());
    }

    async fn note_read(&mut self, path: impl FnOnce() -> Option<PathBuf> + Send + 'static) {
        let usage = self.state.quota.usage.clone();
        let flow = &usage.whole().flow;
        // Another call may have written it.
        flow.join_shared();
        if flow.needs_path() {
            flow.read_file(spawn_blocking(path).await.as_deref());
        }
    }
}
