//! The plan of a commit: steps that turn the real folders into what the stage shows. Files that are gone are removed first and
//! folders last; in between, the tree is made from its top down, so that each folder is at its place before its entries are.

use std::collections::HashMap;
use std::io;

use cap_std::fs::MetadataExt;
use serde::{Deserialize, Serialize};

use super::base::{below, join, split};
use super::entry::About;
use super::fact::{Content, Node, NodeId, Origin, REPLACED, ROOT};
use super::state::State;
use crate::types::EntryKind;

/// Step of a commit. Each can be repeated after its process was killed within it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Step {
    Remove {
        path: String,
        about: About,
    },
    MakeFolder {
        path: String,
        #[serde(default)]
        mode: Option<u32>,
    },
    MakeLink {
        path: String,
        target: String,
        over: Option<About>,
    },
    Move {
        from: String,
        to: String,
        about: About,
        over: Option<About>,
    },
    /// Writes a node's content, with the rights and the owner that the replaced file has.
    Write {
        path: String,
        content: NodeId,
        over: Option<About>,
        /// Permissions, if they are given.
        #[serde(default)]
        mode: Option<u32>,
    },
    /// Gives the file at `same` another name.
    Name {
        path: String,
        same: String,
        over: Option<About>,
    },
    /// Sets the time of a folder or a link.
    Date {
        path: String,
        modified: i128,
    },
}

impl Step {
    /// Path that the step changes.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Remove { path, .. }
            | Self::MakeFolder { path, .. }
            | Self::MakeLink { path, .. }
            | Self::Write { path, .. }
            | Self::Name { path, .. }
            | Self::Date { path, .. } => path,
            Self::Move { to, .. } => to,
        }
    }
}

/// Steps so far, and the moves among them.
struct Plan<'a> {
    state: &'a State,
    steps: Vec<Step>,
    names: Vec<Step>,
    dates: Vec<Step>,
    /// Present paths of real entries that were moved. What is below one of them moves along.
    moved: HashMap<String, String>,
    /// First node, and its path, for each content with several names: the others become its names.
    first: HashMap<u64, (NodeId, String)>,
    /// Prefix for entries that make room.
    aside: &'a str,
}

/// Makes the plan. `aside` begins the names of entries that make room for others in the meantime.
pub(crate) fn plan(state: &State, aside: &str) -> io::Result<Vec<Step>> {
    let hidden = state.tree.all_hidden();
    let gone = || hidden.iter().filter(|(path, _)| state.tree.carrier(path).is_none());
    let is_replaced = |path: &str| state.in_place_of(path).is_some_and(|node| node.kind() != EntryKind::Folder);
    let is_folder = |about: &About| about.kind == EntryKind::Folder;
    let files = gone().filter(|(path, hidden)| !is_folder(&hidden.about) && !is_replaced(path));
    let steps = files.map(|(path, hidden)| Step::Remove { path: path.clone(), about: hidden.about }).collect();
    let first = first_names(state)?;
    let mut plan = Plan { state, steps, names: Vec::new(), dates: Vec::new(), moved: HashMap::new(), first, aside };
    let mut folders = vec![ROOT];
    while let Some(id) = folders.pop() {
        for (name, child) in state.tree.children(id) {
            if let Some(node) = state.tree.get(child) {
                plan.place(id, name, child, node)?;
                if node.kind() == EntryKind::Folder {
                    folders.push(child);
                }
            }
        }
    }
    let last: Vec<Step> = gone()
        .filter(|(_, hidden)| is_folder(&hidden.about))
        .map(|(path, hidden)| Step::Remove { path: plan.present(path), about: hidden.about })
        .collect();
    let Plan { mut steps, names, dates, .. } = plan;
    steps.extend(names);
    steps.extend(last);
    // The deepest first: a date of a folder stays only if nothing in it changes later.
    steps.extend(dates.into_iter().rev());
    Ok(steps)
}

