//! The overlay as a tree of nodes over the real folders. It changes by facts alone, which the journal keeps: applied in their
//! order, they make the same tree.
//!
//! A folder's node shows the entries of the real folder that it carries (its origin), except those that are hidden, and the
//! nodes in it. An entry without a node is as it is below. A moved folder carries its origin along, so that nothing in it
//! is touched.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::base::{join, split};
use crate::entry::About;
use crate::types::{EntryKind, StagedCall};

/// Number of a node.
pub(crate) type NodeId = u64;

/// Node of the root folder.
pub(crate) const ROOT: NodeId = 0;

/// Real entry that a node carries, as it was when it was first touched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) path: String,
    /// `None` for folders that were only passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) about: Option<About>,
}

/// Content of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Content {
    Folder,
    /// The content of the origin.
    Below,
    /// A file of the stage under the number of the node. For a copy of the origin, the time at which it was made: a later
    /// time of change means that it was written.
    Written(Option<i128>),
    Link(String),
}

/// Entry of the overlay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) parent: NodeId,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
    pub(crate) content: Content,
    /// Time at which a new folder or link was made, in nanoseconds since 1970.
    #[serde(default)]
    pub(crate) made: i128,
    /// Numbers of the calls that changed the entry.
    #[serde(default)]
    pub(crate) by: Vec<u32>,
}

impl Node {
    pub(crate) fn kind(&self) -> EntryKind {
        match self.content {
            Content::Folder => EntryKind::Folder,
            Content::Below | Content::Written(_) => EntryKind::File,
            Content::Link(_) => EntryKind::Link,
        }
    }
}

/// Real entry that is not shown at its place: it was removed, replaced or moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hidden {
    pub(crate) about: About,
    pub(crate) by: u32,
}

/// Change of the tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Fact {
    /// Real folder under the stage, with its device and number.
    Base {
        path: String,
        device: u64,
        inode: u64,
    },
    Call(StagedCall),
    Node {
        id: NodeId,
        node: Node,
    },
    Gone(NodeId),
    Hidden {
        path: String,
        hidden: Hidden,
    },
    Shown(String),
    /// The copy for all names of a real file is not used any more.
    Unshared(u64, u64),
}

/// Tree of nodes.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: HashMap<NodeId, Slot>,
    hidden: BTreeMap<String, Hidden>,
    calls: Vec<StagedCall>,
    next: NodeId,
    /// Number of nodes and hidden entries that the journal keeps.
    kept: usize,
}

#[derive(Debug)]
struct Slot {
    node: Node,
    children: BTreeMap<String, NodeId>,
    /// `true` if the journal keeps the node.
    is_kept: bool,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let root = Node {
            parent: ROOT,
            name: String::new(),
            origin: Some(Origin { path: "/".to_owned(), about: None }),
            content: Content::Folder,
            made: 0,
            by: Vec::new(),
        };
        let slot = Slot { node: root, children: BTreeMap::new(), is_kept: true };
        let nodes = HashMap::from([(ROOT, slot)]);
        Self { nodes, hidden: BTreeMap::new(), calls: Vec::new(), next: ROOT + 1, kept: 0 }
    }

    pub(crate) fn apply(&mut self, fact: Fact) {
        match fact {
            Fact::Base { .. } | Fact::Unshared(..) => {}
            Fact::Call(call) => self.calls.push(call),
            Fact::Node { id, node } => {
                self.insert(id, node);
                if let Some(slot) = self.nodes.get_mut(&id).filter(|slot| !slot.is_kept) {
                    slot.is_kept = true;
                    self.kept += 1;
                }
            }
            Fact::Gone(id) => self.remove(id),
            Fact::Hidden { path, hidden } => {
                if !self.hidden.contains_key(&path) {
                    self.hidden.insert(path, hidden);
                    self.kept += 1;
                }
            }
            Fact::Shown(path) => self.kept -= usize::from(self.hidden.remove(&path).is_some()),
        }
    }

    /// Adds or replaces a node, and puts it into its folder.
    fn insert(&mut self, id: NodeId, node: Node) {
        self.next = self.next.max(id + 1);
        let (parent, name) = (node.parent, node.name.clone());
        match self.nodes.get_mut(&id) {
            Some(slot) => {
                let before = std::mem::replace(&mut slot.node, node);
                self.unlink(before.parent, &before.name, id);
            }
            None => {
                let slot = Slot { node, children: BTreeMap::new(), is_kept: false };
                self.nodes.insert(id, slot);
            }
        }
        if let Some(folder) = self.nodes.get_mut(&parent) {
            folder.children.insert(name, id);
        }
    }

    fn remove(&mut self, id: NodeId) {
        let Some(slot) = self.nodes.remove(&id) else { return };
        self.kept -= usize::from(slot.is_kept);
        self.unlink(slot.node.parent, &slot.node.name, id);
    }

    /// Takes a node out of a folder.
    fn unlink(&mut self, folder: NodeId, name: &str, id: NodeId) {
        if let Some(folder) = self.nodes.get_mut(&folder)
            && folder.children.get(name) == Some(&id)
        {
            folder.children.remove(name);
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

    /// Forgets the folders that were only passed.
    pub(crate) fn forget_passed(&mut self) {
        let passed: Vec<NodeId> = self.nodes.iter().filter(|(_, slot)| !slot.is_kept).map(|(id, _)| *id).collect();
        passed.into_iter().for_each(|id| self.remove(id));
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id).map(|slot| &slot.node)
    }

    pub(crate) fn child(&self, folder: NodeId, name: &str) -> Option<NodeId> {
        self.nodes.get(&folder)?.children.get(name).copied()
    }

    pub(crate) fn children(&self, folder: NodeId) -> impl Iterator<Item = (&str, NodeId)> {
        let slot = self.nodes.get(&folder);
        slot.into_iter().flat_map(|slot| slot.children.iter().map(|(name, id)| (name.as_str(), *id)))
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().map(|(id, slot)| (*id, &slot.node))
    }

    pub(crate) fn hidden(&self) -> &BTreeMap<String, Hidden> {
        &self.hidden
    }

    pub(crate) fn calls(&self) -> &[StagedCall] {
        &self.calls
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
