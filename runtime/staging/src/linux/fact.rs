//! Facts of the journal: the nodes of the overlay, and the real entries that it hides.

use serde::{Deserialize, Serialize};

use super::entry::About;
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

/// In place of the time of a copy: the content is new, and replaces that of the origin.
pub(crate) const REPLACED: i128 = 0;

/// Content of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Content {
    Folder,
    /// The content of the origin.
    Below,
    /// A staged file under the node's number. With an origin, the time at which it was copied from there, or [`REPLACED`]: a later
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
    /// `true` if a call has set that time.
    #[serde(default)]
    pub(crate) is_dated: bool,
    /// Permissions of a new file or folder, if they are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<u32>,
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

    /// Returns the permissions that a commit gives the file; `None` for those of any new file.
    pub(crate) fn permissions(&self) -> Option<u32> {
        let of_origin = self.origin.as_ref().and_then(|origin| origin.about);
        self.mode.or(of_origin.filter(|about| about.kind == EntryKind::File).map(|about| about.mode))
    }
}

/// Real entry that is not shown at its place: it was removed, replaced or moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hidden {
    pub(crate) about: About,
    /// Numbers of the calls that changed it.
    pub(crate) by: Vec<u32>,
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
    /// A part was committed, known by the prefix of its commit: the facts before are over the folders as they are since.
    Rebased(String),
}
