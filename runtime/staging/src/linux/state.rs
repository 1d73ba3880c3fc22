//! The state of an open stage: the tree, the folders under it, and the files in which its content is.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cap_std::fs::{Dir, MetadataExt, OpenOptions};
use rustix::fs::{Timestamps, futimens};
use rustix::io::Errno;

use super::base::Bases;
use super::commit::timespec;
use super::entry::About;
use super::fact::{Content, Fact, Hidden, Node, NodeId, Origin};
use super::journal::Journal;
use super::resolve::{Found, Place};
use super::tree::Tree;
use crate::types::{EntryKind, Limits, StagedCall};

/// Bytes that are copied between two looks at the deadline.
const COPY_BLOCK: usize = 1 << 20;

/// State of an open stage.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) tree: Tree,
    pub(crate) bases: Bases,
    /// Folder with the files' contents, named by the numbers of their nodes.
    pub(crate) contents: Dir,
    pub(crate) journal: Journal<Fact>,
    pub(crate) limits: Limits,
    /// Real files with several names, by device and number, that have a copy: the time at which it was made.
    pub(crate) linked: HashMap<(u64, u64), i128>,
    /// Folders that are held open.
    pub(crate) held: Arc<HeldFolders>,
    /// Call that changes something now. Its first change notes it.
    pub(crate) call: Option<Arc<StagedCall>>,
    /// Bytes of all written files, at least those that were copied and counted.
    pub(crate) used: u64,
    /// `true` if the files can have fewer bytes than that: one was removed or written again.
    pub(crate) is_estimate: bool,
    /// Prefix for the entries of the last part's commit.
    pub(crate) rebased: Option<String>,
}

/// Number of open handles for each folder, under a lock of their own: the state can be locked for long.
#[derive(Debug, Default)]
pub(crate) struct HeldFolders(Mutex<HashMap<NodeId, usize>>);

impl HeldFolders {
    pub(crate) fn hold(&self, folder: NodeId) {
        *self.locked().entry(folder).or_default() += 1;
    }

    /// Gives a handle back, and returns `true` if it was the last one of all folders.
    pub(crate) fn release(&self, folder: NodeId) -> bool {
        let mut held = self.locked();
        if let Some(handles) = held.get_mut(&folder) {
            *handles -= 1;
            if *handles == 0 {
                held.remove(&folder);
            }
        }
        held.is_empty()
    }