impl Plan<'_> {
    /// Adds the steps that put a node at its place.
    fn place(&mut self, folder: NodeId, name: &str, id: NodeId, node: &Node) -> io::Result<()> {
        let state = self.state;
        let path = state.tree.path(id);
        let is_in_place = state.tree.is_in_place(node);
        let over = match is_in_place {
            true => None,
            false => state.replaced(node).map(|(_, hidden)| hidden.about),
        };
        if node.is_dated {
            self.dates.push(Step::Date { path: path.clone(), modified: node.made });
        }
        if !is_in_place && let Some(origin) = state.tree.origin(folder) {
            self.make_room(&join(origin, name), &path);
        }
        match (&node.content, &node.origin) {
            (Content::Folder, None) => self.steps.push(Step::MakeFolder { path, mode: node.mode }),
            (Content::Link(target), None) => self.steps.push(Step::MakeLink { path, target: target.clone(), over }),
            (_, None) => self.write((id, node.mode), path, over)?,
            (_, Some(Origin { path: origin, about: Some(about) })) => {
                if !is_in_place {
                    let from = self.present(origin);
                    self.moved.insert(origin.clone(), path.clone());
                    self.steps.push(Step::Move { from, to: path.clone(), about: *about, over });
                }
                if state.is_written(id, node)? {
                    self.write((id, node.mode), path, Some(*about))?;
                }
            }
            (_, Some(_)) => {}
        }
        Ok(())
    }

    /// Moves aside what is still at the place of a node, and goes elsewhere or is removed later.
    fn make_room(&mut self, real: &str, path: &str) {
        let Some(hidden) = self.state.tree.hidden(real) else { return };
        let is_there = match self.state.tree.carrier(real) {
            Some(_) => !self.moved.contains_key(real),
            None => hidden.about.kind == EntryKind::Folder,
        };
        if is_there {
            let (folder, _) = split(path);
            let aside = join(folder, &format!("{}{}", self.aside, self.steps.len()));
            self.moved.insert(real.to_owned(), aside.clone());
            self.steps.push(Step::Move { from: path.to_owned(), to: aside, about: hidden.about, over: None });
        }
    }

    /// Returns the present path of a real entry.
    fn present(&self, path: &str) -> String {
        let mut above = path;
        loop {
            if let Some(moved) = self.moved.get(above) {
                let rest = below(above, path).unwrap_or_default();
                return if rest.is_empty() { moved.clone() } else { join(moved, rest) };
            }
            match split(above) {
                ("/", _) => return path.to_owned(),
                (folder, _) => above = folder,
            }
        }
    }

    /// Writes a file, or names it if another name of it is written already.
    fn write(&mut self, (id, mode): (NodeId, Option<u32>), path: String, over: Option<About>) -> io::Result<()> {
        let content = self.state.contents.symlink_metadata(id.to_string())?;
        if content.nlink() > 1 {
            let (first, same) = self.first.entry(content.ino()).or_insert_with(|| (id, path.clone()));
            if *first != id {
                self.names.push(Step::Name { path, same: same.clone(), over });
                return Ok(());
            }
        }
        self.steps.push(Step::Write { path, content: id, over, mode });
        Ok(())
    }
}

/// Finds the file that each content with several names is written to, or is already: the others become names of it. A copy comes
/// before a file that took the place of a real one, as it may be unchanged, and then nothing is done for it.
fn first_names(state: &State) -> io::Result<HashMap<u64, (NodeId, String)>> {
    let mut first = HashMap::new();
    for (id, node) in state.tree.nodes() {
        let (Content::Written(Some(copied)), Some(_)) = (&node.content, &node.origin) else { continue };
        let content = state.contents.symlink_metadata(id.to_string())?;
        if content.nlink() > 1 {
            let rank = (*copied == REPLACED, id);
            let best = first.entry(content.ino()).or_insert(rank);
            *best = rank.min(*best);
        }
    }
    Ok(first.into_iter().map(|(content, (_, id))| (content, (id, state.tree.path(id)))).collect())
}
