//! Folders with only some files granted: a guest finds only these files there, and the folder stays as it is.

use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, PathFlags};

use super::request::{OpenRequest, refuse_misread};
use super::state::Files;

/// Names of the granted files in a folder.
pub(super) type Names = Arc<[String]>;

impl Files<'_> {
    /// Names of the granted files in an open folder; `None` if all of it is granted.
    pub(super) fn single(&self, fd: &Resource<Descriptor>) -> Option<&Names> {
        if self.state.single.is_empty() { None } else { self.state.single.get(&fd.rep()) }
    }

    /// Refuses a path in a folder that is neither the folder itself nor a granted file. Returns `true` for one of the
    /// files.
    pub(super) fn admit(&self, fd: &Resource<Descriptor>, path: &str) -> FsResult<bool> {
        let Some(names) = self.single(fd) else { return Ok(false) };
        let mut rest = path;
        while let Some(next) = rest.strip_prefix("./").or_else(|| rest.strip_prefix('/')) {
            rest = next;
        }
        match rest {
            "" | "." => Ok(false),
            // Nothing may follow the name: `file/.` would follow a link in its place.
            file if names.iter().any(|name| name == file) => Ok(true),
            _ => Err(ErrorCode::NotPermitted.into()),
        }
    }

    /// Refuses a path that could be misread, or that is not granted, before something is read by it. Returns `true`
    /// for a granted file in a folder with only some files granted.
    pub(super) fn admit_read(&self, fd: &Resource<Descriptor>, path: &str) -> FsResult<bool> {
        refuse_misread(path)?;
        self.admit(fd, path)
    }

    /// Opens a file or folder as far as it is granted. No link is followed from a granted file: somebody may have replaced it.
    pub(super) async fn open_granted(
        &mut self,
        fd: &Resource<Descriptor>,
        mut request: OpenRequest,
    ) -> FsResult<Resource<Descriptor>> {
        let is_single = self.admit(fd, &request.path)?;
        request.link = unfollowed(request.link, is_single);
        let names = self.single(fd).cloned().filter(|_| !is_single);
        let opened = self.open(fd, request).await?;
        if is_single && matches!(self.inner.table.get(&opened)?, Descriptor::Dir(_)) {
            // A folder took the place of the file.
            self.inner.table.delete(opened)?;
            return Err(ErrorCode::NotPermitted.into());
        }
        // The folder itself.
        names.into_iter().for_each(|names| drop(self.state.single.insert(opened.rep(), names)));
        Ok(opened)
    }

    /// Refuses a change of a folder with only some files granted, and one against a rule about flows.
    pub(super) fn admit_change(&self, fd: &Resource<Descriptor>) -> FsResult<()> {
        self.state.quota.flow()?;
        if self.single(fd).is_some() { Err(ErrorCode::NotPermitted.into()) } else { Ok(()) }
    }
}

/// Returns the flags for a path. They follow no link if the path names a granted file.
pub(super) fn unfollowed(flags: PathFlags, is_single: bool) -> PathFlags {
    if is_single { PathFlags::empty() } else { flags }
}
