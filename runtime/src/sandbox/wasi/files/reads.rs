//! Notes of the files and folders that a call reads, for its label.

use std::path::PathBuf;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;

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
    pub(super) fn note_opened(&self, opened: &Resource<Descriptor>, read: Option<RequestedRead>) {
        let (Some(RequestedRead { staged }), Ok(Descriptor::File(file))) = (read, self.inner.table.get(opened)) else {
            return;
        };
        self.note_read(|| match staged {
            Some((folder, path, follows)) => staged_path(&folder, &path, follows),
            None => present_path(&file.file),
        });
    }

    /// Notes that the call lists a folder.
    pub(super) fn note_listing(&self, fd: &Resource<Descriptor>) {
        self.note_read(|| match self.staged(fd) {
            Some(folder) => Some(own_staged_path(&folder)),
            None => present_path(&self.folder(fd).ok()?.dir),
        });
    }

    /// Notes that an entry gets another name: there it can have other labels.
    pub(super) fn note_renamed(&self, fd: &Resource<Descriptor>, path: &str) {
        self.state.quota.usage.whole().flow.rename(|| match self.staged(fd) {
            Some(folder) => staged_path(&folder, path, false),
            None => present_path(&self.folder(fd).ok()?.dir).map(|folder| real_path(&folder.join(path))),
        });
    }

    fn note_read(&self, path: impl FnOnce() -> Option<PathBuf>) {
        self.state.quota.usage.whole().flow.read_file(path);
    }
}
