//! Real files with several names. A written one has its new content under each of them, once they are found.

use std::io;
use std::time::{Duration, Instant};

use crate::base::{join, split};
use crate::entry::About;
use crate::resolve::Found;
use crate::state::{State, shared};
use crate::tree::{Node, NodeId};
use crate::types::EntryKind;

/// Maximum number of entries that are searched for other names of written files.
const MAX_SEARCHED: usize = 1_000_000;
/// Maximum time of the search.
const MAX_TIME: Duration = Duration::from_secs(60);

impl State {
    /// Finds the other names of written files in the real folders, and gives them the new content too.
    pub(crate) fn find_names(&mut self) -> io::Result<()> {
        if self.linked.is_empty() {
            return Ok(());
        }
        let (end, mut searched) = (Instant::now() + MAX_TIME, 0);
        let mut left: Vec<String> = self.bases.paths().map(str::to_owned).collect();
        while let Some(folder) = left.pop() {
            for entry in self.bases.list(&folder)? {
                let entry = entry?;
                searched += 1;
                if searched > MAX_SEARCHED || Instant::now() >= end {
                    return Ok(());
                }
                let Ok(name) = entry.file_name().into_string() else { continue };
                let path = join(&folder, &name);
                match EntryKind::of(entry.file_type()?) {
                    EntryKind::Folder => left.push(path),
                    EntryKind::File => {
                        let about = About::of(&entry.metadata()?);
                        if self.has_copy(&about) {
                            self.name_found(&path)?;
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Looks up a real path where the stage shows it, which gives a name of a written file its content.
    fn name_found(&mut self, path: &str) -> io::Result<()> {
        if self.tree.hidden().contains_key(path) {
            let carrier = self.tree.nodes().find(|(id, _)| self.tree.origin(*id) == Some(path)).map(|(id, _)| id);
            return carrier.map_or(Ok(()), |id| self.node_found(id).map(drop));
        }
        let (mut names, mut above) = (Vec::new(), path);
        let mut at = loop {
            let (folder, name) = split(above);
            names.push(name);
            let carries = |id: NodeId| self.tree.origin(id) == Some(folder);
            let mut nodes = self.tree.nodes();
            match nodes.find(|(id, node)| node.kind() == EntryKind::Folder && carries(*id)) {
                Some((id, _)) => break id,
                None if folder == "/" || self.tree.hidden().contains_key(folder) => return Ok(()),
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

    /// Number of names of a real file that have a node, or that the stage does not show.
    pub(crate) fn known_names(&self, file: &About) -> u64 {
        self.carried_names(file) + self.gone_names(file)
    }

    /// Number of names of a real file that the stage shows.
    pub(crate) fn shown_names(&self, file: &About) -> u64 {
        if file.kind == EntryKind::Folder || file.names == 1 {
            file.names
        } else {
            file.names.saturating_sub(self.gone_names(file)).max(1)
        }
    }

    /// Number of names of a written file: those that were given to it, and those of the real file.
    pub(crate) fn names_of_written(&self, node: &Node, written: &About) -> io::Result<u64> {
        let file = match node.origin.as_ref().and_then(|origin| origin.about) {
            Some(file) if file.names > 1 => file,
            Some(_) => return Ok(written.names),
            None if written.names == 1 || self.linked.is_empty() => return Ok(written.names),
            None => match self.shared_by(written)? {
                Some(file) => file,
                None => return Ok(written.names),
            },
        };
        // One name in the stage is that of the copy for all names.
        let given = written.names.saturating_sub(1 + self.carried_names(&file));
        Ok(self.shown_names(&file) + given)
    }

    /// Finds the real file of which a file of the stage is the copy.
    fn shared_by(&self, written: &About) -> io::Result<Option<About>> {
        for (_, node) in self.tree.nodes() {
            let Some(file) = node.origin.as_ref().and_then(|origin| origin.about) else { continue };
            if self.has_copy(&file) {
                let copy = About::of(&self.contents.symlink_metadata(shared(&file))?);
                if copy.is_same_entry(written) {
                    return Ok(Some(file));
                }
            }
        }
        Ok(None)
    }

    fn carried_names(&self, file: &About) -> u64 {
        let about = |node: &Node| node.origin.as_ref().and_then(|origin| origin.about);
        let nodes = self.tree.nodes().filter(|(_, node)| about(node).is_some_and(|about| about.is_same_entry(file)));
        nodes.count() as u64
    }

    fn gone_names(&self, file: &About) -> u64 {
        let mut names = self.tree.hidden().iter().filter(|(_, hidden)| hidden.about.is_same_entry(file)).peekable();
        if names.peek().is_none() {
            return 0;
        }
        let carried = crate::changes::Carried::of(self);
        names.filter(|(path, _)| !carried.by_origin.contains_key(path.as_str())).count() as u64
    }
}
