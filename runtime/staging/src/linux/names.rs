//! Real files with several names. A written one has its new content under each of them, once they are found.

use std::io;
use std::time::{Duration, Instant};

use super::base::{join, kind_of, split};
use super::entry::About;
use super::fact::{Node, NodeId};
use super::resolve::Found;
use super::state::{State, shared};
use crate::types::EntryKind;

/// Maximum time of the search.
const MAX_TIME: Duration = Duration::from_secs(20);

impl State {
    /// Finds the other names of written files in the real folders, and gives them the new content too. Folders that cannot be read
    /// are left out, and the search has an end.
    pub(crate) fn find_names(&mut self) -> io::Result<()> {
        if self.linked.is_empty() {
            return Ok(());
        }
        let (end, mut searched) = (Instant::now() + MAX_TIME, 0);
        let mut left: Vec<String> = self.bases.paths().map(str::to_owned).collect();
        while let Some(folder) = left.pop() {
            let Ok(entries) = self.bases.list(&folder) else { continue };
            for entry in entries {
                let Ok(entry) = entry else { break };
                searched += 1;
                if searched > self.limits.searched || Instant::now() >= end {
                    return Ok(());
                }
                let Ok(name) = entry.file_name().into_string() else { continue };
                let path = join(&folder, &name);
                match kind_of(&entry) {
                    Ok(EntryKind::Folder) => left.push(path),
                    Ok(EntryKind::File) if entry.metadata().is_ok_and(|found| self.has_copy(&About::of(&found))) => {
                        self.name_found(&path)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Looks up a real path where the stage shows it, which gives a name of a written file its content.
    fn name_found(&mut self, path: &str) -> io::Result<()> {
        if let Some(id) = self.tree.carrier(path) {
            return self.node_found(id).map(drop);
        }
        let (mut names, mut above) = (Vec::new(), path);
        let mut at = loop {
            let (folder, name) = split(above);
            if self.tree.is_hidden_in(folder, name) {
                return Ok(());
            }
            names.push(name);
            match self.tree.carrier(folder) {
                Some(id) => break id,
                None if folder == "/" => return Ok(()),
                None => above = folder,
            }
        };
        for name in names.into_iter().rev() {
            match self.lookup(at, name)? {
                Some(Found::Node(id, EntryKind::Folder)) => at = id,
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Counts the names of a real file that have a node or are hidden.
    pub(crate) fn known_names(&self, file: &About) -> u64 {
        self.carried_names(file) + self.gone_names(file)
    }

    /// Counts the names under which the stage shows a real file.
    pub(crate) fn shown_names(&self, file: &About) -> u64 {
        match file.kind == EntryKind::Folder || file.names == 1 {
            true => file.names,
            false => file.names.saturating_sub(self.gone_names(file)).max(1),
        }
    }

    /// Counts the names of a written file: those that were given to it, and those of the real file.
    pub(crate) fn names_of_written(&self, id: NodeId, node: &Node, written: &About) -> io::Result<u64> {
        let file = match node.origin.as_ref().and_then(|origin| origin.about) {
            Some(file) if file.names > 1 => file,
            Some(_) => return Ok(written.names),
            None if written.names == 1 || self.linked.is_empty() => return Ok(written.names),
            None => match self.shared_by(id, written)? {
                Some(file) => file,
                None => return Ok(written.names),
            },
        };
        // One name in the stage is that of the copy for all names.
        let given = written.names.saturating_sub(1 + self.carried_names(&file));
        Ok(self.shown_names(&file) + given)
    }

    /// Finds the real file that a staged file is a copy of.
    fn shared_by(&self, id: NodeId, written: &About) -> io::Result<Option<About>> {
        for file in self.linked.keys() {
            let copy = self.contents.symlink_metadata(shared(*file)).map(|found| About::of(&found));
            if !copy.is_ok_and(|copy| copy.is_same_entry(written)) {
                continue;
            }
            let names = self.tree.names_of(*file);
            let first = names.into_iter().flat_map(|names| &names.nodes).find(|node| **node != id);
            return Ok(first.and_then(|first| self.tree.get(*first)?.origin.as_ref()?.about));
        }
        Ok(None)
    }

    fn carried_names(&self, file: &About) -> u64 {
        self.tree.names_of(file.file()).map_or(0, |names| names.nodes.len() as u64)
    }

    fn gone_names(&self, file: &About) -> u64 {
        let names = self.tree.names_of(file.file()).into_iter().flat_map(|names| &names.hidden);
        names.filter(|path| self.tree.carrier(path).is_none()).count() as u64
    }
}
