//! Opening a file or a folder for a guest: nothing else is ever opened, for a FIFO or a device can block the host or be
//! more than a file.

use std::path::Path;
use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, FsPerms, OpenMode};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::runtime::spawn_blocking;

use super::Files;
use super::beneath::{self, Opened, Unopened};

/// What a guest asks to be opened, and how.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) link: PathFlags,
    pub(super) open: OpenFlags,
    pub(super) flags: DescriptorFlags,
}

impl Asked {
    pub(super) fn follows(&self) -> bool {
        self.link.contains(PathFlags::SYMLINK_FOLLOW)
    }

    pub(super) fn is_folder(&self) -> bool {
        self.open.contains(OpenFlags::DIRECTORY)
    }

    pub(super) fn creates(&self) -> bool {
        self.open.contains(OpenFlags::CREATE)
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.creates() && self.open.contains(OpenFlags::EXCLUSIVE)
    }

    pub(super) fn truncates(&self) -> bool {
        self.open.contains(OpenFlags::TRUNCATE)
    }

    pub(super) fn writes(&self) -> bool {
        self.creates() || self.truncates() || self.flags.contains(DescriptorFlags::WRITE)
    }

    /// A file has to be opened for something.
    pub(super) fn reads(&self) -> bool {
        self.flags.contains(DescriptorFlags::READ) || !self.flags.contains(DescriptorFlags::WRITE)
    }

    /// Whether it would or could change anything.
    pub(super) fn changes(&self) -> bool {
        self.writes() || self.flags.contains(DescriptorFlags::MUTATE_DIRECTORY)
    }

    fn mode(&self) -> OpenMode {
        let mut mode = OpenMode::empty();
        mode.set(OpenMode::READ, self.reads());
        mode.set(OpenMode::WRITE, self.writes());
        mode
    }

    /// Refuses what no folder or this one does not allow, before the system is asked.
    fn check(&self, perms: FsPerms) -> Result<(), ErrorCode> {
        let synchronized = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if self.flags.intersects(synchronized) {
            return Err(ErrorCode::Unsupported);
        }
        if self.is_folder() && self.open != OpenFlags::DIRECTORY {
            return Err(ErrorCode::Invalid);
        }
        match perms.write_not_permitted() && self.writes() {
            true => Err(ErrorCode::NotPermitted),
            false => Ok(()),
        }
    }
}

impl Files<'_> {
    /// Opens a regular file or a folder, on one of the places that guests have for open files.
    pub(super) async fn open(&mut self, fd: &Resource<Descriptor>, asked: Asked) -> FsResult<Resource<Descriptor>> {
        let Dir { dir, perms, .. } = self.folder(fd)?;
        let (dir, perms) = (dir.clone(), *perms);
        asked.check(perms)?;
        self.allowance.held.take()?;
        let opened = self.open_beneath(dir, perms, &asked).await;
        let opened = match opened {
            Ok(Some(descriptor)) => self.inner.table.push(descriptor).map_err(Into::into),
            Ok(None) => self.open_looking(fd, asked).await,
            Err(refused) => Err(refused.into()),
        };
        match &opened {
            Ok(descriptor) => match self.inner.table.get(descriptor)? {
                Descriptor::File(file) => self.allowance.held.keep(&file.file),
                Descriptor::Dir(folder) => self.allowance.held.keep(&folder.dir),
            },
            Err(_) => self.allowance.held.give_back(),
        }
        opened
    }

    /// Sets the times of what a path leads to, by a handle.
    pub(super) async fn set_times_of(
        &mut self,
        fd: &Resource<Descriptor>,
        path: &str,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        if self.folder(fd)?.perms.write_not_permitted() {
            return Err(ErrorCode::NotPermitted.into());
        }
        let asked =
            |flags| Asked { path: path.to_owned(), link: PathFlags::SYMLINK_FOLLOW, open: OpenFlags::empty(), flags };
        // Its owner may change the times of a file that he may only read, or only write.
        let opened = match self.open(fd, asked(DescriptorFlags::READ)).await {
            Err(error) if matches!(error.downcast_ref(), Some(ErrorCode::Access)) => {
                self.open(fd, asked(DescriptorFlags::WRITE)).await?
            }
            opened => opened?,
        };
        let set = self.inner.set_times(Resource::new_borrow(opened.rep()), accessed, modified).await;
        HostDescriptor::drop(&mut self.inner, opened).map_err(FsError::trap)?;
        set
    }

    /// Opens without a race; `None` where this system cannot.
    async fn open_beneath(
        &mut self,
        dir: Arc<std::fs::File>,
        perms: FsPerms,
        asked: &Asked,
    ) -> Result<Option<Descriptor>, ErrorCode> {
        let (mode, asked, quota) = (asked.mode(), asked.clone(), self.allowance.quota.clone());
        let fence = self.allowance.fence.clone();
        match spawn_blocking(move || beneath::open(&dir, &asked, &quota, &fence)).await {
            Ok(Opened::Regular(file)) => Ok(Some(Descriptor::File(File::new(file, perms, mode, false)))),
            Ok(Opened::Folder(folder)) => Ok(Some(Descriptor::Dir(Dir::new(folder, perms, mode, false)))),
            Err(Unopened::Unsupported) => Ok(None),
            Err(Unopened::Refused(code)) => Err(code),
        }
    }

    /// Looks before it lets the engine open: what is put there in between is opened, and then refused.
    async fn open_looking(&mut self, fd: &Resource<Descriptor>, asked: Asked) -> FsResult<Resource<Descriptor>> {
        let borrowed = |fd: &Resource<Descriptor>| Resource::new_borrow(fd.rep());
        let is_protected = asked.writes() && self.allowance.fence.protected.is_named(Path::new(&asked.path));
        if is_protected {
            return Err(ErrorCode::NotPermitted.into());
        }
        let Asked { path, link, open, flags } = asked;
        let mut made = false;
        match self.inner.stat_at(borrowed(fd), link, path.clone()).await {
            Ok(stat) => refuse_special(stat.type_)?,
            Err(error) if matches!(error.downcast_ref(), Some(ErrorCode::NoEntry)) => {
                made = open.contains(OpenFlags::CREATE);
                if made {
                    self.allowance.quota.entry()?;
                }
            }
            Err(error) => return Err(error),
        }
        let opened = self.inner.open_at(borrowed(fd), link, path, open, flags).await;
        let opened = opened.inspect_err(|_| {
            if made {
                self.allowance.quota.no_entry();
            }
        })?;
        let kind = self.inner.get_type(borrowed(&opened)).await?;
        if let Err(refused) = refuse_special(kind) {
            HostDescriptor::drop(&mut self.inner, opened).map_err(FsError::trap)?;
            return Err(refused.into());
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
