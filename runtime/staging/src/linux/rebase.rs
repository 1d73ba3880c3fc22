//! The rest of a stage after its part was committed: it shows the same as before, over the folders as they are now.
//!
//! Each node of the rest gets the real entry that it has become, or that its origin has become. An entry that is now at its place
//! needs no node. Hidden are the real entries that are elsewhere in the stage, or not in it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use super::base::{below, join, split};
use super::begun::Begun;
use super::changes::is_same_content;
use super::entry::About;
use super::fact::{Content, Fact, Hidden, Node, NodeId, Origin, ROOT};
use super::stage::Stage;
use super::state::{State, shared};
use crate::types::EntryKind;

impl Stage {
    /// Puts the stage over the folders that the commit of a part has left. It is done once, whatever interrupts it.
    ///
    /// # Errors
    ///
    /// The error of the system; the stage is then as before.
    pub(crate) fn rebase(&self, part: &Self) -> io::Result<()> {
        let Some(Begun { aside, .. }) = part.begun()? else { return Ok(()) };
        let (mut state, part) = (self.state(), part.state());
        if state.rebased.as_deref() == Some(aside.as_str()) {
            return Ok(());
        }
        let held = state.held.folders();
        state.tree.forget_passed(held.into_iter());
        let mut rest = Rest::of(&state, &part)?;
        rest.place_folders()?;
        rest.place_others()?;
        rest.show_and_hide()?;
        let unshared = rest.unshared();
        let Rest { mut facts, passed, unnamed, .. } = rest;
        facts.splice(0..0, unshared.iter().map(|(device, inode)| Fact::Unshared(*device, *inode)));
        facts.push(Fact::Rebased(aside));
        state.journal.add_last(&facts)?;
        facts.into_iter().for_each(|fact| state.apply(fact, 0));
        passed.into_iter().for_each(|(id, node)| state.tree.insert(id, node));
        // The part is removed after this.
        state.journal.sync()?;
        state.remove_contents(unnamed);
        unshared.into_iter().for_each(|file| drop(state.contents.remove_file(shared(file))));
        Ok(())
    }
}

/// Rest of a stage, as it becomes.
struct Rest<'a> {
    whole: &'a State,
    part: &'a State,
    /// Times of change that the part's files had before its commit, which may have changed them.
    known: HashSet<((u64, u64), i128)>,
    /// Nodes whose content the part has under all of its names.
    is_whole: HashSet<NodeId>,
    /// Paths of the real folders that the folders carry.
    folders: HashMap<NodeId, Option<String>>,
    /// Nodes that stay, and the path of the real entry that each carries now.
    carried: HashMap<NodeId, String>,
    /// Files with several names that keep a copy.
    linked: HashSet<(u64, u64)>,
    facts: Vec<Fact>,
    /// Folders that are held open and were only passed.
    passed: Vec<(NodeId, Node)>,
    unnamed: Vec<NodeId>,
}

impl<'a> Rest<'a> {
    fn of(whole: &'a State, part: &'a State) -> io::Result<Self> {
        let abouts = part.tree.nodes().filter_map(|(_, node)| node.origin.as_ref()?.about);
        let hidden = part.tree.all_hidden().into_iter().map(|(_, hidden)| hidden.about);
        let known = abouts.chain(hidden).map(|about| (about.file(), about.changed)).collect();
        let is_written = |id: &NodeId| part.tree.get(*id).is_some_and(is_written);
        let groups = whole.nodes_by_content()?.into_values();
        let is_whole = groups.filter(|names| names.iter().all(is_written)).flatten().collect();
        Ok(Self {
            whole,
            part,
            known,
            is_whole,
            folders: HashMap::new(),
            carried: HashMap::new(),
            linked: HashSet::new(),
            facts: Vec::new(),
            passed: Vec::new(),
            unnamed: Vec::new(),
        })
    }

    /// Finds the present path of a real entry; `None` if the part has removed it.
    fn present(&self, path: &str) -> Option<String> {
        let mut above = path;
        loop {
            if let Some(id) = self.part.tree.carrier(above) {
                let (at, rest) = (self.part.tree.path(id), below(above, path)?);
                return Some(if rest.is_empty() { at } else { join(&at, rest) });
            }
            if self.part.tree.hidden(above).is_some() || above == "/" {
                return None;
            }
            above = split(above).0;
        }
    }