    pub(crate) fn folders(&self) -> Vec<NodeId> {
        self.locked().keys().copied().collect()
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<NodeId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Performs a change: the journal keeps it first.
    pub(crate) fn record(&mut self, mut facts: Vec<Fact>) -> io::Result<()> {
        if let Some(call) = self.call.as_ref().filter(|call| self.tree.call_number(call).is_none()) {
            facts.insert(0, Fact::Call(StagedCall::clone(call)));
        }
        let is_more = |fact: &&Fact| match fact {
            Fact::Node { id, .. } => !self.tree.is_kept(*id),
            Fact::Hidden { path, .. } => self.tree.hidden(path).is_none(),
            _ => false,
        };
        let more = facts.iter().filter(is_more).count();
        // What makes room is done also at the limit.
        let makes_room = facts.iter().any(|fact| matches!(fact, Fact::Gone(_) | Fact::Shown(_)));
        if more > 0 && !makes_room && self.tree.kept() + more > self.limits.entries {
            return Err(Errno::DQUOT.into());
        }
        self.journal.add(&facts)?;
        let now = now();
        facts.into_iter().for_each(|fact| self.apply(fact, now));
        Ok(())
    }

    /// Applies a fact of the journal.
    pub(crate) fn apply(&mut self, fact: Fact, now: i128) {
        if let Fact::Node { node: Node { content: Content::Written(Some(copied)), origin, .. }, .. } = &fact
            && let Some(Origin { about: Some(about), .. }) = origin
            && about.names > 1
        {
            self.linked.entry(about.file()).or_insert(*copied);
        }
        if let Fact::Unshared(device, inode) = fact {
            self.linked.remove(&(device, inode));
        }
        if let Fact::Rebased(aside) = &fact {
            self.rebased = Some(aside.clone());
        }
        self.tree.apply(fact, now);
    }

    /// Refuses to hold more folders in memory, after those that nobody holds open are forgotten.
    pub(crate) fn check_size(&mut self) -> io::Result<()> {
        if self.tree.len() >= self.limits.entries {
            self.tree.forget_passed(self.held.folders().into_iter());
        }
        if self.tree.len() < self.limits.entries { Ok(()) } else { Err(Errno::DQUOT.into()) }
    }

    /// Describes an entry.
    pub(crate) fn about(&self, found: &Found) -> io::Result<About> {
        let (id, node) = match found {
            Found::Below(_, about) => return Ok(About { names: self.shown_names(about), ..*about }),
            Found::Node(id, _) => (*id, self.tree.get(id.to_owned()).ok_or(Errno::NOENT)?),
        };
        match (&node.content, &node.origin) {
            (Content::Written(_), _) => {
                let found = About::of(&self.contents.symlink_metadata(id.to_string())?);
                let names = self.names_of_written(id, node, &found)?;
                Ok(About { names, ..found })
            }
            (_, Some(origin)) => match (self.bases.about(&origin.path), origin.about) {
                (Ok(Some(about)), _) if about.kind == EntryKind::Folder => {
                    let modified = about.modified.max(self.tree.touched(id));
                    Ok(About { modified, changed: about.changed.max(modified), ..about })
                }
                (Ok(Some(about)), _) => Ok(About { names: self.shown_names(&about), ..about }),
                (_, Some(about)) => Ok(about),
                (found, None) => found?.ok_or_else(|| Errno::NOENT.into()),
            },
            (content, None) => {
                let size = if let Content::Link(target) = content { target.len() as u64 } else { 0 };
                Ok(About {
                    kind: node.kind(),
                    device: u64::MAX,
                    inode: id,
                    size,
                    modified: node.made.max(self.tree.touched(id)),
                    changed: node.made.max(self.tree.touched(id)),
                    accessed: node.made,
                    mode: 0o755,
                    owner: (0, 0),
                    names: 1,
                })
            }
        }
    }

    /// Lists the calls of a changed entry, with the running one.
    pub(crate) fn by(&self, before: &[u32]) -> Vec<u32> {
        let mut by = before.to_vec();
        let next = || self.tree.calls().len() as u32 + 1;
        let number = self.call.as_ref().map(|call| self.tree.call_number(call).unwrap_or_else(next));
        by.extend(number.filter(|number| by.last() != Some(number)));
        by
    }

    /// Returns the node of an entry, and the facts that make one.
    pub(crate) fn node_of(&self, place: &Place, found: &Found) -> io::Result<(NodeId, Node)> {
        match found {
            Found::Node(id, _) => {
                let node = self.tree.get(*id).cloned().ok_or(Errno::NOENT)?;
                Ok((*id, Node { by: self.by(&node.by), ..node }))
            }
            Found::Below(path, about) => {
                let content = match about.kind {
                    EntryKind::Link => Content::Link(self.bases.link(path)?),
                    _ => Content::Below,
                };
                let origin = Some(Origin { path: path.clone(), about: Some(*about) });
                let (parent, name) = (place.folder, place.name.clone());
                Ok((
                    self.tree.next_id(),
                    Node { parent, name, origin, content, made: 0, is_dated: false, mode: None, by: self.by(&[]) },
                ))
            }
        }
    }

    /// Returns a new node at a place.
    pub(crate) fn new_node(&self, place: &Place, content: Content) -> (NodeId, Node) {
        let (parent, name) = (place.folder, place.name.clone());
        (
            self.tree.next_id(),
            Node { parent, name, origin: None, content, made: now(), is_dated: false, mode: None, by: self.by(&[]) },
        )
    }

    /// Opens the content of a written file.
    pub(crate) fn open_content(&self, id: NodeId, read: bool, write: bool) -> io::Result<File> {
        let opened = self.contents.open_with(id.to_string(), OpenOptions::new().read(read).write(write))?;
        Ok(opened.into_std())
    }

    /// Creates an empty content, in place of what a killed process left there.
    pub(crate) fn create_content(&self, id: NodeId) -> io::Result<File> {
        self.remove_content(&id.to_string())?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        Ok(self.contents.open_with(id.to_string(), &options)?.into_std())
    }

    fn remove_content(&self, name: &str) -> io::Result<()> {
        match self.contents.remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Copies a real file with its time, and returns the content for its node. After an error, nothing of the copy is left.
    pub(crate) fn copy_up(
        &mut self,
        id: NodeId,
        path: &str,
        about: &About,
        until: Option<Instant>,
    ) -> io::Result<Content> {
        let free = self.free(about.size)?;
        let (mut from, found) = self.bases.read(path)?;
        if !found.is_same_entry(about) {
            return Err(Errno::BUSY.into());
        }
        self.copy_into(id, &mut from, about, (free, until)).inspect_err(|_| self.remove_copy(id, about))
    }

    fn copy_into(
        &mut self,
        id: NodeId,
        from: &mut File,
        about: &About,
        (free, until): (u64, Option<Instant>),
    ) -> io::Result<Content> {
        let mut copy = self.create_content(id)?;
        self.used += copy_in_time(from, &mut copy, free, until)?;
        let time = timespec(about.modified);
        futimens(&copy, &Timestamps { last_access: time, last_modification: time })?;
        if about.names > 1 {
            self.share_content(&id.to_string(), &shared(about.file()))?;
        }
        let made = About::of(&self.contents.symlink_metadata(id.to_string())?).changed;
        Ok(Content::Written(Some(made)))
    }

    /// Removes the copy of a real file for a node that does not get it.
    pub(crate) fn remove_copy(&mut self, id: NodeId, about: &About) {
        self.remove_contents([id]);
        if about.names > 1 && !self.has_copy(about) {
            let _ = self.remove_content(&shared(about.file()));
        }
    }

    /// Returns `true` if another name of a real file has a copy in the stage.
    pub(crate) fn has_copy(&self, about: &About) -> bool {
        about.names > 1 && self.linked.contains_key(&about.file())
    }

    /// Gives a real file's name the copy that another name has.
    pub(crate) fn join_copy(&mut self, id: NodeId, node: Node, about: &About) -> io::Result<Found> {
        let copied = self.linked.get(&about.file()).copied().ok_or(Errno::NOENT)?;
        self.share_content(&shared(about.file()), &id.to_string())?;
        let mut facts = Vec::new();
        self.tree.keep(node.parent, &mut facts);
        facts.push(Fact::Node { id, node: Node { content: Content::Written(Some(copied)), ..node } });
        self.record(facts)?;
        Ok(Found::Node(id, EntryKind::File))
    }

    /// Gives a file of the stage another name in its folder.
    pub(crate) fn share_content(&self, from: &str, to: &str) -> io::Result<()> {
        self.remove_content(to)?;
        self.contents.hard_link(from, &self.contents, to)
    }

    /// Returns the number of bytes that may still be written.
    ///
    /// # Errors
    ///
    /// There are fewer than needed, after removed files are counted no more.
    pub(crate) fn free(&mut self, needed: u64) -> io::Result<u64> {
        if self.used.saturating_add(needed) > self.limits.bytes && self.is_estimate {
            self.count_contents()?;
        }
        let free = self.limits.bytes.saturating_sub(self.used);
        if free < needed.max(1) { Err(Errno::DQUOT.into()) } else { Ok(free) }
    }

    /// Counts the bytes of all written files anew.
    pub(crate) fn count_contents(&mut self) -> io::Result<()> {
        let mut sizes = HashMap::new();
        for entry in self.contents.entries()? {
            let found = entry?.metadata();
            sizes.extend(found.map(|found| (found.ino(), found.size())));
        }
        self.used = sizes.into_values().fold(0, u64::saturating_add);
        self.is_estimate = false;
        Ok(())
    }

    /// Refuses a change of a folder that its owner's rights do not allow.
    pub(crate) fn check_folder(&self, folder: NodeId) -> io::Result<()> {
        match self.tree.origin(folder) {
            Some(path) => self.bases.check_access(path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK),
            None => Ok(()),
        }
    }

    /// Lists the facts that make a place empty, and the files of the stage that then have no name.
    pub(crate) fn vacate(&self, place: &Place, facts: &mut Vec<Fact>) -> Option<NodeId> {
        match place.found.as_ref()? {
            Found::Below(path, about) => {
                let hidden = Hidden { about: *about, by: self.by(&[]) };
                facts.push(Fact::Hidden { path: path.clone(), hidden });
                None
            }
            Found::Node(id, _) => {
                let node = self.tree.get(*id)?;
                self.hide(node, facts);
                facts.push(Fact::Gone(*id));
                matches!(node.content, Content::Written(_)).then_some(*id)
            }
        }
    }

    /// Lists the fact that hides the origin of a node that leaves its place.
    pub(crate) fn hide(&self, node: &Node, facts: &mut Vec<Fact>) {
        let Some(Origin { path, about }) = &node.origin else { return };
        // A folder that was only passed has no facts yet.
        if let Some(about) = about.or_else(|| self.bases.about(path).ok().flatten()) {
            facts.push(Fact::Hidden { path: path.clone(), hidden: Hidden { about, by: self.by(&node.by) } });
        }
    }

    /// Removes files of the stage that have no name any more. One that stays takes up room until the stage ends.
    pub(crate) fn remove_contents(&mut self, unnamed: impl IntoIterator<Item = NodeId>) {
        for id in unnamed {
            let _ = self.contents.remove_file(id.to_string());
            self.is_estimate = true;
        }
    }
}

/// Names the copy for all names of a real file.
pub(crate) fn shared((device, inode): (u64, u64)) -> String {
    format!("shared-{device}-{inode}")
}

/// Copies a file that has at most so many bytes.
pub(crate) fn copy_in_time(from: &mut File, to: &mut File, max: u64, until: Option<Instant>) -> io::Result<u64> {
    let mut copied = 0;
    loop {
        if until.is_some_and(|until| Instant::now() >= until) {
            return Err(Errno::BUSY.into());
        }
        let part = io::copy(&mut Read::take(&mut *from, COPY_BLOCK as u64), to)?;
        copied += part;
        match part {
            0 => break,
            _ if copied > max => return Err(Errno::DQUOT.into()),
            _ => {}
        }
    }
    to.flush()?;
    Ok(copied)
}

/// Returns the time in nanoseconds since 1970.
pub(crate) fn now() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128)
}
