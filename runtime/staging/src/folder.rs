//! An open folder of a stage, through which a caller works.

use std::fs::File;
use std::io;
use std::sync::{Arc, MutexGuard};

use rustix::io::Errno;

use crate::edit::{self, Listing, Open};
use crate::entry::About;
use crate::resolve::{Found, Last, Target};
use crate::rules::Rules;
use crate::stage::Stage;
use crate::state::State;
use crate::tree::NodeId;
use crate::types::EntryKind;

/// Number of a folder in its stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FolderId(pub(crate) NodeId);

/// Open folder of a stage.
#[derive(Debug)]
pub struct StagedFolder {
    stage: Arc<Stage>,
    id: NodeId,
}

/// Opened entry.
#[derive(Debug)]
pub enum Opened {
    /// Folder.
    Folder(StagedFolder),
    /// File of the stage, opened as it was asked for.
    Written(File),
    /// File that the stage does not change: a real folder, and the path below it.
    Below {
        /// Handle of the real folder.
        folder: File,
        /// Path below it.
        path: String,
    },
}

impl StagedFolder {
    pub(crate) fn new(stage: Arc<Stage>, id: NodeId) -> Self {
        stage.hold();
        Self { stage, id }
    }

    /// Number of the folder.
    pub fn id(&self) -> FolderId {
        FolderId(self.id)
    }

    /// Returns the state, in which changes are noted as made by the call of these rules.
    fn state(&self, rules: &dyn Rules) -> MutexGuard<'_, State> {
        let mut state = self.stage.state();
        state.call = rules.call();
        state
    }

    /// Opens another handle of the folder.
    pub fn reopen(&self) -> Self {
        Self::new(self.stage.clone(), self.id)
    }

    /// Opens an entry.
    ///
    /// # Errors
    ///
    /// The error that the system gives for a real folder, that of the rules, or `EDQUOT` at a limit of the stage.
    pub fn open(&self, path: &str, how: Open, rules: &dyn Rules) -> io::Result<Opened> {
        let mut state = self.state(rules);
        Ok(match state.open(self.id, path, how, rules)? {
            edit::Opened::Written(file) => Opened::Written(file),
            edit::Opened::Below(path) => {
                let (folder, rest) = state.bases.find(&path)?;
                Opened::Below { folder: folder.try_clone()?.into_std_file(), path: rest.to_owned() }
            }
            edit::Opened::Folder(id) => {
                drop(state);
                Opened::Folder(Self::new(self.stage.clone(), id))
            }
        })
    }

    /// Opens a file so that its times can be set.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`]; `EOPNOTSUPP` for anything but a file.
    pub fn open_to_touch(&self, path: &str, follow: bool, rules: &dyn Rules) -> io::Result<File> {
        self.state(rules).open_to_touch(self.id, path, follow, rules)
    }

    /// Describes an entry.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn about(&self, path: &str, follow: bool) -> io::Result<About> {
        let mut state = self.stage.state();
        match state.resolve(self.id, path, if follow { Last::Follow } else { Last::Keep })? {
            Target::Folder(id) => state.about(&Found::Node(id, EntryKind::Folder)),
            Target::Place(place) => {
                let found = place.found.ok_or(Errno::NOENT)?;
                match place.slash && found.kind() != EntryKind::Folder {
                    true => Err(Errno::NOTDIR.into()),
                    false => state.about(&found),
                }
            }
        }
    }

    /// Describes the folder itself.
    ///
    /// # Errors
    ///
    /// The folder was removed, or the error of the system.
    pub fn own_about(&self) -> io::Result<About> {
        self.stage.state().about(&Found::Node(self.id, EntryKind::Folder))
    }

    /// Reads the target of a link.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn read_link(&self, path: &str) -> io::Result<String> {
        let mut state = self.stage.state();
        match state.resolve(self.id, path, Last::Keep)? {
            Target::Place(place) => {
                let found = place.found.ok_or(Errno::NOENT)?;
                match place.slash && found.kind() == EntryKind::File {
                    true => Err(Errno::NOTDIR.into()),
                    false => state.link_of(&found),
                }
            }
            Target::Folder(_) => Err(Errno::INVAL.into()),
        }
    }

    /// Lists the entries.
    ///
    /// # Errors
    ///
    /// The folder was removed, or the error of the system.
    pub fn list(&self) -> io::Result<Listing> {
        self.stage.state().list(self.id)
    }

    /// Makes a folder.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn make_folder(&self, path: &str, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules).make_folder(self.id, path, rules)
    }

    /// Makes a link.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn make_link(&self, path: &str, target: &str, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules).make_link(self.id, path, target, rules)
    }

    /// Gives a file another name.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn make_name(&self, path: &str, into: &Self, to: &str, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules).make_name((self.id, path), (into.id, to), rules)
    }

    /// Moves an entry.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn rename(&self, path: &str, into: &Self, to: &str, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules).rename((self.id, path), (into.id, to), rules)
    }

    /// Removes a file or a link.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn remove_file(&self, path: &str, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules).remove_file(self.id, path, rules)
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn remove_folder(&self, path: &str, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules).remove_folder(self.id, path, rules)
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        self.stage.release();
    }
}
