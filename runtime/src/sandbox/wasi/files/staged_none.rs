//! Files of a call whose writes are held back: only Linux has stages, and elsewhere there is nothing to do.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use toolcrib_staging::{Stage, StagedCall};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, FsPerms, OpenMode};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorStat, HostDescriptor, MetadataHashValue, NewTimestamp, PathFlags,
};

use super::change::Change;
use super::listing::{Part, Rest};
use super::request::OpenRequest;
use super::state::Files;

/// Staged folder, which no call has.
pub(super) type Staged = Arc<Infallible>;

/// Stage of a call, which no call has.
pub(super) struct CallStage {
    pub(super) stage: Arc<Stage>,
}

impl CallStage {
    pub(super) fn new(stage: Arc<Stage>, _: Option<Arc<StagedCall>>) -> Self {
        Self { stage }
    }

    pub(super) fn grant(&mut self, _: &Path, _: File, _: Option<&str>, _: Option<Instant>) -> io::Result<Staged> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn note(&mut self, _: &Resource<Descriptor>, folder: Staged) {
        match *folder {}
    }
}

pub(super) fn staged_path(folder: &Staged, _: &str, _: bool) -> Option<PathBuf> {
    match **folder {}
}

pub(super) fn own_staged_path(folder: &Staged) -> PathBuf {
    match **folder {}
}

impl Files<'_> {
    pub(super) fn staged(&self, _: &Resource<Descriptor>) -> Option<Staged> {
        None
    }

    pub(super) async fn open_staged(&mut self, folder: Staged, _: OpenRequest) -> FsResult<Infallible> {
        match *folder {}
    }

    pub(super) fn push_staged(&mut self, entry: Infallible, _: FsPerms, _: OpenMode) -> FsResult<Resource<Descriptor>> {
        match entry {}
    }

    pub(super) async fn stat_named(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        self.inner.stat_at(fd, flags, path).await
    }

    pub(super) async fn hash_named(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        self.inner.metadata_hash_at(fd, flags, path).await
    }

    pub(super) async fn own_stat_staged(&mut self, folder: Staged) -> FsResult<Infallible> {
        match *folder {}
    }

    pub(super) async fn read_link_staged(&mut self, folder: Staged, _: String) -> FsResult<String> {
        match *folder {}
    }

    pub(super) async fn change_staged(
        &mut self,
        folder: Staged,
        _: &str,
        _: Change,
        _: Option<Staged>,
    ) -> FsResult<()> {
        match *folder {}
    }

    pub(super) async fn set_times_staged(
        &mut self,
        folder: Staged,
        _: &str,
        _: bool,
        _: (NewTimestamp, NewTimestamp),
    ) -> FsResult<()> {
        match *folder {}
    }

    pub(super) fn check_times_staged(&self, _: &Resource<Descriptor>) -> FsResult<()> {
        Ok(())
    }

    pub(super) fn forget_staged(&mut self, _: &Resource<Descriptor>) {}
}

pub(super) fn is_same(one: &Infallible, _: &Infallible) -> bool {
    match *one {}
}

pub(super) fn list_below(folder: &Infallible) -> io::Result<Option<Rest>> {
    match *folder {}
}

/// Listing of a staged folder, which no call has.
#[derive(Clone)]
pub(super) struct StagedListing(Staged);

impl StagedListing {
    pub(super) fn new(folder: Staged) -> Self {
        Self(folder)
    }

    pub(super) fn next_staged(&mut self, _: usize) -> Option<Part> {
        match *self.0 {}
    }

    pub(super) fn retain_shown(&self, _: &mut Part) {
        match *self.0 {}
    }
}

pub(super) fn stat_of(about: &Infallible) -> DescriptorStat {
    match *about {}
}

pub(super) fn hash_of(about: &Infallible) -> MetadataHashValue {
    match *about {}
}
