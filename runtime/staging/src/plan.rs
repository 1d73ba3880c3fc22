//! The plan of a commit: steps that turn the real folders into what the stage shows. Files that are gone are removed first and
//! folders last; in between, the tree is made from its top down, so that each folder is at its place before its entries are.

use std::collections::{BTreeSet, HashMap};
use std::io;

use cap_std::fs::MetadataExt;
use serde::{Deserialize, Serialize};

use crate::base::{below, join, split};
use crate::changes::Carried;
use crate::entry::About;
use crate::state::State;
use crate::tree::{Content, Node, NodeId, Origin, ROOT};
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
    /// Writes the content of a node, with the rights and the owner of the file that it replaces.
    Write {
        path: String,
        content: NodeId,
        over: Option<About>,
    },
    /// Gives the file at `same` another name.
    Name {
        path: String,
        same: String,
        over: Option<About>,
    },
}

impl Step {
    /// Path that the step changes.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Remove { path, .. }
            | Self::MakeFolder { path }
            | Self::MakeLink { path, .. }
            | Self::Write { path, .. }
            | Self::Name { path, .. } => path,
            Self::Move { to, .. } => to,
        }
    }
}

/// Steps so far, and the moves among them.
struct Plan<'a> {
    state: &'a State,
    carried: Carried<'a>,
    steps: Vec<Step>,
    names: Vec<Step>,
    moves: Vec<(String, String)>,
    /// Entries that are at their place, or out of the way.
    placed: BTreeSet<String>,
    /// The node, and its path, of which the others of a content with several names become names.
    first: HashMap<u64, (NodeId, String)>,
    /// Name for entries that make room.
    aside: &'a str,
}

/// Makes the plan. `aside` begins the names of entries that make room for others in the meantime.
pub(crate) fn plan(state: &State, aside: &str) -> io::Result<Vec<Step>> {
    let carried = Carried::of(state);
    let is_gone = |path: &str| !carried.by_origin.contains_key(path);
    let is_replaced = |path: &str, about: &About| {
        let by = carried.in_place_of(state, path).and_then(|id| state.tree.get(id));
        about.kind != EntryKind::Folder && by.is_some_and(|node| node.kind() != EntryKind::Folder)
    };
    let gone = || state.tree.hidden().iter().rev().filter(|(path, _)| is_gone(path));
    let files =
        gone().filter(|(path, hidden)| hidden.about.kind != EntryKind::Folder && !is_replaced(path, &hidden.about));
    let steps = files.map(|(path, hidden)| Step::Remove { path: path.clone(), about: hidden.about }).collect();
    let folders: Vec<(String, About)> = gone()
        .filter(|(_, hidden)| hidden.about.kind == EntryKind::Folder)
        .map(|(path, hidden)| (path.clone(), hidden.about))
        .collect();
    let mut plan = Plan {
        state,
        carried: Carried::of(state),
        steps,
        names: Vec::new(),
        moves: Vec::new(),
        placed: BTreeSet::new(),
        first: first_names(state)?,
        aside,
    };
    let mut folder = vec![ROOT];
    while let Some(id) = folder.pop() {
        for (name, child) in state.tree.children(id) {
            if let Some(node) = state.tree.get(child) {
                plan.place(id, name, child, node)?;
                if node.kind() == EntryKind::Folder {
                    folder.push(child);
                }
            }
        }
    }
    let Plan { mut steps, names, moves, .. } = plan;
    steps.extend(names);
    let last = folders.into_iter().map(|(path, about)| Step::Remove { path: moved(&moves, &path), about });
    steps.extend(last);
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
            false => self.carried.replaced(state, node).map(|(_, hidden)| hidden.about),
        };
        if !is_in_place && let Some(origin) = state.tree.origin(folder) {
            self.make_room(&join(origin, name), &path);
        }
        match (&node.content, &node.origin) {
            (Content::Folder, None) => self.steps.push(Step::MakeFolder { path }),
            (Content::Link(target), None) => self.steps.push(Step::MakeLink { path, target: target.clone(), over }),
            (_, None) => self.write(id, path, over)?,
            (_, Some(Origin { path: origin, about: Some(about) })) => {
                if !is_in_place {
                    let from = moved(&self.moves, origin);
                    self.step_move(from, path.clone(), *about, over);
                }
                self.placed.insert(origin.clone());
                if state.is_written(id, node)? {
                    self.write(id, path, Some(*about))?;
                }
            }
            (_, Some(_)) => {}
        }
        Ok(())
    }

    /// Moves aside what is still at the place of a node, and goes elsewhere or is removed later.
    fn make_room(&mut self, real: &str, path: &str) {
        let Some(hidden) = self.state.tree.hidden().get(real) else { return };
        let is_carried = self.carried.by_origin.contains_key(real);
        let is_there = match is_carried {
            true => !self.placed.contains(real),
            false => hidden.about.kind == EntryKind::Folder,
        };
        if is_there {
            let (folder, _) = split(path);
            let aside = join(folder, &format!("{}{}", self.aside, self.steps.len()));
            self.step_move(path.to_owned(), aside, hidden.about, None);
        }
    }

    fn step_move(&mut self, from: String, to: String, about: About, over: Option<About>) {
        self.moves.push((from.clone(), to.clone()));
        self.steps.push(Step::Move { from, to, about, over });
    }

    /// Writes a file, or names it if another name of it is written already.
    fn write(&mut self, id: NodeId, path: String, over: Option<About>) -> io::Result<()> {
        let content = self.state.contents.symlink_metadata(id.to_string())?;
        if content.nlink() > 1 {
            let (first, same) = self.first.entry(content.ino()).or_insert_with(|| (id, path.clone()));
            if *first != id {
                self.names.push(Step::Name { path, same: same.clone(), over });
                return Ok(());
            }
        }
        self.steps.push(Step::Write { path, content: id, over });
        Ok(())
    }
}

/// Finds the copies of real files among the contents with several names: the others become names of them.
fn first_names(state: &State) -> io::Result<HashMap<u64, (NodeId, String)>> {
    let mut first = HashMap::new();
    for (id, node) in state.tree.nodes() {
        if node.origin.is_some() && matches!(node.content, Content::Written(_)) {
            let content = state.contents.symlink_metadata(id.to_string())?;
            if content.nlink() > 1 {
                first.entry(content.ino()).or_insert_with(|| (id, state.tree.path(id)));
            }
        }
    }
    Ok(first)
}

/// Returns the path of a real entry after these moves.
fn moved(moves: &[(String, String)], path: &str) -> String {
    moves.iter().fold(path.to_owned(), |path, (from, to)| match below(from, &path) {
        Some("") => to.clone(),
        Some(rest) => join(to, rest),
        None => path,
    })
}
