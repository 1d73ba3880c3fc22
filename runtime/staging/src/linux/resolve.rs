//! Resolution of a guest's path over the overlay: names, `.`, `..` and links, never out of the folder at which it starts.

use std::io;

use rustix::io::Errno;

use super::base::join;
use super::entry::About;
use super::fact::{Content, Node, NodeId, Origin};
use super::state::State;
use crate::types::EntryKind;

/// Maximum number of links that one path follows.
const MAX_LINKS: usize = 40;
/// Maximum length of a name in bytes.
const MAX_NAME: usize = 255;

/// Entry that a path leads to.
#[derive(Debug)]
pub(crate) enum Target {
    /// The folder itself, by a path that ends in `.` or `..`.
    Folder(NodeId),
    Place(Place),
}

/// Place in a folder.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) folder: NodeId,
    pub(crate) name: String,
    pub(crate) found: Option<Found>,
    /// `true` if the path ends in a slash.
    pub(crate) slash: bool,
    /// Path as the caller gave it.
    pub(crate) request: String,
}

/// Entry at a place. Each folder is a node.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    Node(NodeId, EntryKind),
    Below(String, About),
}

impl Found {
    pub(crate) fn kind(&self) -> EntryKind {
        match self {
            Self::Node(_, kind) => *kind,
            Self::Below(_, about) => about.kind,
        }
    }
}

/// Treatment of a path's last name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// A link is followed.
    Follow,
    /// A link is followed if a slash comes after it.
    Keep,
    /// The entry itself is meant.
    Entry,
}

impl State {
    /// Resolves a path from a folder.
    pub(crate) fn resolve(&mut self, start: NodeId, path: &str, last: Last) -> io::Result<Target> {
        if path.is_empty() {
            return Err(Errno::NOENT.into());
        }
        if path.starts_with('/') {
            return Err(Errno::PERM.into());
        }
        let mut folders = vec![start];
        let mut rest: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut links = 0;
        loop {
            let Some(&folder) = folders.last() else { return Err(Errno::PERM.into()) };
            let Some(name) = rest.pop() else { return Ok(Target::Folder(folder)) };
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    folders.pop();
                    continue;
                }
                _ => {}
            }
            let (is_last, slash) = (rest.iter().all(String::is_empty), !rest.is_empty());
            let found = self.lookup(folder, &name)?;
            let is_followed = match last {
                Last::Follow => true,
                Last::Keep => slash,
                Last::Entry => false,
            };
            match &found {
                Some(found) if found.kind() == EntryKind::Link && (!is_last || is_followed) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    let target = self.link_of(found)?;
                    if target.starts_with('/') {
                        return Err(Errno::PERM.into());
                    }
                    rest.extend(target.split('/').rev().map(str::to_owned));
                }
                _ if is_last => {
                    let request = path.to_owned();
                    return Ok(Target::Place(Place { folder, name, found, slash, request }));
                }
                Some(Found::Node(id, EntryKind::Folder)) => folders.push(*id),
                Some(_) => return Err(Errno::NOTDIR.into()),
                None => return Err(Errno::NOENT.into()),
            }
        }
    }

    /// Resolves a path to an entry that is changed.
    pub(crate) fn place(&mut self, start: NodeId, path: &str) -> io::Result<Place> {
        // `.` and `..` name no entry that can be changed.
        let name = path.trim_end_matches('/').rsplit('/').next();
        match self.resolve(start, path, Last::Entry)? {
            Target::Place(place) if !matches!(name, Some("." | "..")) => Ok(place),
            _ => Err(Errno::INVAL.into()),
        }
    }

    /// Finds the entry of a folder with a name.
    pub(crate) fn lookup(&mut self, folder: NodeId, name: &str) -> io::Result<Option<Found>> {
        let Some(node) = self.tree.get(folder) else { return Err(Errno::NOENT.into()) };
        if name.len() > MAX_NAME {
            return Err(Errno::NAMETOOLONG.into());
        }
        if name.contains('\0') {
            return Err(Errno::INVAL.into());
        }
        let origin = node.origin.as_ref();
        let path = origin.filter(|at| !self.tree.is_hidden_in(&at.path, name)).map(|at| join(&at.path, name));
        if let Some(id) = self.tree.child(folder, name) {
            return self.node_found(id).map(Some);
        }
        let Some(path) = path else { return Ok(None) };
        let Some(about) = self.bases.about(&path)? else { return Ok(None) };
        if about.kind != EntryKind::Folder {
            if !self.has_copy(&about) {
                return Ok(Some(Found::Below(path, about)));
            }
            let origin = Some(Origin { path, about: Some(about) });
            let (parent, name, content) = (folder, name.to_owned(), Content::Below);
            let node = Node { parent, name, origin, content, made: 0, is_dated: false, mode: None, by: self.by(&[]) };
            return self.join_copy(self.tree.next_id(), node, &about).map(Some);
        }
        self.check_size()?;
        let id = self.tree.pass(folder, name, Origin { path, about: Some(about) });
        Ok(Some(Found::Node(id, EntryKind::Folder)))
    }

    /// Returns the entry of a node.
    pub(crate) fn node_found(&mut self, id: NodeId) -> io::Result<Found> {
        let Some(node) = self.tree.get(id) else { return Err(Errno::NOENT.into()) };
        match (&node.content, &node.origin) {
            (Content::Below, Some(Origin { about: Some(about), .. })) if self.has_copy(about) => {
                let (node, about) = (node.clone(), *about);
                self.join_copy(id, node, &about)
            }
            (Content::Folder, Some(Origin { path, about: None })) => {
                // It was passed on the way to a granted folder below it.
                if let Some(about) = self.bases.about(path)? {
                    self.tree.describe(id, about);
                }
                Ok(Found::Node(id, EntryKind::Folder))
            }
            _ => Ok(Found::Node(id, node.kind())),
        }
    }

    /// Reads the target of a link.
    pub(crate) fn link_of(&self, found: &Found) -> io::Result<String> {
        match found {
            Found::Below(path, about) if about.kind == EntryKind::Link => self.bases.link(path),
            Found::Node(id, EntryKind::Link) => match self.tree.get(*id).map(|node| &node.content) {
                Some(Content::Link(target)) => Ok(target.clone()),
                _ => Err(Errno::NOENT.into()),
            },
            _ => Err(Errno::INVAL.into()),
        }
    }
}
