//! An open folder of a stage, through which a caller works.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::{Arc, MutexGuard};

use rustix::fs::Timestamps;
use rustix::io::Errno;

use super::edit::{self, Open};
use super::entry::About;
use super::fact::NodeId;
use super::resolve::{Found, Last, Target};
use super::rules::Rules;
use super::stage::Stage;
use super::state::State;
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

/// Moment of a listing.
#[derive(Debug, Clone, Copy)]
pub struct Mark(NodeId);

/// Opened entry.
#[derive(Debug)]
pub enum Opened {
    /// Folder.
    Folder(StagedFolder),
    /// File of the stage, opened as it was asked for.
    Written(File),
    /// Real file, opened for reading, that the stage does not change.
    Real(File, About),
}

impl StagedFolder {
    pub(crate) fn new(stage: Arc<Stage>, id: NodeId) -> Self {
        stage.held().hold(id);
        Self { stage, id }
    }

    /// Number of the folder.
    pub fn id(&self) -> FolderId {
        FolderId(self.id)
    }

    /// Node of the folder.
    pub(crate) fn node(&self) -> NodeId {
        self.id
    }

    /// Returns the state, in which changes are noted as made by the call of these rules.
    ///
    /// # Errors
    ///
    /// `EBUSY` if other calls use it until this one ends.
    pub(crate) fn state(&self, rules: &dyn Rules) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.stage.state_until(rules.until())?;
        state.call = rules.call().cloned();
        Ok(state)
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
        let mut state = self.state(rules)?;
        Ok(match state.open(self.id, path, how, rules)? {
            edit::Opened::Written(file) => Opened::Written(file),
            edit::Opened::Below(path) => {
                let (file, about) = state.bases.read(&path)?;
                Opened::Real(file, about)
            }
            edit::Opened::Folder(id) => Opened::Folder(Self::new(self.stage.clone(), id)),
        })
    }

    /// Sets the times of a file, or a new folder or link.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`]; `EOPNOTSUPP` for a real folder or link.
    pub fn set_times(&self, path: &str, follow: bool, times: &Timestamps, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules)?.touch((self.id, path), follow, times, rules)
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

    /// Returns the path that the folder has, or will have after a commit.
    pub fn path(&self) -> String {
        self.stage.state().tree.path(self.id)
    }

    /// Returns the path that an entry has, or will have after a commit.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn path_of(&self, path: &str, follow: bool) -> io::Result<String> {
        let mut state = self.stage.state();
        Ok(match state.resolve(self.id, path, if follow { Last::Follow } else { Last::Keep })? {
            Target::Folder(id) => state.tree.path(id),
            Target::Place(place) => state.path_of(&place),
        })
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

    /// Lists entries of the stage after a name, at most so many, by name.
    pub fn staged_after(&self, name: &str, most: usize) -> Vec<(String, EntryKind)> {
        self.stage.state().list_staged(self.id, name, most)
    }

    /// Opens the real folder under this one; `None` if only the stage has it.
    ///
    /// # Errors
    ///
    /// The folder was removed, or the error of the system.
    pub fn below(&self) -> io::Result<Option<File>> {
        let state = self.stage.state();
        let node = state.tree.get(self.id).ok_or(Errno::NOENT)?;
        node.origin.as_ref().map(|origin| state.bases.folder(&origin.path)).transpose()
    }

    /// Returns a mark of this moment, at which all entries of the stage are listed.
    pub fn mark(&self) -> Mark {
        Mark(self.stage.state().tree.next_id())
    }

    /// Keeps the entries that a listing of the real folder adds to the entries of the stage, which were all listed at the mark: a
    /// file that was written since then was not among them.
    pub fn retain_shown<T>(&self, entries: &mut VecDeque<T>, mark: Mark, name: impl Fn(&T) -> Option<&str>) {
        let state = self.stage.state();
        entries.retain(|entry| name(entry).is_none_or(|name| state.shows_below(self.id, name, mark.0)));
    }

    /// Makes a folder.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn make_folder(&self, path: &str, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules)?.make_folder(self.id, path, rules)
    }

    /// Makes a link.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn make_link(&self, path: &str, target: &str, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules)?.make_link(self.id, path, target, rules)
    }

    /// Gives a file another name.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn make_name(&self, path: &str, into: &Self, to: &str, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules)?.make_name((self.id, path), (into.id, to), rules)
    }

    /// Moves an entry.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn rename(&self, path: &str, into: &Self, to: &str, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules)?.rename((self.id, path), (into.id, to), rules)
    }

    /// Removes a file or a link.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn remove_file(&self, path: &str, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules)?.remove_file(self.id, path, rules)
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    ///
    /// As for [`StagedFolder::open`].
    pub fn remove_folder(&self, path: &str, rules: &dyn Rules) -> io::Result<()> {
        self.state(rules)?.remove_folder(self.id, path, rules)
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        if self.stage.held().release(self.id) {
            self.stage.forget_passed();
        }
    }
}