    /// Finds the real entry that a node is now.
    fn place(&self, id: NodeId, node: &Node) -> Option<String> {
        match self.part.tree.get(id) {
            Some(_) => Some(self.part.tree.path(id)),
            None => self.present(&node.origin.as_ref()?.path),
        }
    }

    /// Returns `true` if the part has moved the entry of a node.
    fn is_moved(&self, id: NodeId) -> bool {
        self.part.tree.get(id).is_some_and(|node| node.origin.is_some() && !self.part.tree.is_in_place(node))
    }

    fn place_folders(&mut self) -> io::Result<()> {
        for (id, node) in self.whole.tree.nodes() {
            if node.kind() != EntryKind::Folder {
                continue;
            }
            let before = node.origin.as_ref();
            let mut origin = before.cloned();
            if let Some(path) = self.place(id, node).filter(|_| id != ROOT) {
                let found = self.whole.bases.about(&path);
                let found = if before.is_none() || self.is_moved(id) { found? } else { None };
                let about = before.and_then(|origin| origin.about);
                origin = match found.filter(|found| found.kind == EntryKind::Folder) {
                    Some(found) if about.is_none_or(|about| found.is_same_entry(&about)) => {
                        Some(Origin { path, about: about.or(Some(found)) })
                    }
                    _ if before.is_some() && !self.is_moved(id) => Some(Origin { path, about }),
                    _ => origin,
                };
            }
            self.folders.insert(id, origin.as_ref().map(|origin| origin.path.clone()));
            self.carried.extend(origin.as_ref().map(|origin| (id, origin.path.clone())));
            if origin.as_ref() != before {
                self.change(id, Node { origin, ..node.clone() });
            }
        }
        Ok(())
    }

    fn change(&mut self, id: NodeId, node: Node) {
        match self.whole.tree.is_kept(id) {
            true => self.facts.push(Fact::Node { id, node }),
            false => self.passed.push((id, node)),
        }
    }

    /// Returns `true` if a folder of the stage shows a real path at its place.
    fn is_in_place(&self, node: &Node, path: &str) -> bool {
        let (folder, name) = split(path);
        name == node.name && self.folders.get(&node.parent).is_some_and(|at| at.as_deref() == Some(folder))
    }

    fn place_others(&mut self) -> io::Result<()> {
        for (id, node) in self.whole.tree.nodes() {
            if node.kind() == EntryKind::Folder {
                continue;
            }
            let rest = match self.place(id, node) {
                Some(path) => self.rest_of(id, node, path)?,
                None => node.clone(),
            };
            let path = rest.origin.as_ref().map(|origin| origin.path.as_str());
            if !is_written(&rest) && path.is_some_and(|path| self.is_in_place(node, path)) {
                self.facts.push(Fact::Gone(id));
                self.unnamed.extend(is_written(node).then_some(id));
                continue;
            }
            self.carried.extend(path.map(|path| (id, path.to_owned())));
            if let (true, Some(Origin { about: Some(about), .. })) = (is_written(&rest), &rest.origin) {
                self.linked.extend((about.names > 1).then_some(about.file()));
            }
            if rest != *node {
                self.unnamed.extend((is_written(node) && !is_written(&rest)).then_some(id));
                self.facts.push(Fact::Node { id, node: rest });
            }
        }
        Ok(())
    }

    /// Returns a file's or a link's node over the real entry that it is now.
    fn rest_of(&self, id: NodeId, node: &Node, path: String) -> io::Result<Node> {
        let found = self.whole.bases.about(&path)?;
        let origin = |path, about| Some(Origin { path, about });
        match (&node.content, &node.origin) {
            (Content::Written(_), _) if self.is_whole.contains(&id) => match found {
                Some(found) if self.is_made(id, &path, &found)? => {
                    Ok(Node { origin: origin(path, Some(found)), content: Content::Below, ..node.clone() })
                }
                _ => Ok(node.clone()),
            },
            (Content::Link(target), None) => match found {
                Some(found) if found.kind == EntryKind::Link && self.whole.bases.link(&path)? == *target => {
                    Ok(Node { origin: origin(path, Some(found)), ..node.clone() })
                }
                _ => Ok(node.clone()),
            },
            (_, None) => Ok(node.clone()),
            (_, Some(before)) => {
                let is_it = |about: &About| found.is_some_and(|found| found.is_same_entry(about));
                if self.is_moved(id) && !before.about.as_ref().is_some_and(is_it) {
                    return Ok(node.clone());
                }
                let about = before.about.map(|about| self.renewed(&about, &path, None)).transpose()?;
                Ok(Node { origin: origin(path, about), ..node.clone() })
            }
        }
    }

