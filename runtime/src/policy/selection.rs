//! Selection of tools that limits a permission or a denial.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::tool::{Glob, Tool, Trust};

use super::hooks::source_id;

/// Tools that a permission or a denial is limited to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolSelection {
    /// Tools of these names. A denial also selects tools by their aliases.
    Names(Glob),
    /// Tools of the source at this path.
    Source(PathBuf),
    /// Tools from sources that are trusted as they are now, and from the sources at these paths.
    Trusted(Vec<PathBuf>),
}

impl ToolSelection {
    /// Returns `true` if a denial for this selection is for a tool.
    pub fn selects(&self, tool: &Tool) -> bool {
        self.resolve().denies(tool)
    }

    /// Finds the source of the selection, so that each tool is compared with it.
    pub(super) fn resolve(&self) -> ResolvedSelection {
        match self {
            Self::Names(names) => ResolvedSelection::Names(names.clone()),
            Self::Source(path) => ResolvedSelection::Source(source_id(path)),
            Self::Trusted(named) => ResolvedSelection::Trusted(named.iter().map(|path| source_id(path)).collect()),
        }
    }
}

/// Writes the selection as the prefix of a permission, such as `fs_*:` or `@./tools.json:`. The trusted tools have none.
impl fmt::Display for ToolSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Names(names) => write!(f, "{}:", names.as_str()),
            Self::Source(path) => write!(f, "@{}:", path.display()),
            Self::Trusted(_) => Ok(()),
        }
    }
}

/// Selection with the identifier of its source.
#[derive(Debug, Clone)]
pub(super) enum ResolvedSelection {
    Names(Glob),
    Source(Arc<Path>),
    Trusted(Vec<Arc<Path>>),
}

impl ResolvedSelection {
    /// Returns `true` if a permission is for a tool.
    pub(super) fn allows(&self, tool: &Tool) -> bool {
        match self {
            Self::Names(names) => names.is_match(&tool.name),
            Self::Source(id) => tool.origin.source.as_ref() == Some(id),
            Self::Trusted(named) => {
                tool.origin.trust != Trust::Stranger || tool.origin.source.as_ref().is_some_and(|id| named.contains(id))
            }
        }
    }

    /// Returns `true` if a denial is for a tool.
    pub(super) fn denies(&self, tool: &Tool) -> bool {
        let has_alias = |names: &Glob| tool.interface.identity.aliases.value.iter().any(|alias| names.is_match(alias));
        self.allows(tool) || matches!(self, Self::Names(names) if has_alias(names))
    }
}
