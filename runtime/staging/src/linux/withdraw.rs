//! Changes that are taken back one by one: the stage then shows the real entries again.

use std::io;

use super::base::split;
use super::fact::{Content, Fact, Node, NodeId, Origin};
use super::state::State;
use crate::types::{Change, ChangeKind, EntryKind, Refused};

impl State {
    /// Takes changes back: what was added or changed first, the deepest before its folder, then what was removed.
    pub(crate) fn withdraw(&mut self, changes: &[Change]) -> io::Result<Vec<Refused>> {
        let (removed, others): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.kind == ChangeKind::Removed);
        let mut refused = Vec::new();
        for change in others.into_iter().rev().chain(removed) {
            if let Err(reason) = self.withdraw_one(change)? {
                refused.push(Refused { path: change.path.clone(), reason });
            }
        }
        Ok(refused)
    }

    fn withdraw_one(&mut self, change: &Change) -> io::Result<Result<(), &'static str>> {
        let Some(id) = change.node else {
            let Some(path) = &change.real else { return Ok(Ok(())) };
            return match self.place_of(path).is_some() || self.is_shown(split(path).0) {
                true => self.record(vec![Fact::Shown(path.clone())]).map(Ok),
                false => Ok(Err("its folder is removed, or another entry is at its place")),
            };
        };
        let Some(node) = self.tree.get(id).cloned() else { return Ok(Ok(())) };
        if node.origin.is_none() && change.entry == EntryKind::Folder && self.tree.children(id).next().is_some() {
            return Ok(Err("it contains entries that stay"));
        }
        match &node.origin {
            Some(origin) if change.kind == ChangeKind::Moved => self.move_back(id, &node, &origin.clone()),
            _ => {
                let mut facts = vec![Fact::Gone(id)];
                // The file that a new one replaced is shown again.
                facts.extend(change.real.clone().filter(|_| node.origin.is_none()).map(Fact::Shown));
                let unnamed = self.unshare(id, &node, &mut facts);
                self.record(facts)?;
                self.remove_contents(unnamed);
                Ok(Ok(()))
            }
        }
    }

    /// Returns a moved entry to its place.
    fn move_back(&mut self, id: NodeId, node: &Node, origin: &Origin) -> io::Result<Result<(), &'static str>> {
        let Some(folder) = self.place_of(&origin.path) else {
            return Ok(Err("its former folder is removed, or another entry is at its former place"));
        };
        if self.tree.is_below(folder, id) {
            return Ok(Err("its former folder is inside it"));
        }
        if node.kind() == EntryKind::Folder && self.has_new_entries(id) {
            return Ok(Err("it contains new or moved entries: drop them first"));
        }
        let replaced = self.replaced(node).map(|(path, _)| Fact::Shown(path));
        let mut facts: Vec<Fact> = replaced.into_iter().collect();
        let unnamed = match node.content {
            Content::Written(_) => self.unshare(id, node, &mut facts),
            _ => Vec::new(),
        };
        match node.kind() {
            EntryKind::Folder => {
                self.tree.keep(folder, &mut facts);
                let name = split(&origin.path).1.to_owned();
                facts.push(Fact::Node { id, node: Node { parent: folder, name, ..node.clone() } });
            }
            _ => facts.push(Fact::Gone(id)),
        }
        facts.push(Fact::Shown(origin.path.clone()));
        self.record(facts)?;
        self.remove_contents(unnamed);
        Ok(Ok(()))
    }

    /// Lists the facts that give a written file's other names its real content again, and the staged files that then
    /// have no name.
    fn unshare(&self, id: NodeId, node: &Node, facts: &mut Vec<Fact>) -> Vec<NodeId> {
        let mut unnamed = vec![id];
        let Some(file) = node.origin.as_ref().and_then(|origin| origin.about).filter(|file| file.names > 1) else {
            return unnamed;
        };
        let names = self.tree.names_of(file.file()).into_iter().flat_map(|names| &names.nodes);
        for other in names.copied().filter(|other| *other != id) {
            let Some(node) = self.tree.get(other) else { continue };
            facts.push(match self.tree.is_in_place(node) {
                true => Fact::Gone(other),
                false => Fact::Node { id: other, node: Node { content: Content::Below, ..node.clone() } },
            });
            unnamed.push(other);
        }
        facts.push(Fact::Unshared(file.device, file.inode));
        unnamed
    }

    /// Finds the folder in which a hidden entry can be shown again.
    fn place_of(&self, path: &str) -> Option<NodeId> {
        let (folder, name) = split(path);
        let id = self.tree.carrier(folder)?;
        self.tree.child(id, name).is_none().then_some(id)
    }

    /// Returns `true` if a real folder that no node carries is shown at its place.
    fn is_shown(&self, folder: &str) -> bool {
        let mut path = folder;
        while self.tree.hidden(path).is_none() {
            let (above, name) = split(path);
            match self.tree.carrier(above) {
                Some(id) => return self.tree.child(id, name).is_none(),
                None if above == path => return false,
                None => path = above,
            }
        }
        false
    }

    /// Returns `true` if a folder contains entries that came into it in the stage.
    fn has_new_entries(&self, folder: NodeId) -> bool {
        let mut left = vec![folder];
        while let Some(id) = left.pop() {
            for (_, child) in self.tree.children(id) {
                match self.tree.get(child) {
                    Some(node) if !self.tree.is_in_place(node) => return true,
                    _ => left.push(child),
                }
            }
        }
        false
    }
}
