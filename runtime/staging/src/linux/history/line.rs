//! Lines of a record.

use std::io::{self, ErrorKind};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::linux::entry::About;
use crate::types::{RecordHeader, StagedCall};

/// Fact of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Line {
    Begun(RecordHeader),
    /// Folder in which tools may write, with its device and number.
    Base {
        path: String,
        device: u64,
        inode: u64,
    },
    /// Call, numbered from 0 in the order of these lines.
    Call(StagedCall),
    /// Change that is about to be made, numbered from 0 in the order of these lines.
    Change(Noted),
    /// Number of a change that was not made.
    Failed(usize),
    /// State of each path when these calls had ended.
    End {
        calls: Vec<usize>,
        paths: Vec<(String, Option<About>)>,
    },
    /// State of paths in a folder that is about to be moved.
    Seen {
        paths: Vec<(String, Option<About>)>,
    },
    /// Entry that an undo made, and the one in whose place it is.
    Like {
        now: About,
        then: About,
    },
}

/// Change with its calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Noted {
    pub(crate) calls: Vec<usize>,
    /// Number of the step, if a commit made the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<usize>,
    pub(crate) action: Action,
}

impl Noted {
    /// Returns `true` if no other calls than these made the change.
    pub(crate) fn is_of(&self, calls: &[usize]) -> bool {
        self.calls.iter().all(|call| calls.contains(call))
    }
}

/// Change of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Action {
    Made {
        path: String,
    },
    /// The content of a file.
    Written {
        path: String,
        before: Kept,
    },
    Removed {
        path: String,
        before: Kept,
    },
    Moved {
        from: String,
        to: String,
        about: About,
        /// Replaced entry.
        over: Option<Kept>,
    },
}

impl Action {
    /// Paths that the change touches, each with `true` if there was an entry before.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (&str, bool)> {
        let (first, second) = match self {
            Self::Made { path } => ((path, false), None),
            Self::Written { path, .. } | Self::Removed { path, .. } => ((path, true), None),
            Self::Moved { from, to, over, .. } => ((from, true), Some((to, over.is_some()))),
        };
        [Some(first), second].into_iter().flatten().map(|(path, was_there)| (path.as_str(), was_there))
    }

    /// Returns `true` if the content before was not kept.
    pub(crate) fn has_lost(&self) -> bool {
        let before = match self {
            Self::Made { .. } => None,
            Self::Written { before, .. } | Self::Removed { before, .. } => Some(before),
            Self::Moved { over, .. } => over.as_ref(),
        };
        before.is_some_and(|before| matches!(before.content, KeptContent::Lost(_)))
    }

    /// Paths that the change touches.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.touched().map(|(path, _)| path)
    }
}

/// Entry as it was before a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) about: About,
    pub(crate) content: KeptContent,
}

/// Content of an entry before a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum KeptContent {
    /// Kept file, by its number.
    File(u64),
    Folder,
    Link(String),
    Lost(Loss),
}

/// Reason for which a content was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Loss {
    TooLarge,
    Full,
    Late,
    Unreadable,
    Special,
    Secret,
}

impl Loss {
    /// Returns the reason for an error of the system.
    pub(crate) fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::BUSY) => Self::Late,
            Some(Errno::DQUOT | Errno::NOSPC) => Self::Full,
            _ if error.kind() == ErrorKind::StorageFull => Self::Full,
            _ => Self::Unreadable,
        }
    }

    /// Explains the reason.
    pub(crate) fn explained(self) -> &'static str {
        match self {
            Self::TooLarge => "its content before was not kept: it is larger than `history.file`",
            Self::Full => "its content before was not kept: the history or the disk was full",
            Self::Late => "its content before was not kept: the time of the call was over",
            Self::Unreadable => "its content before was not kept: it could not be read",
            Self::Special => "it was no file, folder or link",
            Self::Secret => "its content before was not kept: it held a secret",
        }
    }
}
