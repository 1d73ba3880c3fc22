//! File times. Setting them is a write: a guest that could set the times of a protected file could hide a change of it.

use std::fs::File;
use std::path::Path;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode, HostDescriptor, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::runtime::spawn_blocking;

use super::entry::{FolderEntry, opened};
use super::guard::PathGuard;
use super::request::OpenRequest;
use super::single::unfollowed;
use super::state::Files;

impl Files<'_> {
    /// Sets the times of a file by its path.
    pub(super) async fn set_times_named(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: &str,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let is_single = self.admit_read(&fd, path)?;
        if !is_single {
            self.admit_change(&fd)?;
        }
        let flags = unfollowed(flags, is_single);
        if self.state.guard.protected.is_named(Path::new(path)) {
            return Err(ErrorCode::NotPermitted.into());
        }
        if let Some(folder) = self.staged(&fd) {
            if self.folder(&fd)?.perms.write_not_permitted() {
                return Err(ErrorCode::NotPermitted.into());
            }
            let follows = flags.contains(PathFlags::SYMLINK_FOLLOW);
            return self.set_times_staged(folder, path, follows, (accessed, modified)).await;
        }
        // The engine would open the target of a link, even a FIFO.
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return self.set_times_of(&fd, path, accessed, modified).await;
        }
        let (folder, guard, name) = (self.folder(&fd)?.dir.clone(), self.state.guard.clone(), path.to_owned());
        spawn_blocking(move || judge_entry(&folder, &name, &guard)).await?;
        self.inner.set_times_at(fd, flags, path.to_owned(), accessed, modified).await
    }

    /// Sets the times of an open file or folder.
    pub(super) async fn set_times_open(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.admit_change(&fd)?;
        self.check_times_staged(&fd)?;
        let handle = match self.inner.table.get(&fd)? {
            Descriptor::File(file) => file.file.clone(),
            Descriptor::Dir(folder) => folder.dir.clone(),
        };
        // A file of the stage was judged by the name under which it was opened.
        if self.state.stage.is_none() {
            let guard = self.state.guard.clone();
            spawn_blocking(move || judge_open(&handle, &guard)).await?;
        }
        self.inner.set_times(fd, accessed, modified).await
    }

    /// Sets the times of a file by its path, through a handle.
    async fn set_times_of(
        &mut self,
        fd: &Resource<Descriptor>,
        path: &str,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        if self.folder(fd)?.perms.write_not_permitted() {
            return Err(ErrorCode::NotPermitted.into());
        }
        let request = |flags| OpenRequest {
            path: path.to_owned(),
            link: PathFlags::SYMLINK_FOLLOW,
            open: OpenFlags::empty(),
            flags,
        };
        // The owner of a file may change its times with read access alone, or with write access alone. Windows requires the
        // latter.
        match self.set_times_through(fd, request(DescriptorFlags::READ), accessed, modified).await {
            Err(error) if matches!(error.downcast_ref(), Some(ErrorCode::Access)) => {
                self.set_times_through(fd, request(DescriptorFlags::WRITE), accessed, modified).await
            }
            set => set,
        }
    }

    async fn set_times_through(
        &mut self,
        fd: &Resource<Descriptor>,
        request: OpenRequest,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let opened = self.open(fd, request).await?;
        let set = self.set_times_open(Resource::new_borrow(opened.rep()), accessed, modified).await;
        HostDescriptor::drop(&mut self.inner, opened).map_err(FsError::trap)?;
        set
    }
}

/// Refuses a protected entry of a folder. A path that ends at the folder itself is judged by its names alone.
fn judge_entry(folder: &File, path: &str, guard: &PathGuard) -> Result<(), ErrorCode> {
    match FolderEntry::resolve(folder, path) {
        Err(ErrorCode::Invalid) => Ok(()),
        entry => entry?.judge(guard),
    }
}

/// Refuses an open file or folder that is protected, whatever its name was when it was opened.
fn judge_open(file: &File, guard: &PathGuard) -> Result<(), ErrorCode> {
    let (identity, is_linked, path) = opened(file)?;
    match guard.protected.holds_file(identity, is_linked, &path) {
        true => Err(ErrorCode::NotPermitted),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use cap_std::ambient_authority;
    use cap_std::fs::Dir;

    use crate::policy::Protected;

    use super::*;

    #[test]
    fn the_times_of_a_protected_file_are_set_by_none_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("kept"), "").unwrap();
        fs::hard_link(dir.path().join("kept"), dir.path().join("alias")).unwrap();
        fs::write(dir.path().join("free"), "").unwrap();
        let mut protected = Protected::default();
        protected.add(&dir.path().join("kept"));
        let guard = PathGuard { protected: Arc::new(protected), ..PathGuard::default() };
        let folder = Dir::open_ambient_dir(dir.path(), ambient_authority()).unwrap().into_std_file();
        for (path, is_free) in [("kept", false), ("sub/../kept", false), ("free", true), (".", true), ("sub/..", true)]
        {
            assert_eq!(judge_entry(&folder, path, &guard).is_ok(), is_free, "{path}");
        }
        for (name, is_free) in [("kept", false), ("alias", false), ("free", true)] {
            let file = File::open(dir.path().join(name)).unwrap();
            assert_eq!(judge_open(&file, &guard).is_ok(), is_free, "{name}");
        }
    }
}
