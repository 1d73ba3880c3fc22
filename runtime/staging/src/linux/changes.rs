//! The changes that a stage holds, each compared with the real folders as they are now.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;

use super::base::{join, split};
use super::entry::About;
use super::fact::{Content, Hidden, Node, NodeId, Origin};
use super::resolve::Found;
use super::state::State;
use crate::types::{Change, ChangeKind, Conflict, EntryKind, StagedCall};

impl State {
    /// Lists all changes, by path.
    pub(crate) fn changes(&self) -> io::Result<Vec<Change>> {
        let (mut changes, mut replaced) = (Vec::new(), HashSet::new());
        for (id, node) in self.tree.nodes() {
            let over = match self.tree.is_in_place(node) {
                true => None,
                false => self.replaced(node),
            };
            if let Some(mut change) = self.change_of(id, node, over.as_ref().map(|(_, hidden)| *hidden))? {
                if let Some((path, hidden)) = over {
                    for call in self.calls(&hidden.by) {
                        if !change.calls.contains(&call) {
                            change.calls.push(call);
                        }
                    }
                    change.conflict = change.conflict.or(self.conflict_at(&path, &hidden.about)?);
                    // What a moved entry replaces is a loss of its own.
                    if change.kind != ChangeKind::Moved {
                        change.real.get_or_insert(path.clone());
                        change.was = (hidden.about.kind != change.entry).then_some(hidden.about.kind);
                        replaced.insert(path);
                    }
                } else if !self.tree.is_in_place(node) {
                    change.conflict = change.conflict.or(self.occupied(node)?);
                }
                changes.push(change);
            }
        }
        for (path, hidden) in self.tree.all_hidden() {
            if self.tree.carrier(&path).is_some() || replaced.contains(&path) {
                continue;
            }
            let mut conflict = self.conflict_at(&path, &hidden.about)?;
            if conflict.is_none() && hidden.about.kind == EntryKind::Folder && self.has_unseen(&path)? {
                conflict = Some(Conflict::NotEmpty);
            }
            changes.push(Change {
                path: PathBuf::from(&path),
                from: None,
                kind: ChangeKind::Removed,
                entry: hidden.about.kind,
                was: None,
                before: (hidden.about.kind == EntryKind::File).then_some(hidden.about.size),
                after: None,
                other_names: 0,
                calls: self.calls(&hidden.by),
                conflict,
                node: None,
                real: Some(path),
            });
        }
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(changes)
    }

    /// Returns the hidden entry whose place a node has taken, if one replaces the other in one step: neither is a folder.
    pub(crate) fn replaced(&self, node: &Node) -> Option<(String, &Hidden)> {
        let path = join(self.tree.origin(node.parent)?, &node.name);
        let hidden = self.tree.hidden(&path)?;
        let is_moved = self.tree.carrier(&path).is_some();
        let has_folder = hidden.about.kind == EntryKind::Folder || node.kind() == EntryKind::Folder;
        (!is_moved && !has_folder).then_some((path, hidden))
    }

    /// Returns the node that has taken the place of a hidden entry.
    pub(crate) fn in_place_of(&self, path: &str) -> Option<&Node> {
        let (folder, name) = split(path);
        self.tree.get(self.tree.child(self.tree.carrier(folder)?, name)?)
    }

