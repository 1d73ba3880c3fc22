//! The overlay as a tree of nodes over the real folders. It changes by facts alone, which the journal keeps: applied in their
//! order, they make the same tree.
//!
//! A folder's node shows the entries of the real folder that it carries (its origin), except those that are hidden, and the
//! nodes in it. An entry without a node is as it is below. A moved folder carries its origin along, so that nothing in it
//! is touched.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use super::base::{join, split};
use super::entry::About;
use super::fact::{Content, Fact, Hidden, Node, NodeId, Origin, ROOT};
use crate::types::{EntryKind, StagedCall};

/// Tree of nodes.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: HashMap<NodeId, Slot>,
    /// Hidden entries by their folders and names.
    hidden: HashMap<String, BTreeMap<String, Hidden>>,
    /// Nodes by the paths of their origins.
    by_origin: HashMap<String, NodeId>,
    /// Nodes of each real file with several names, and its hidden names.
    names: HashMap<(u64, u64), FileNames>,
    calls: Vec<StagedCall>,
    /// Numbers of the calls by their identifiers, from 1.
    call_numbers: HashMap<String, u32>,
    next: NodeId,
    /// Number of nodes and hidden entries that the journal keeps.
    kept: usize,
}

/// Names of a real file that the stage knows.
#[derive(Debug, Default)]
pub(crate) struct FileNames {
    pub(crate) nodes: BTreeSet<NodeId>,
    pub(crate) hidden: BTreeSet<String>,
}

