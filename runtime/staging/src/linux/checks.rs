//! Checks by the caller's rules before a change: entries on the way, links that could lead out, and folders that are moved.

use std::io;
use std::time::Instant;

use rustix::io::Errno;

use super::base::{join, kind_of};
use super::commit::ASIDE;
use super::fact::NodeId;
use super::resolve::{Found, Last, Place};
use super::rules::Rules;
use super::state::State;
use crate::types::EntryKind;

/// Maximum number of entries in a folder that is moved.
const MAX_MOVED: usize = 20_000;
/// Maximum depth of a folder inside one that is moved.
const MAX_INNER: usize = 256;

impl State {
    /// Refuses an entry that the rules protect, under its path and under that of the real folder.
    pub(crate) fn judge(&self, place: &Place, rules: &dyn Rules) -> io::Result<()> {
        if self.tree.get(place.folder).is_none() {
            return Err(Errno::NOENT.into());
        }
        // The commit makes room under such names.
        if place.name.starts_with(ASIDE) && !rules.allows_aside() {
            return Err(Errno::PERM.into());
        }
        self.judge_name(place.folder, &place.name, &self.path_of(place), rules)?;
        rules.request(&place.request)
    }

    fn judge_name(&self, folder: NodeId, name: &str, path: &str, rules: &dyn Rules) -> io::Result<()> {
        let real = self.real(folder);
        rules.entry(real.as_ref(), path)?;
        match self.tree.origin(folder).map(|origin| join(origin, name)) {
            Some(below) if below != path => rules.entry(real.as_ref(), &below),
            _ => Ok(()),
        }
    }

    /// Refuses a link that could lead out of its granted folder.
    pub(crate) fn check_link(&mut self, folder: NodeId, target: &str, rules: &dyn Rules) -> io::Result<()> {
        let (root, names) = self.way_from_root(folder, rules)?;
        if rules.is_link_out(target, names.len()) {
            return Err(Errno::PERM.into());
        }
        // Links of others could lead further from there.
        let way: String = names.iter().rev().map(|name| format!("{name}/")).collect();
        match self.resolve(root, &format!("./{way}{target}"), Last::Follow) {
            Err(error) => match Errno::from_io_error(&error) {
                // The target does not exist.
                Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
                _ => Err(error),
            },
            Ok(_) => Ok(()),
        }
    }

