//! Granted folders of a call, opened by their handles: another folder that takes the path of one is not reached.

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, Dir, FsPerms, OpenMode};

use crate::error::{Outcome, ToolError};
use crate::policy::Folder;
use crate::tool::Access;

use super::single::Names;
use super::staged::Staged;
use super::state::{FileState, Files};

/// Granted folder under one of its paths in the guest.
pub(super) struct GrantedFolder {
    dir: Dir,
    guest: String,
    /// Names of the granted files, if nothing else of the folder is granted.
    only: Option<Names>,
    /// The folder of the stage, if writes are held back.
    staged: Option<Staged>,
}

impl FileState {
    /// Opens a granted folder for the guest, under each of its paths there.
    ///
    /// # Errors
    ///
    /// [`Outcome::Denied`] if the folder can no longer be opened.
    pub(in crate::sandbox) fn grant(&mut self, folder: &Folder) -> Result<(), ToolError> {
        let opened = folder.open().map_err(|_| {
            let name = folder.guest.first().map_or("/", String::as_str);
            ToolError::new(Outcome::Denied, format!("the granted folder `{name}` can no longer be opened"))
        })?;
        let only = folder.files().next().is_some().then(|| folder.files().map(str::to_owned).collect());
        let Some(stage) = &mut self.stage else {
            self.add_folder(opened, folder.access, &folder.guest, only);
            return Ok(());
        };
        let staged = stage.grant(&folder.host, opened, folder.inside(), self.guard.until);
        let staged = staged.and_then(|staged| Ok((staged, stage.stage.nothing()?))).map_err(|error| {
            let message = format!("the granted folder `{}` cannot be staged: {error}", folder.host.display());
            ToolError::new(Outcome::Denied, message)
        })?;
        let (staged, nothing) = staged;
        self.add(nothing, folder.access, &folder.guest, only, Some(staged));
        Ok(())
    }

    /// Adds an open folder under these paths.
    pub(in crate::sandbox) fn add_folder(
        &mut self,
        folder: std::fs::File,
        access: Access,
        guest: &[String],
        only: Option<Names>,
    ) {
        self.add(folder, access, guest, only, None);
    }

    pub(super) fn add(
        &mut self,
        folder: std::fs::File,
        access: Access,
        guest: &[String],
        only: Option<Names>,
        staged: Option<Staged>,
    ) {
        let (perms, mode) = match access {
            Access::Read => (FsPerms::ReadOnly, OpenMode::READ),
            Access::Write => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
        };
        let dir = Dir::new(folder, perms, mode, false);
        if let (Access::Write, None, Some(notes)) = (access, &staged, &self.guard.notes) {
            notes.allow(dir.dir.clone());
        }
        let named = |guest: &String| GrantedFolder {
            dir: dir.clone(),
            guest: guest.clone(),
            only: only.clone(),
            staged: staged.clone(),
        };
        self.folders.extend(guest.iter().map(named));
    }
}

impl Files<'_> {
    /// Gives the guest a descriptor of each granted folder, and notes the folders with only some files granted.
    pub(in crate::sandbox::wasi) fn granted(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let FileState { folders, single, stage, .. } = &mut *self.state;
        let mut granted = Vec::with_capacity(folders.len());
        for GrantedFolder { dir, guest, only, staged } in folders.iter() {
            let folder = self.inner.table.push(Descriptor::Dir(dir.clone()))?;
            if let (Some(stage), Some(staged)) = (stage.as_mut(), staged) {
                stage.note(&folder, staged.clone());
            }
            single.extend(only.clone().map(|names| (folder.rep(), names)));
            granted.push((folder, guest.clone()));
        }
        Ok(granted)
    }
}
