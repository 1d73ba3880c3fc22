//! A part of a stage: a copy with some changes, which is committed like any stage. It lies in the folder of the whole
//! stage until then, so that both have one name and one lock.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::MetadataExt;
use toolcrib_private_files::{create_folder, options};

use super::base::{below, split};
use super::begun::STEPS;
use super::entry::About;
use super::fact::{Content, Fact, Node, NodeId, Origin};
use super::journal::Journal;
use super::lock::lock;
use super::stage::{CONTENTS, NOTHING, Stage};
use super::stages::JOURNAL;
use super::state::State;
use crate::types::{Change, ChangeKind, EntryKind, Limits};

/// Folder for a part, within the whole stage's.
pub(crate) const PART: &str = "part";
/// First number of a node that only the part has.
const FIRST_OF_PART: NodeId = 1 << 52;

/// Identity of a change, in the whole stage and in its part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Node(NodeId),
    Removed(String),
}

impl Key {
    fn of(change: &Change) -> Self {
        match (change.node, &change.real) {
            (Some(id), _) => Self::Node(id),
            (None, path) => Self::Removed(path.clone().unwrap_or_default()),
        }
    }
}

fn keys(changes: &[Change]) -> BTreeSet<Key> {
    changes.iter().map(Key::of).collect()
}

impl Stage {
    /// Makes a part of the stage with the chosen changes, and with those that cannot be separated from them: the new folder that holds a
    /// chosen file, the other names of a written file, and an entry at whose place another is put. The part is a stage of its own until
    /// it is dropped, with the same name. Its commit leaves the other changes in the whole stage, over the folders as they are then.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if a chosen change needs the whole stage, [`ErrorKind::ResourceBusy`] if a commit has begun,
    /// [`ErrorKind::PermissionDenied`] if the stage was opened to be read, or the error of the system.
    pub fn part(self: &Arc<Self>, chosen: &[Change]) -> io::Result<Arc<Self>> {
        if !self.is_writable() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        if self.is_committing() {
            return Err(io::Error::new(ErrorKind::ResourceBusy, "its commit has begun"));
        }
        let all = self.changes()?;
        let mut wanted = keys(chosen);
        loop {
            let state = self.state();
            state.bind(&keys(&all), &mut wanted)?;
            let part = self.copy(&state)?;
            drop(state);
            part.withdraw_others(&wanted)?;
            let changes = part.changes()?;
            let left = keys(&changes);
            let is_lost = |change: &&Change| wanted.contains(&Key::of(change)) && !left.contains(&Key::of(change));
            if let Some(lost) = all.iter().find(is_lost) {
                let message = format!("the change of `{}` cannot be committed without the others", lost.path.display());
                return Err(io::Error::new(ErrorKind::InvalidInput, message));
            }
            // What had to go along can need more.
            wanted.extend(keys(&all).intersection(&left).cloned());
            self.state().bind(&keys(&all), &mut wanted)?;
            if wanted.is_subset(&left) {
                part.check_granted(&changes)?;
                return Ok(part);
            }
        }
    }

    /// Opens the part whose commit has begun.
    pub(crate) fn begun_part(self: &Arc<Self>) -> io::Result<Option<Arc<Self>>> {
        let folder = self.path().join(PART);
        match folder.join(STEPS).exists() {
            true => self.open_part(folder, self.state().limits).map(Some),
            false => Ok(None),
        }
    }

    /// Copies the stage. The contents are no copies: nobody writes them as long as the part is there.
    fn copy(self: &Arc<Self>, state: &State) -> io::Result<Arc<Self>> {
        let folder = self.path().join(PART);
        remove_unfinished(self.path())?;
        for folder in [&folder, &folder.join(CONTENTS), &folder.join(NOTHING)] {
            create_folder(folder)?;
        }
        // A second name would change the time that marks such a copy as unwritten.
        let unwritten = state.unwritten()?;
        let is_unwritten: HashSet<String> = unwritten.iter().map(|(id, _)| id.to_string()).collect();
        for entry in fs::read_dir(self.path().join(CONTENTS))? {
            let name = entry?.file_name();
            if !name.to_str().is_some_and(|name| is_unwritten.contains(name)) {
                fs::hard_link(self.path().join(CONTENTS).join(&name), folder.join(CONTENTS).join(&name))?;
            }
        }
        let mut journal = options().write(true).create_new(true).open(folder.join(JOURNAL))?;
        io::copy(&mut File::open(self.path().join(JOURNAL))?, &mut journal)?;
        let part = self.open_part(folder, state.limits)?;
        let facts = unwritten.into_iter().map(|(id, node)| match state.tree.is_in_place(&node) {
            true => Fact::Gone(id),
            false => Fact::Node { id, node: Node { content: Content::Below, ..node } },
        });
        part.state().record(facts.collect())?;
        Ok(part)
    }

