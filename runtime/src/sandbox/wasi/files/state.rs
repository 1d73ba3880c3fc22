//! Files of one call: the engine's own file system behind the call's quota, descriptors and guard.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use toolcrib_staging::Stage;
use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, Filesize};
use wasmtime_wasi::p2::{DynOutputStream, FsResult};

use crate::sandbox::descriptor_budget::DescriptorBudget;
use crate::sandbox::epoch::deadline;
use crate::sandbox::usage::Usage;
use crate::tool::{Access, Limits};

use super::descriptors::CallDescriptors;
use super::granted::GrantedFolder;
use super::guard::PathGuard;
use super::quota::{CountedStream, Quota};
use super::single::Names;
use super::staged::CallStage;

/// Quota, descriptors and rules of one call.
pub(in crate::sandbox) struct FileState {
    pub(super) quota: Quota,
    pub(super) descriptors: CallDescriptors,
    /// Number of open folder listings.
    pub(super) listings: usize,
    pub(super) guard: PathGuard,
    pub(super) folders: Vec<GrantedFolder>,
    /// Open folders with only some files granted, by their numbers.
    pub(super) single: HashMap<u32, Names>,
    /// Stage that holds the writes of the call back.
    pub(super) stage: Option<CallStage>,
}

impl FileState {
    pub(in crate::sandbox) fn new(
        limits: &Limits,
        usage: &Arc<Usage>,
        budget: &Arc<DescriptorBudget>,
        guard: PathGuard,
    ) -> Self {
        let (until, notes) = (Some(deadline(limits)), usage.whole().history.get().cloned());
        let guard = PathGuard { until, notes, created: Arc::default(), ..guard };
        Self {
            quota: Quota::new(limits, usage),
            descriptors: CallDescriptors::new(budget),
            listings: 0,
            guard,
            folders: Vec::new(),
            single: HashMap::new(),
            stage: None,
        }
    }

    /// Holds the writes of the call back.
    #[must_use]
    pub(in crate::sandbox) fn staged(mut self, stage: Option<&Arc<Stage>>) -> Self {
        let call = || self.quota.usage.whole().staged_call.get().cloned();
        self.stage = stage.map(|stage| CallStage::new(stage.clone(), call()));
        if self.stage.is_some() {
            // They are noted with the commit.
            self.guard.notes = None;
        }
        self
    }
}

impl Drop for FileState {
    fn drop(&mut self) {
        if let Some(CallStage { stage, .. }) = &self.stage {
            stage.count_written(self.quota.usage.whole().disk_bytes.load(Relaxed));
        }
    }
}

/// Files of one call.
pub(in crate::sandbox) struct Files<'a> {
    pub(in crate::sandbox) inner: WasiFilesystemCtxView<'a>,
    pub(in crate::sandbox) state: &'a mut FileState,
}

pub(in crate::sandbox) struct HasFiles;

impl HasData for HasFiles {
    type Data<'a> = Files<'a>;
}

impl Files<'_> {
    /// Records a denial, and returns the result.
    pub(super) fn record<T>(&self, access: Access, path: &str, result: FsResult<T>) -> FsResult<T> {
        if let Err(error) = &result
            && matches!(error.downcast_ref(), Some(ErrorCode::NotPermitted))
        {
            self.state.quota.usage.record_denied_path(access, path);
        }
        result
    }

    pub(super) fn folder(&self, fd: &Resource<Descriptor>) -> FsResult<&Dir> {
        match self.inner.table.get(fd)? {
            Descriptor::Dir(folder) => Ok(folder),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    /// Returns the file that the guest may write by this handle; `None` for one that the engine refuses.
    pub(super) fn writable(&self, fd: &Resource<Descriptor>) -> FsResult<Option<&File>> {
        match self.inner.table.get(fd)? {
            Descriptor::File(file) if !file.perms.write_not_permitted() => Ok(Some(file)),
            _ => Ok(None),
        }
    }

    /// Takes an entry off the quota if creating it failed.
    pub(super) fn uncount_failed(&self, result: FsResult<()>) -> FsResult<()> {
        result.inspect_err(|_| self.state.quota.uncount_entry())
    }

    /// Counts the writes to a stream of the engine.
    pub(super) fn count(
        &mut self,
        stream: Resource<DynOutputStream>,
        start: Option<(Arc<std::fs::File>, Filesize)>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let inner = self.inner.table.delete(stream)?;
        let counted: DynOutputStream = Box::new(CountedStream::new(inner, self.state.quota.clone(), start));
        Ok(self.inner.table.push(counted)?)
    }
}
