//! Changes in the overlay, with the results that the system gives for the same changes in real folders.

use std::fs::File;
use std::io;

use rustix::fs::{Access, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
use rustix::io::Errno;

use super::base::join;
use super::entry::About;
use super::fact::{Content, Fact, Node, NodeId, Origin, REPLACED};
use super::resolve::{Found, Last, Place, Target};
use super::rules::Rules;
use super::state::{State, now};
use crate::types::EntryKind;

/// Manner of opening.
#[derive(Debug, Clone, Copy, Default)]
pub struct Open {
    /// A link at the end of the path is followed.
    pub follow: bool,
    /// Only a folder is opened.
    pub folder: bool,
    /// A missing file is created.
    pub create: bool,
    /// The file must be missing.
    pub exclusive: bool,
    /// The file is emptied.
    pub truncate: bool,
    /// The file is read.
    pub read: bool,
    /// The file is written.
    pub write: bool,
}

/// Opened entry.
#[derive(Debug)]
pub(crate) enum Opened {
    Folder(NodeId),
    /// File of the stage.
    Written(File),
    /// Real file, by its path.
    Below(String),
}

impl State {
    pub(crate) fn open(&mut self, from: NodeId, path: &str, how: Open, rules: &dyn Rules) -> io::Result<Opened> {
        let writes = how.write || how.create || how.truncate;
        let target = self.resolve(from, path, if how.follow { Last::Follow } else { Last::Keep })?;
        let place = match target {
            Target::Folder(_) if how.exclusive && !how.folder => return Err(Errno::EXIST.into()),
            Target::Folder(_) if writes => return Err(Errno::ISDIR.into()),
            Target::Folder(id) if self.tree.get(id).is_some() => return Ok(Opened::Folder(id)),
            Target::Folder(_) => return Err(Errno::NOENT.into()),
            Target::Place(place) => place,
        };
        match &place.found {
            None if how.create && !how.folder => {
                // An exclusive creation follows no link, not even one that leads nowhere.
                if how.exclusive
                    && matches!(self.resolve(from, path, Last::Keep)?, Target::Place(kept) if kept.found.is_some())
                {
                    return Err(Errno::EXIST.into());
                }
                self.create(&place, rules).map(Opened::Written)
            }
            None => Err(Errno::NOENT.into()),
            Some(found) => match found.kind() {
                EntryKind::Link if !how.folder => Err(Errno::LOOP.into()),
                EntryKind::Other if !how.folder => Err(Errno::PERM.into()),
                EntryKind::Folder if how.exclusive => Err(Errno::EXIST.into()),
                EntryKind::Folder if writes => Err(Errno::ISDIR.into()),
                // Each folder is a node.
                EntryKind::Folder => match found {
                    Found::Node(id, _) => Ok(Opened::Folder(*id)),
                    Found::Below(..) => Err(Errno::NOTDIR.into()),
                },
                _ if how.folder || place.slash => Err(Errno::NOTDIR.into()),
                _ if how.exclusive => Err(Errno::EXIST.into()),
                _ if writes => self.open_written(&place, how, rules).map(Opened::Written),
                _ => self.open_read(found),
            },
        }
    }

    fn open_read(&self, found: &Found) -> io::Result<Opened> {
        match found {
            Found::Below(path, _) => Ok(Opened::Below(path.clone())),
            Found::Node(id, _) => match self.tree.get(*id) {
                Some(Node { content: Content::Written(_), .. }) => {
                    self.open_content(*id, true, false).map(Opened::Written)
                }
                Some(Node { origin: Some(origin), .. }) => Ok(Opened::Below(origin.path.clone())),
                _ => Err(Errno::NOENT.into()),
            },
        }
    }

    /// Creates a file.
    fn create(&mut self, place: &Place, rules: &dyn Rules) -> io::Result<File> {
        self.judge(place, rules)?;
        if place.slash {
            return Err(Errno::ISDIR.into());
        }
        self.check_folder(place.folder)?;
        self.free(1)?;
        rules.count()?;
        let (id, node) = self.new_node(place, Content::Written(None));
        let file = self.create_content(id)?;
        self.place_node(place, id, node, Vec::new())?;
        Ok(file)
    }

    /// Opens a file for writing, as a copy of the real one.
    fn open_written(&mut self, place: &Place, how: Open, rules: &dyn Rules) -> io::Result<File> {
        let Some(found) = &place.found else { return Err(Errno::NOENT.into()) };
        self.judge(place, rules)?;
        let id = self.copy(place, found, how.truncate, rules)?;
        let file = self.open_content(id, how.read, true)?;
        if how.truncate {
            file.set_len(0)?;
            self.is_estimate = true;
        }
        Ok(file)
    }

    /// Gives a file a content of its own in the stage, and notes the running call with it.
    fn copy(&mut self, place: &Place, found: &Found, is_emptied: bool, rules: &dyn Rules) -> io::Result<NodeId> {
        let (id, mut node) = self.node_of(place, found)?;
        if let Content::Below = node.content {
            let Some(origin) = node.origin.clone() else { return Err(Errno::NOENT.into()) };
            let about = self.bases.about(&origin.path)?.ok_or(Errno::NOENT)?;
            rules.file(&about, &origin.path)?;
            self.bases.check_access(&origin.path, Access::WRITE_OK)?;
            node.content = match is_emptied && about.names == 1 {
                true => {
                    self.free(1)?;
                    self.create_content(id)?;
                    Content::Written(Some(REPLACED))
                }
                false => self.copy_up(id, &origin.path, &about, rules.until())?,
            };
            node.origin = Some(Origin { about: Some(about), ..origin });
            self.place_node(place, id, node, Vec::new()).inspect_err(|_| self.remove_copy(id, &about))?;
        } else if self.tree.get(id) != Some(&node) {
            self.place_node(place, id, node, Vec::new())?;
        }
        Ok(id)
    }

    /// Sets the times of an entry: a file has them in its own content, a new folder or link gets them with the commit.
    pub(crate) fn touch(
        &mut self,
        (from, path): (NodeId, &str),
        follow: bool,
        times: &Timestamps,
        rules: &dyn Rules,
    ) -> io::Result<()> {
        let Target::Place(place) = self.resolve(from, path, if follow { Last::Follow } else { Last::Keep })? else {
            return Err(Errno::OPNOTSUPP.into());
        };
        let found = place.found.clone().ok_or(Errno::NOENT)?;
        if place.slash && found.kind() != EntryKind::Folder {
            return Err(Errno::NOTDIR.into());
        }
        self.judge(&place, rules)?;
        if found.kind() == EntryKind::File {
            let id = self.copy(&place, &found, false, rules)?;
            return Ok(futimens(self.open_content(id, true, true)?, times)?);
        }
        if found.kind() == EntryKind::Other {
            return Err(Errno::PERM.into());
        }
        let (id, node) = self.node_of(&place, &found)?;
        // The times of a real folder would be others again after the next change in it.
        if node.origin.is_some() {
            return Err(Errno::OPNOTSUPP.into());
        }
        let made = match times.last_modification.tv_nsec {
            UTIME_OMIT => return Ok(()),
            UTIME_NOW => now(),
            rest => i128::from(times.last_modification.tv_sec) * 1_000_000_000 + i128::from(rest),
        };
        self.place_node(&place, id, Node { made, is_dated: true, ..node }, Vec::new())?;
        self.tree.untouch(id);
        Ok(())
    }

    /// Puts a node at a place, after these facts.
    pub(crate) fn place_node(
        &mut self,
        place: &Place,
        id: NodeId,
        mut node: Node,
        mut facts: Vec<Fact>,
    ) -> io::Result<()> {
        self.tree.keep(place.folder, &mut facts);
        (node.parent, node.name) = (place.folder, place.name.clone());
        let is_new = self.tree.get(id).is_none();
        facts.push(Fact::Node { id, node });
        self.record(facts).inspect_err(|_| {
            if is_new {
                self.remove_contents([id]);
            }
        })
    }

    pub(crate) fn make_folder(&mut self, from: NodeId, path: &str, rules: &dyn Rules) -> io::Result<()> {
        let place = match self.place(from, path) {
            // `.` and `..` exist.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => return Err(Errno::EXIST.into()),
            place => place?,
        };
        if place.found.is_some() {
            return Err(Errno::EXIST.into());
        }
        self.judge(&place, rules)?;
        self.check_folder(place.folder)?;
        let (id, node) = self.new_node(&place, Content::Folder);
        self.place_node(&place, id, node, Vec::new())
    }

    pub(crate) fn make_link(&mut self, from: NodeId, path: &str, target: &str, rules: &dyn Rules) -> io::Result<()> {
        let place = self.place(from, path)?;
        self.judge(&place, rules)?;
        if place.slash {
            return Err(no_name(&place).into());
        }
        rules.placed(&self.path_of(&place))?;
        self.check_link(place.folder, target, rules)?;
        if target.is_empty() {
            return Err(Errno::NOENT.into());
        }
        if place.found.is_some() {
            return Err(Errno::EXIST.into());
        }
        self.check_folder(place.folder)?;
        let (id, node) = self.new_node(&place, Content::Link(target.to_owned()));
        self.place_node(&place, id, node, Vec::new())
    }

    /// Gives a file another name.
    pub(crate) fn make_name(&mut self, from: (NodeId, &str), to: (NodeId, &str), rules: &dyn Rules) -> io::Result<()> {
        let source = self.place(from.0, from.1)?;
        self.judge(&source, rules)?;
        let target = self.place(to.0, to.1)?;
        self.judge(&target, rules)?;
        require_folder_after_slash(&source)?;
        if target.slash {
            return Err(no_name(&target).into());
        }
        let found = source.found.clone().ok_or(Errno::NOENT)?;
        self.check_moved(&source, &target, &found, rules)?;
        self.check_name(&source, &target)?;
        // A second name of a link could not stay one with the first.
        if found.kind() != EntryKind::File {
            return Err(Errno::PERM.into());
        }
        let first = self.copy(&source, &found, false, rules)?;
        let (id, mut node) = self.new_node(&target, Content::Written(None));
        node.mode = self.tree.get(first).and_then(Node::permissions);
        self.share_content(&first.to_string(), &id.to_string())?;
        self.place_node(&target, id, node, Vec::new())
    }

    fn check_name(&self, source: &Place, target: &Place) -> io::Result<()> {
        if target.found.is_some() {
            return Err(Errno::EXIST.into());
        }
        self.check_device(source.folder, target.folder)?;
        self.check_folder(target.folder)
    }

    pub(crate) fn remove_file(&mut self, from: NodeId, path: &str, rules: &dyn Rules) -> io::Result<()> {
        let place = self.place(from, path)?;
        self.judge(&place, rules)?;
        require_folder_after_slash(&place)?;
        match place.found.as_ref().map(Found::kind) {
            None => return Err(Errno::NOENT.into()),
            Some(EntryKind::Folder) => return Err(Errno::ISDIR.into()),
            _ => self.check_folder(place.folder)?,
        }
        self.remove(&place)
    }

    pub(crate) fn remove_folder(&mut self, from: NodeId, path: &str, rules: &dyn Rules) -> io::Result<()> {
        let place = self.place(from, path)?;
        self.judge(&place, rules)?;
        let id = match &place.found {
            None => return Err(Errno::NOENT.into()),
            Some(Found::Node(id, EntryKind::Folder)) => *id,
            Some(_) => return Err(Errno::NOTDIR.into()),
        };
        if !self.is_empty(id)? {
            return Err(Errno::NOTEMPTY.into());
        }
        self.check_folder(place.folder)?;
        self.remove(&place)
    }

    fn remove(&mut self, place: &Place) -> io::Result<()> {
        let mut facts = Vec::new();
        self.tree.keep(place.folder, &mut facts);
        let unnamed = self.vacate(place, &mut facts);
        self.record(facts)?;
        self.remove_contents(unnamed);
        Ok(())
    }

    pub(crate) fn rename(&mut self, from: (NodeId, &str), to: (NodeId, &str), rules: &dyn Rules) -> io::Result<()> {
        let source = self.place(from.0, from.1)?;
        self.judge(&source, rules)?;
        let target = self.place(to.0, to.1)?;
        self.judge(&target, rules)?;
        require_folder_after_slash(&source)?;
        let found = source.found.clone().ok_or(Errno::NOENT)?;
        let kind = found.kind();
        if target.slash && kind != EntryKind::Folder {
            return Err(Errno::NOTDIR.into());
        }
        self.check_moved(&source, &target, &found, rules)?;
        let same = (source.folder, &source.name) == (target.folder, &target.name);
        if same || self.is_one_file(&found, target.found.as_ref())? {
            return Ok(());
        }
        self.check_device(source.folder, target.folder)?;
        self.check_replaced(&source, &found, &target)?;
        self.check_folder(source.folder)?;
        self.check_folder(target.folder)?;
        let (id, mut node) = self.node_of(&source, &found)?;
        let mut facts = Vec::new();
        self.tree.keep(source.folder, &mut facts);
        let unnamed = match self.rewritten(&node, &target)? {
            // A new file that takes the place of a real one is its new content, as many programs write it.
            Some((origin, by)) => {
                node.by.extend(by.into_iter().filter(|call| !node.by.contains(call)).collect::<Vec<_>>());
                (node.origin, node.content) = (Some(origin), Content::Written(Some(REPLACED)));
                match target.found {
                    Some(Found::Node(old, _)) => {
                        facts.push(Fact::Gone(old));
                        Some(old)
                    }
                    _ => None,
                }
            }
            None => {
                let unnamed = self.vacate(&target, &mut facts);
                self.hide(&node, &mut facts);
                unnamed
            }
        };
        self.place_node(&target, id, node, facts)?;
        self.remove_contents(unnamed);
        Ok(())
    }

    /// Lists entries of the stage in a folder after a name, at most so many.
    pub(crate) fn list_staged(&self, folder: NodeId, after: &str, most: usize) -> Vec<(String, EntryKind)> {
        let entry =
            |(name, id): (&str, NodeId)| (name.to_owned(), self.tree.get(id).map_or(EntryKind::Other, Node::kind));
        self.tree.children_after(folder, after).take(most).map(entry).collect()
    }

    /// Returns `true` if a folder shows the entry of its real folder with a name.
    /// A node that is as new as `since`, or newer, counts as the real entry that it carries at its place.
    pub(crate) fn shows_below(&self, folder: NodeId, name: &str, since: NodeId) -> bool {
        match self.tree.child(folder, name) {
            Some(id) => id >= since && self.tree.get(id).is_some_and(|node| self.tree.is_in_place(node)),
            None => self.tree.origin(folder).is_some_and(|origin| !self.tree.is_hidden_in(origin, name)),
        }
    }

    /// Returns `true` if a folder shows no entry.
    pub(crate) fn is_empty(&self, folder: NodeId) -> io::Result<bool> {
        let Some(node) = self.tree.get(folder) else { return Err(Errno::NOENT.into()) };
        if self.tree.children(folder).next().is_some() {
            return Ok(false);
        }
        let Some(origin) = &node.origin else { return Ok(true) };
        for entry in self.bases.list(&origin.path)? {
            let name = entry?.file_name();
            if name.to_str().is_none_or(|name| self.shows_below(folder, name, NodeId::MAX)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the real file that a new one replaces, with the calls that changed it before; `None` if it is another, or has several
    /// names, which keep its content.
    fn rewritten(&self, node: &Node, target: &Place) -> io::Result<Option<(Origin, Vec<u32>)>> {
        if node.origin.is_some() || !matches!(node.content, Content::Written(_)) {
            return Ok(None);
        }
        let (origin, by) = match &target.found {
            Some(Found::Below(path, about)) if about.kind == EntryKind::File => {
                (Origin { path: path.clone(), about: Some(*about) }, Vec::new())
            }
            Some(Found::Node(id, EntryKind::File)) => match self.tree.get(*id) {
                Some(Node { origin: Some(origin), by, .. }) => (origin.clone(), by.clone()),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(origin.about.is_some_and(|about| about.names == 1).then_some((origin, by)))
    }

    /// Path of a place.
    pub(crate) fn path_of(&self, place: &Place) -> String {
        join(&self.tree.path(place.folder), &place.name)
    }

    /// Describes the real folder that a folder carries.
    pub(crate) fn real(&self, folder: NodeId) -> Option<About> {
        let origin = self.tree.get(folder)?.origin.as_ref()?;
        origin.about.or_else(|| self.bases.about(&origin.path).ok().flatten())
    }
}

/// Refuses an entry that is no folder although its path ends in a slash.
fn require_folder_after_slash(place: &Place) -> io::Result<()> {
    match (place.slash, place.found.as_ref().map(Found::kind)) {
        (false, _) | (_, Some(EntryKind::Folder)) => Ok(()),
        (_, Some(_)) => Err(Errno::NOTDIR.into()),
        (_, None) => Err(Errno::NOENT.into()),
    }
}

/// Returns the system's error for a path that ends with a slash as the name of a new link.
fn no_name(place: &Place) -> Errno {
    match place.found.as_ref().map(Found::kind) {
        Some(EntryKind::Folder) => Errno::EXIST,
        Some(_) => Errno::NOTDIR,
        None => Errno::NOENT,
    }
}