    fn open_part(self: &Arc<Self>, folder: PathBuf, limits: Limits) -> io::Result<Arc<Self>> {
        let lock = lock(&folder)?;
        let journal = options().read(true).write(true).open(folder.join(JOURNAL))?;
        let part = Self::load(folder, limits, Some(lock), Some(self.clone()), |apply| Journal::open(journal, apply))?;
        part.state().tree.number_from(FIRST_OF_PART);
        Ok(part)
    }

    /// Takes the changes back that are not wanted, one after another, as some have to wait for others.
    fn withdraw_others(&self, wanted: &BTreeSet<Key>) -> io::Result<()> {
        let (mut state, mut wanted) = (self.state(), wanted.clone());
        loop {
            let mut changes = state.changes()?;
            state.bind(&keys(&changes), &mut wanted)?;
            changes.retain(|change| !wanted.contains(&Key::of(change)));
            if changes.is_empty() || state.withdraw(&changes)?.len() == changes.len() {
                return Ok(());
            }
        }
    }

    /// Refuses to move a granted folder away from the changes that stay in it.
    fn check_granted(&self, changes: &[Change]) -> io::Result<()> {
        let state = self.state();
        let holds = |path: &String| state.bases.paths().any(|base| below(path, base).is_some());
        let is_taken = |change: &&Change| matches!(change.kind, ChangeKind::Moved | ChangeKind::Removed);
        let mut taken = changes.iter().filter(is_taken).filter_map(|change| change.real.as_ref());
        match taken.find(|path| holds(path)) {
            Some(path) => {
                let message = format!("`{path}` holds a granted folder: commit the whole stage");
                Err(io::Error::new(ErrorKind::InvalidInput, message))
            }
            None => Ok(()),
        }
    }
}

/// Removes a part whose commit has not begun, from the folder of its stage.
pub(crate) fn remove_unfinished(stage: &Path) -> io::Result<()> {
    let folder = stage.join(PART);
    match folder.exists() && !folder.join(STEPS).exists() {
        true => fs::remove_dir_all(folder),
        false => Ok(()),
    }
}

impl State {
    /// Lists the copies that nobody has written, each the only name of its content.
    fn unwritten(&self) -> io::Result<Vec<(NodeId, Node)>> {
        let mut unwritten = Vec::new();
        for (id, node) in self.tree.nodes() {
            let (Content::Written(Some(copied)), Some(_)) = (&node.content, &node.origin) else { continue };
            let content = self.contents.symlink_metadata(id.to_string())?;
            if content.nlink() == 1 && About::of(&content).changed == *copied {
                unwritten.push((id, node.clone()));
            }
        }
        Ok(unwritten)
    }

    /// Lists the nodes of each content, by its number on the disk.
    pub(crate) fn nodes_by_content(&self) -> io::Result<HashMap<u64, Vec<NodeId>>> {
        let mut nodes: HashMap<u64, Vec<NodeId>> = HashMap::new();
        for (id, node) in self.tree.nodes() {
            if let Content::Written(_) = node.content {
                match self.contents.symlink_metadata(id.to_string()) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    content => nodes.entry(content?.ino()).or_default().push(id),
                }
            }
        }
        Ok(nodes)
    }

    /// Adds the changes without which the wanted ones would be others: all names of one content go together, and an entry that a moved
    /// one replaces goes with it.
    fn bind(&self, all: &BTreeSet<Key>, wanted: &mut BTreeSet<Key>) -> io::Result<()> {
        for key in wanted.clone() {
            let Key::Removed(path) = key else { continue };
            let (folder, name) = split(&path);
            let Some(id) = self.tree.carrier(folder).and_then(|folder| self.tree.child(folder, name)) else { continue };
            if self.tree.get(id).is_some_and(|node| self.replaced(node).is_some() && is_moved(node)) {
                wanted.insert(Key::Node(id));
            }
        }
        for names in self.nodes_by_content()?.into_values() {
            let names: BTreeSet<Key> = names.into_iter().map(Key::Node).collect();
            if names.intersection(wanted).next().is_some() {
                wanted.extend(names.intersection(all).cloned());
            }
        }
        Ok(())
    }
}

fn is_moved(node: &Node) -> bool {
    matches!(node.origin, Some(Origin { about: Some(_), .. })) && node.kind() != EntryKind::Folder
}