    /// Describes the change of a node; `None` if it is as it was.
    fn change_of(&self, id: NodeId, node: &Node, over: Option<&Hidden>) -> io::Result<Option<Change>> {
        let is_written = self.is_written(id, node)?;
        let (kind, conflict) = match &node.origin {
            None if over.is_some() => (ChangeKind::Modified, None),
            None => (ChangeKind::Added, None),
            Some(Origin { about: None, .. }) => return Ok(None),
            Some(Origin { path, about: Some(about) }) => match (self.tree.is_in_place(node), is_written) {
                (true, false) => return Ok(None),
                (true, true) => (ChangeKind::Modified, self.conflict_at(path, about)?),
                (false, _) => (ChangeKind::Moved, self.conflict_at(path, about)?),
            },
        };
        let about = node.origin.as_ref().and_then(|origin| origin.about);
        let replaced = over.filter(|_| node.origin.is_none()).map(|hidden| hidden.about);
        let before = replaced.or(about).filter(|about| about.kind == EntryKind::File);
        let after = match node.kind() {
            EntryKind::File => self.about(&Found::Node(id, EntryKind::File)).ok().map(|about| about.size),
            _ => None,
        };
        let from = node.origin.as_ref().filter(|_| kind == ChangeKind::Moved).map(|origin| PathBuf::from(&origin.path));
        let other_names = match about {
            Some(about) if is_written && about.names > 1 => about.names.saturating_sub(self.known_names(&about)),
            _ => 0,
        };
        Ok(Some(Change {
            path: self.tree.path(id).into(),
            from,
            kind,
            entry: node.kind(),
            was: None,
            before: before.map(|about| about.size),
            after,
            other_names,
            calls: self.calls(&node.by),
            conflict,
            node: Some(id),
            real: node.origin.as_ref().map(|origin| origin.path.clone()),
        }))
    }

    fn calls(&self, numbers: &[u32]) -> Vec<StagedCall> {
        numbers.iter().filter_map(|number| self.tree.calls().get((*number as usize).checked_sub(1)?).cloned()).collect()
    }

    /// Returns `true` if a file's content differs from its origin's.
    pub(crate) fn is_written(&self, id: NodeId, node: &Node) -> io::Result<bool> {
        let Content::Written(copied) = node.content else { return Ok(false) };
        let (Some(copied), Some(Origin { path, about: Some(before) })) = (copied, &node.origin) else {
            return Ok(true);
        };
        let now = match self.contents.symlink_metadata(id.to_string()) {
            // Another process has removed it since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            found => About::of(&found?),
        };
        if now.changed == copied {
            return Ok(false);
        }
        if (now.size, now.modified) != (before.size, before.modified) {
            return Ok(true);
        }
        // A second name changes the time of a file and nothing else of it.
        match self.bases.read(path) {
            Ok((below, _)) => Ok(!is_same_content(self.open_content(id, true, false)?, below)?),
            Err(_) => Ok(true),
        }
    }

    /// Compares a real entry with what it was.
    pub(crate) fn conflict_at(&self, path: &str, before: &About) -> io::Result<Option<Conflict>> {
        Ok(match self.bases.about(path)? {
            None => Some(Conflict::Gone),
            Some(now) if !now.is_unchanged(before) => Some(Conflict::Changed),
            // Times of change cannot be set: whoever set the time of the content back is seen.
            Some(now) if now.kind != EntryKind::Folder && now.changed != before.changed => Some(Conflict::Changed),
            Some(_) => None,
        })
    }

    /// Returns the conflict of an entry that is put into a real folder.
    fn occupied(&self, node: &Node) -> io::Result<Option<Conflict>> {
        let Some(folder) = self.tree.origin(node.parent) else { return Ok(None) };
        let path = join(folder, &node.name);
        if self.tree.hidden(&path).is_none() && self.bases.about(&path)?.is_some() {
            return Ok(Some(Conflict::Occupied));
        }
        match self.bases.about(folder)? {
            Some(about) if about.kind == EntryKind::Folder => Ok(None),
            _ => Ok(Some(Conflict::Gone)),
        }
    }

    /// Returns `true` if a removed folder has entries that the stage has neither removed nor moved.
    fn has_unseen(&self, path: &str) -> io::Result<bool> {
        for entry in self.bases.list(path)? {
            let name = entry?.file_name();
            if name.to_str().is_none_or(|name| !self.tree.is_hidden_in(path, name)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Compares the rest of two files.
pub(crate) fn is_same_content(one: File, other: File) -> io::Result<bool> {
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::with_capacity(1 << 16, one), BufReader::with_capacity(1 << 16, other));
    let (mut left, mut right) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let read = one.read(&mut left)?;
        if read == 0 {
            return Ok(other.read(&mut right[..1])? == 0);
        }
        match other.read_exact(&mut right[..read]) {
            Ok(()) if left[..read] == right[..read] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}