    /// Returns the facts about a real entry as they are now, if only the part has changed them.
    fn renewed(&self, before: &About, path: &str, content: Option<NodeId>) -> io::Result<About> {
        let Some(now) = self.whole.bases.about(path)? else { return Ok(*before) };
        let is_by_part = match now.is_same_entry(before) {
            true => now.is_unchanged(before) && self.known.contains(&(before.file(), before.changed)),
            false => content.map_or(Ok(false), |id| self.is_made(id, path, &now))?,
        };
        Ok(if is_by_part { now } else { *before })
    }

    /// Returns `true` if a real file has the content that the part has for it.
    fn is_made(&self, id: NodeId, path: &str, found: &About) -> io::Result<bool> {
        if found.kind != EntryKind::File || !self.part.tree.get(id).is_some_and(is_written) {
            return Ok(false);
        }
        let content = About::of(&self.part.contents.symlink_metadata(id.to_string())?);
        if (content.size, content.modified) == (found.size, found.modified) {
            return Ok(true);
        }
        is_same_content(self.part.open_content(id, true, false)?, self.whole.bases.read(path)?.0)
    }

    /// Adds the facts about the entries that are hidden now, and are not any more.
    fn show_and_hide(&mut self) -> io::Result<()> {
        let mut hidden = BTreeMap::new();
        for (before, was) in self.whole.tree.all_hidden() {
            let carrier = self.whole.tree.carrier(&before);
            let at = match carrier {
                Some(id) => self
                    .carried
                    .get(&id)
                    .cloned()
                    .filter(|path| self.whole.tree.get(id).is_some_and(|node| !self.is_in_place(node, path))),
                None => self.present(&before),
            };
            if let Some(path) = at {
                let about = self.renewed(&was.about, &path, carrier.or_else(|| self.part.tree.carrier(&before)))?;
                hidden.insert(path, Hidden { about, by: was.by.clone() });
            }
        }
        // Entries that are elsewhere in the stage, and have another real place than before.
        for (id, path) in &self.carried {
            let Some(node) = self.whole.tree.get(*id).filter(|node| *id != ROOT && !self.is_in_place(node, path))
            else {
                continue;
            };
            let about = node.origin.as_ref().and_then(|origin| origin.about);
            if let (false, Some(about)) = (hidden.contains_key(path), about) {
                let about = self.renewed(&about, path, None)?;
                hidden.insert(path.clone(), Hidden { about, by: node.by.clone() });
            }
        }
        let (mut shown, before) = (Vec::new(), self.whole.tree.all_hidden());
        for (path, was) in before {
            match hidden.get(&path) {
                Some(now) if now == was => drop(hidden.remove(&path)),
                _ => shown.push(Fact::Shown(path)),
            }
        }
        // An entry is shown before it is hidden with other facts.
        self.facts.splice(0..0, shown);
        self.facts.extend(hidden.into_iter().map(|(path, hidden)| Fact::Hidden { path, hidden }));
        Ok(())
    }

    /// Lists the files with several names whose copies do not stay.
    fn unshared(&self) -> Vec<(u64, u64)> {
        let file = |node: &Node| node.origin.as_ref()?.about.map(|about| about.file());
        let copies = self.whole.tree.nodes().filter(|(_, node)| is_written(node));
        let copied: HashSet<(u64, u64)> = copies.filter_map(|(_, node)| file(node)).collect();
        let is_unshared = |file: &&(u64, u64)| copied.contains(*file) && !self.linked.contains(*file);
        self.whole.linked.keys().filter(is_unshared).copied().collect()
    }
}

fn is_written(node: &Node) -> bool {
    matches!(node.content, Content::Written(_))
}