#[derive(Debug)]
struct Slot {
    node: Node,
    children: BTreeMap<String, NodeId>,
    /// `true` if the journal keeps the node.
    is_kept: bool,
    /// Time at which a folder's entries last changed, in nanoseconds since 1970.
    touched: i128,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let root = Node {
            parent: ROOT,
            name: String::new(),
            origin: Some(Origin { path: "/".to_owned(), about: None }),
            content: Content::Folder,
            made: 0,
            is_dated: false,
            mode: None,
            by: Vec::new(),
        };
        let slot = Slot { node: root, children: BTreeMap::new(), is_kept: true, touched: 0 };
        Self {
            nodes: HashMap::from([(ROOT, slot)]),
            hidden: HashMap::new(),
            by_origin: HashMap::from([("/".to_owned(), ROOT)]),
            names: HashMap::new(),
            calls: Vec::new(),
            call_numbers: HashMap::new(),
            next: ROOT + 1,
            kept: 0,
        }
    }

    pub(crate) fn apply(&mut self, fact: Fact, now: i128) {
        match fact {
            Fact::Base { .. } | Fact::Unshared(..) | Fact::Rebased(_) => {}
            Fact::Call(call) => {
                self.call_numbers.insert(call.id.clone(), self.calls.len() as u32 + 1);
                self.calls.push(call);
            }
            Fact::Node { id, node } => {
                self.touch(node.parent, now);
                self.insert(id, node);
                if let Some(slot) = self.nodes.get_mut(&id).filter(|slot| !slot.is_kept) {
                    slot.is_kept = true;
                    self.kept += 1;
                }
            }
            Fact::Gone(id) => {
                if let Some(parent) = self.get(id).map(|node| node.parent) {
                    self.touch(parent, now);
                }
                self.remove(id);
            }
            Fact::Hidden { path, hidden } => self.hide(path, hidden, now),
            Fact::Shown(path) => self.show(&path),
        }
    }

    fn touch(&mut self, folder: NodeId, now: i128) {
        if let Some(slot) = self.nodes.get_mut(&folder) {
            slot.touched = now;
        }
    }

    fn hide(&mut self, path: String, hidden: Hidden, now: i128) {
        let (folder, name) = split(&path);
        if let Some(folder) = self.by_origin.get(folder).copied() {
            self.touch(folder, now);
        }
        let names = self.hidden.entry(folder.to_owned()).or_default();
        if let Some(known) = names.get_mut(name) {
            known.by.extend(hidden.by.into_iter().filter(|call| !known.by.contains(call)).collect::<Vec<_>>());
        } else {
            if hidden.about.names > 1 && hidden.about.kind == EntryKind::File {
                self.names.entry(hidden.about.file()).or_default().hidden.insert(path.clone());
            }
            names.insert(name.to_owned(), hidden);
            self.kept += 1;
        }
    }

    fn show(&mut self, path: &str) {
        let (folder, name) = split(path);
        let Some(names) = self.hidden.get_mut(folder) else { return };
        let Some(hidden) = names.remove(name) else { return };
        if names.is_empty() {
            self.hidden.remove(folder);
        }
        if let Some(names) = self.names.get_mut(&hidden.about.file()) {
            names.hidden.remove(path);
        }
        self.kept -= 1;
    }

    /// Adds or replaces a node, and puts it into its folder.
    pub(crate) fn insert(&mut self, id: NodeId, node: Node) {
        self.next = self.next.max(id + 1);
        let (parent, name) = (node.parent, node.name.clone());
        let touched = self.nodes.get(&id).map_or(0, |slot| slot.touched);
        let (is_kept, children) = match self.nodes.remove(&id) {
            Some(slot) => {
                self.unlink(&slot.node, id);
                (slot.is_kept, slot.children)
            }
            None => (false, BTreeMap::new()),
        };
        if let Some(Origin { path, about }) = &node.origin {
            self.by_origin.insert(path.clone(), id);
            if let Some(about) = about.filter(|about| about.names > 1 && about.kind == EntryKind::File) {
                self.names.entry(about.file()).or_default().nodes.insert(id);
            }
        }
        self.nodes.insert(id, Slot { node, children, is_kept, touched });
        if let Some(folder) = self.nodes.get_mut(&parent) {
            folder.children.insert(name, id);
        }
    }

    fn remove(&mut self, id: NodeId) {
        let Some(slot) = self.nodes.remove(&id) else { return };
        self.kept -= usize::from(slot.is_kept);
        self.unlink(&slot.node, id);
    }

    /// Takes a node from its folder and the indexes.
    fn unlink(&mut self, node: &Node, id: NodeId) {
        if let Some(folder) = self.nodes.get_mut(&node.parent)
            && folder.children.get(&node.name) == Some(&id)
        {
            folder.children.remove(&node.name);
        }
        let Some(Origin { path, about }) = &node.origin else { return };
        if self.by_origin.get(path) == Some(&id) {
            self.by_origin.remove(path);
        }
        if let Some(names) = about.and_then(|about| self.names.get_mut(&about.file())) {
            names.nodes.remove(&id);
        }
    }

    /// Adds a node for a real folder that is passed. The journal keeps it once something in it changes.
    pub(crate) fn pass(&mut self, parent: NodeId, name: &str, origin: Origin) -> NodeId {
        let id = self.next;
        let node = Node {
            parent,
            name: name.to_owned(),
            origin: Some(origin),
            content: Content::Folder,
            made: 0,
            is_dated: false,
            mode: None,
            by: Vec::new(),
        };
        self.insert(id, node);
        id
    }

    /// Adds the facts about a real folder that was only passed before.
    pub(crate) fn describe(&mut self, folder: NodeId, about: About) {
        if let Some(origin) = self.nodes.get_mut(&folder).and_then(|slot| slot.node.origin.as_mut()) {
            origin.about.get_or_insert(about);
        }
    }

    /// Forgets the folders that were only passed, but for those that are held open, and those above them.
    pub(crate) fn forget_passed(&mut self, held: impl Iterator<Item = NodeId>) {
        let mut needed = BTreeSet::new();
        for mut at in held {
            while needed.insert(at)
                && let Some(node) = self.get(at).filter(|_| at != ROOT)
            {
                at = node.parent;
            }
        }
        // What the journal keeps is below folders that it keeps.
        let is_passed = |(id, slot): &(&NodeId, &Slot)| !slot.is_kept && !needed.contains(id);
        let passed: Vec<NodeId> = self.nodes.iter().filter(is_passed).map(|(id, _)| *id).collect();
        passed.into_iter().for_each(|id| self.remove(id));
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id).map(|slot| &slot.node)
    }

    /// Time at which a folder's entries last changed; 0 if they did not.
    pub(crate) fn touched(&self, folder: NodeId) -> i128 {
        self.nodes.get(&folder).map_or(0, |slot| slot.touched)
    }

    /// Forgets when a folder's entries last changed: another time was set.
    pub(crate) fn untouch(&mut self, folder: NodeId) {
        self.touch(folder, 0);
    }

    /// Returns `true` if the journal keeps a node.
    pub(crate) fn is_kept(&self, id: NodeId) -> bool {
        self.nodes.get(&id).is_some_and(|slot| slot.is_kept)
    }

    pub(crate) fn child(&self, folder: NodeId, name: &str) -> Option<NodeId> {
        self.nodes.get(&folder)?.children.get(name).copied()
    }

    pub(crate) fn children(&self, folder: NodeId) -> impl Iterator<Item = (&str, NodeId)> {
        let slot = self.nodes.get(&folder);
        slot.into_iter().flat_map(|slot| slot.children.iter().map(|(name, id)| (name.as_str(), *id)))
    }

    /// Lists the children of a folder after a name.
    pub(crate) fn children_after(&self, folder: NodeId, name: &str) -> impl Iterator<Item = (&str, NodeId)> {
        let after = (Bound::Excluded(name), Bound::Unbounded);
        let slot = self.nodes.get(&folder);
        slot.into_iter()
            .flat_map(move |slot| slot.children.range::<str, _>(after).map(|(name, id)| (name.as_str(), *id)))
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().map(|(id, slot)| (*id, &slot.node))
    }

    /// Returns the node that carries a real entry.
    pub(crate) fn carrier(&self, path: &str) -> Option<NodeId> {
        self.by_origin.get(path).copied()
    }

    pub(crate) fn hidden(&self, path: &str) -> Option<&Hidden> {
        let (folder, name) = split(path);
        self.hidden.get(folder)?.get(name)
    }

    /// Returns `true` if an entry of a real folder is hidden.
    pub(crate) fn is_hidden_in(&self, folder: &str, name: &str) -> bool {
        self.hidden.get(folder).is_some_and(|names| names.contains_key(name))
    }

    /// Lists all hidden entries, each before its folder.
    pub(crate) fn all_hidden(&self) -> Vec<(String, &Hidden)> {
        let mut all: Vec<(String, &Hidden)> = self
            .hidden
            .iter()
            .flat_map(|(folder, names)| names.iter().map(move |(name, hidden)| (join(folder, name), hidden)))
            .collect();
        all.sort_by(|(one, _), (other, _)| other.cmp(one));
        all
    }

    /// Returns the names of a real file with several names that the stage knows.
    pub(crate) fn names_of(&self, file: (u64, u64)) -> Option<&FileNames> {
        self.names.get(&file)
    }

    pub(crate) fn calls(&self) -> &[StagedCall] {
        &self.calls
    }

    /// Returns the number of a call; `None` before its first change.
    pub(crate) fn call_number(&self, call: &StagedCall) -> Option<u32> {
        self.call_numbers.get(&call.id).copied()
    }

    /// Number of nodes and hidden entries that the journal keeps.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn next_id(&self) -> NodeId {
        self.next
    }

    /// Numbers new nodes from here on, or from the present number if that is higher.
    pub(crate) fn number_from(&mut self, id: NodeId) {
        self.next = self.next.max(id);
    }

    /// Returns the path of a node.
    pub(crate) fn path(&self, id: NodeId) -> String {
        let (mut names, mut at) = (Vec::new(), id);
        while let Some(node) = self.get(at).filter(|_| at != ROOT) {
            names.push(node.name.as_str());
            at = node.parent;
        }
        names.iter().rev().fold("/".to_owned(), |path, name| join(&path, name))
    }

    /// Returns the path of the real folder that a folder carries.
    pub(crate) fn origin(&self, folder: NodeId) -> Option<&str> {
        self.get(folder)?.origin.as_ref().map(|origin| origin.path.as_str())
    }

    /// Returns `true` if a node is at the place of its origin.
    pub(crate) fn is_in_place(&self, node: &Node) -> bool {
        node.origin.as_ref().is_some_and(|origin| {
            let (folder, name) = split(&origin.path);
            name == node.name && self.origin(node.parent) == Some(folder)
        })
    }

    /// Returns `true` if a folder is another or below it.
    pub(crate) fn is_below(&self, folder: NodeId, above: NodeId) -> bool {
        let mut at = folder;
        loop {
            if at == above {
                return true;
            }
            match self.get(at).filter(|_| at != ROOT) {
                Some(node) => at = node.parent,
                None => return false,
            }
        }
    }

    /// Lists the facts that keep a folder and those above it.
    pub(crate) fn keep(&self, folder: NodeId, facts: &mut Vec<Fact>) {
        let (mut above, mut at) = (Vec::new(), folder);
        while let Some(slot) = self.nodes.get(&at).filter(|slot| !slot.is_kept) {
            above.push(Fact::Node { id: at, node: slot.node.clone() });
            at = slot.node.parent;
        }
        facts.extend(above.into_iter().rev());
    }
}