    /// Refuses to replace an entry by one of another kind, or a folder that is not empty.
    pub(crate) fn check_replaced(&mut self, source: &Place, found: &Found, target: &Place) -> io::Result<()> {
        if let Found::Node(id, EntryKind::Folder) = found
            && self.tree.is_below(target.folder, *id)
        {
            return Err(Errno::INVAL.into());
        }
        if let Some(Found::Node(id, EntryKind::Folder)) = target.found
            && self.tree.is_below(source.folder, id)
        {
            return Err(Errno::NOTEMPTY.into());
        }
        match (found.kind(), &target.found) {
            (_, None) => Ok(()),
            (EntryKind::Folder, Some(Found::Node(id, EntryKind::Folder))) => match self.is_empty(*id)? {
                true => Ok(()),
                false => Err(Errno::NOTEMPTY.into()),
            },
            (EntryKind::Folder, Some(_)) => Err(Errno::NOTDIR.into()),
            (_, Some(other)) if other.kind() == EntryKind::Folder => Err(Errno::ISDIR.into()),
            (EntryKind::File, Some(other)) if other.kind() == EntryKind::File => {
                // A read-only file is not replaced.
                if self.replaced_mode(other)? & 0o222 == 0 { Err(Errno::ACCESS.into()) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Returns the rights of a file that is about to be replaced.
    fn replaced_mode(&self, found: &Found) -> io::Result<u32> {
        let of_origin = |id: &NodeId| self.tree.get(*id)?.origin.as_ref()?.about.map(|about| about.mode);
        match found {
            Found::Node(id, _) => Ok(of_origin(id).unwrap_or(0o644)),
            Found::Below(_, about) => Ok(about.mode),
        }
    }

    /// Returns `true` if both are names of one file.
    pub(crate) fn is_one_file(&self, one: &Found, other: Option<&Found>) -> io::Result<bool> {
        match other {
            Some(other) if one.kind() == EntryKind::File && other.kind() == EntryKind::File => {
                Ok(self.about(one)?.is_same_entry(&self.about(other)?))
            }
            _ => Ok(false),
        }
    }

    /// Refuses a change across two file systems.
    pub(crate) fn check_device(&self, one: NodeId, other: NodeId) -> io::Result<()> {
        let device = |folder: NodeId| {
            let mut at = folder;
            while let Some(node) = self.tree.get(at) {
                match &node.origin {
                    Some(_) => return self.real(at).map(|about| about.device),
                    None => at = node.parent,
                }
            }
            None
        };
        if device(one) == device(other) { Ok(()) } else { Err(Errno::XDEV.into()) }
    }

    /// Returns the nearest granted folder above a folder, and the names from the folder up to it.
    fn way_from_root(&self, folder: NodeId, rules: &dyn Rules) -> io::Result<(NodeId, Vec<String>)> {
        let (mut names, mut at) = (Vec::new(), folder);
        while !rules.roots().iter().any(|root| root.0 == at) {
            let node = self.tree.get(at).filter(|node| node.parent != at).ok_or(Errno::PERM)?;
            names.push(node.name.clone());
            at = node.parent;
        }
        Ok((at, names))
    }

    /// Refuses a moved entry that would lead out of its granted folder, or become a protected one at its new place.
    pub(crate) fn check_moved(
        &mut self,
        source: &Place,
        target: &Place,
        found: &Found,
        rules: &dyn Rules,
    ) -> io::Result<()> {
        match found {
            found if found.kind() == EntryKind::Link => {
                rules.placed(&self.path_of(target))?;
                let text = self.link_of(found)?;
                self.check_link(target.folder, &text, rules)
            }
            Found::Node(id, EntryKind::Folder) => {
                rules.placed(&self.path_of(target))?;
                self.check_moved_folder(*id, source, target, rules)
            }
            // A FIFO or a device has no content that could be copied.
            found if found.kind() == EntryKind::Other => Err(Errno::PERM.into()),
            Found::Below(path, about) => rules.file(about, path),
            Found::Node(id, _) => {
                let node = self.tree.get(*id).ok_or(Errno::NOENT)?;
                match node.origin.as_ref().and_then(|origin| Some((&origin.path, origin.about?))) {
                    Some((path, about)) => rules.file(&about, path),
                    None => Ok(()),
                }
            }
        }
    }

    /// Refuses a folder that contains a protected entry, or a link that would lead out from the new place.
    fn check_moved_folder(&self, id: NodeId, source: &Place, target: &Place, rules: &dyn Rules) -> io::Result<()> {
        let (from, to) = (self.path_of(source), self.path_of(target));
        rules.moved(&from, &to)?;
        let above = self.way_from_root(target.folder, rules)?.1.len() + 1;
        let (mut left, mut count) = (vec![(Inner::Node(id), String::new(), 0)], 0);
        while let Some((folder, way, depth)) = left.pop() {
            let (before, after) = (format!("{from}{way}"), format!("{to}{way}"));
            let owner = folder.about(self);
            for (name, kind, entry) in self.inner_entries(&folder)? {
                count += 1;
                if rules.until().is_some_and(|until| Instant::now() >= until) {
                    return Err(Errno::BUSY.into());
                }
                rules.entry(owner.as_ref(), &join(&before, &name))?;
                rules.entry(owner.as_ref(), &join(&after, &name))?;
                let leads_out = || match entry.target(self) {
                    Ok(target) => rules.is_link_out(&target, above + depth),
                    Err(_) => true,
                };
                if count > MAX_MOVED || depth == MAX_INNER || kind == EntryKind::Link && leads_out() {
                    return Err(Errno::PERM.into());
                }
                if kind == EntryKind::Folder {
                    left.push((entry, format!("{way}/{name}"), depth + 1));
                }
            }
        }
        Ok(())
    }

    /// Lists the entries of a folder that may have no node.
    fn inner_entries(&self, folder: &Inner) -> io::Result<Vec<(String, EntryKind, Inner)>> {
        let (mut entries, origin) = match folder {
            Inner::Node(id) => {
                let nodes = self.tree.children(*id).filter_map(|(name, child)| {
                    Some((name.to_owned(), self.tree.get(child)?.kind(), Inner::Node(child)))
                });
                (nodes.collect::<Vec<_>>(), self.tree.origin(*id).map(str::to_owned))
            }
            Inner::Below(path) => (Vec::new(), Some(path.clone())),
        };
        let Some(origin) = origin else { return Ok(entries) };
        for entry in self.bases.list(&origin)? {
            let entry = entry?;
            // A name that is not Unicode moves along with its folder.
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = join(&origin, &name);
            let has_node = matches!(folder, Inner::Node(id) if self.tree.child(*id, &name).is_some());
            if !has_node && !self.tree.is_hidden_in(&origin, &name) {
                let kind = kind_of(&entry)?;
                entries.push((name, kind, Inner::Below(path)));
            }
            if entries.len() > MAX_MOVED {
                return Err(Errno::PERM.into());
            }
        }
        Ok(entries)
    }
}

/// Entry inside a folder that is moved.
enum Inner {
    Node(NodeId),
    Below(String),
}

impl Inner {
    fn about(&self, state: &State) -> Option<super::entry::About> {
        match self {
            Self::Node(id) => state.real(*id),
            Self::Below(path) => state.bases.about(path).ok().flatten(),
        }
    }

    fn target(&self, state: &State) -> io::Result<String> {
        match self {
            Self::Node(id) => state.link_of(&Found::Node(*id, EntryKind::Link)),
            Self::Below(path) => state.bases.link(path),
        }
    }
}
