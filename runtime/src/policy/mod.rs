//! Permissions from the operator, and the [`Grant`] of a tool: the intersection of its requests and these permissions.
//! Nothing is allowed by default, a denial overrides every allowance, and a guest can change neither.

mod approval;
mod approvals;
mod autostart;
mod definition;
mod encodings;
mod flow;
mod folder;
mod grant;
mod granted_folders;
mod hooks;
mod identity;
mod literal;
mod location;
mod network;
mod open_error;
mod open_folder;
mod protected;
mod resolved;
mod review;
mod rule;
mod scanner;
mod secret;
mod secret_rules;
mod selection;
mod sensitive;
mod service;
mod target;
#[cfg(unix)]
mod walk;
mod withhold;

use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use crate::flow::Labels;
use crate::tool::{Access, Destination, Glob, Service};

pub use crate::tool::names::canonical;

pub use approval::{Approval, ApprovalAnswer, ApprovalRequest, Approver, HeldRequest, StagedEffects, Withheld};
pub use approvals::{Approvals, StoredApproval};
#[cfg(unix)]
pub(crate) use autostart::MAX_PARENT_NAMES;
pub use autostart::agent_settings;
pub(crate) use definition::definition;
pub(crate) use flow::{FlowPolicy, closable, leaves_values, ways_out};
pub use grant::{Folder, Grant};
pub(crate) use hooks::{HookAccess, source_id};
pub(crate) use identity::Identity;
pub(crate) use literal::Literal;
#[cfg(unix)]
pub(crate) use location::path_by_handle;
pub(crate) use location::present_path;
pub use location::real_path;
pub(crate) use location::{Location, Mounts};
pub use network::Network;
pub(crate) use network::{FlagHints, Refusal};
pub use open_folder::OpenFolder;
pub use protected::controlled_by;
pub(crate) use protected::{Protected, is_link_out, lock_moves, protects_names_below};
pub(crate) use resolved::Allowed;
pub use review::{ReviewedItem, SourceReview, named_requests, review};
pub(crate) use rule::{
    Command, CommandDecision, RuleDecision, Rules, ScriptKind, canonical_value, dead_condition, is_null,
    is_visible_in_command_line, matches_number, may_overwrite, means, plain_number, visible_arguments,
};
pub use rule::{Pattern, PatternError, Rule};
pub(crate) use scanner::{Leak, MASK, Scan, Scanner, masked};
pub(crate) use secret::Credentials;
pub use secret::{Secret, SecretStore, Secrets};
pub use selection::ToolSelection;
pub use sensitive::SensitiveArguments;
pub(crate) use target::Target;
pub(crate) use withhold::withhold;

/// A permission, as written by an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permission {
    /// Reading a folder and everything below it, or one file. `/` in a denial means every folder.
    Read(PathBuf),
    /// Writing and reading a folder and everything below it, or one file. `/` in a denial means every folder.
    Write(PathBuf),
    /// Reading, or writing and reading, an open folder and everything below it, whatever takes its path.
    Folder(OpenFolder, Access),
    /// Reading an environment variable. `*` in a denial means every variable.
    Env(String),
    /// Using a secret in requests: `NAME@HOST#PLACE`. A denial may omit the place, or the host and the place; `*` in a
    /// denial means every secret.
    Secret(String),
    /// Sending requests to a destination.
    Net(Destination),
    /// Using a service of the crib. The glob selects names; for a service without names, it is `*`.
    Service(Service, Glob),
    /// Script hooks of a source handling other sources' tools, the host's tools and events without a tool. `None` means
    /// the hooks of every source.
    Hooks(Option<PathBuf>),
    /// A permission for some tools only. [`Permission::Hooks`] cannot be limited.
    Limited(ToolSelection, Box<Permission>),
}

impl Permission {
    /// Creates the permission to use a service, for all names if it has any.
    pub fn service(service: Service) -> Self {
        Self::Service(service, Glob::everything())
    }

    /// Creates the permission to use a folder that is open already.
    ///
    /// ```
    /// # fn demo(folder: &std::path::Path) -> std::io::Result<()> {
    /// use cap_std::{ambient_authority, fs::Dir};
    /// use toolcrib::{Policy, policy::Permission, tool::Access};
    ///
    /// let data = Dir::open_ambient_dir(folder, ambient_authority())?;
    /// let policy = Policy::default().allow(Permission::folder(data, Access::Read)?);
    /// # Ok(()) }
    /// # demo(&std::env::temp_dir()).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`OpenFolder::new`].
    pub fn folder(folder: Dir, access: Access) -> io::Result<Self> {
        Ok(Self::Folder(OpenFolder::new(folder)?, access))
    }

    /// Limits the permission to some tools.
    #[must_use]
    pub fn limited_to(self, tools: ToolSelection) -> Self {
        Self::Limited(tools, Box::new(self))
    }

    /// Returns the permission without its limit to some tools.
    pub fn unlimited(&self) -> &Self {
        match self {
            Self::Limited(_, permission) => permission.unlimited(),
            permission => permission,
        }
    }
}

/// Permissions and denials of an operator, which are resolved on the system when a runtime is built.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    allowed: Vec<Permission>,
    /// Paths of allowed folders, each with a folder below which no link on it is followed.
    confined: Vec<(PathBuf, PathBuf)>,
    denied: Vec<Permission>,
    rules: Rules,
    labels: Labels,
}

impl Policy {
    /// Returns `true` if flags allow any folder.
    pub(crate) fn allows_folders(&self) -> bool {
        let is_folder = |permission: &Permission| {
            matches!(permission.unlimited(), Permission::Read(_) | Permission::Write(_) | Permission::Folder(..))
        };
        self.allowed.iter().any(is_folder)
    }

    /// Folders that tools may write.
    pub(crate) fn writable(&self) -> impl Iterator<Item = &Path> {
        self.allowed.iter().filter_map(|permission| match permission.unlimited() {
            Permission::Write(path) => Some(path.as_path()),
            Permission::Folder(folder, Access::Write) => Some(folder.path()),
            _ => None,
        })
    }

    /// Returns the folder below which no link is followed on the path of an allowed folder.
    fn outer_of(&self, path: &Path) -> Option<&Path> {
        self.confined.iter().find(|(confined, _)| confined == path).map(|(_, outer)| outer.as_path())
    }

    /// Adds a permission.
    #[must_use]
    pub fn allow(mut self, permission: Permission) -> Self {
        self.allowed.push(permission);
        self
    }

    /// Adds a permission for a folder that lies below `outer`, such as one that a project grants in itself: when it is opened,
    /// links on the path of `outer` are followed, links below it are not. Of any other permission, `outer` is ignored.
    #[must_use]
    pub fn allow_below(mut self, outer: &Path, permission: Permission) -> Self {
        if let Permission::Read(path) | Permission::Write(path) = permission.unlimited() {
            self.confined.push((path.clone(), outer.to_path_buf()));
        }
        self.allow(permission)
    }

    /// Adds a rule for calls.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.add(rule);
        self
    }

    /// Sets the labels of places, on which rules about flows depend.
    #[must_use]
    pub fn labels(self, labels: Labels) -> Self {
        Self { labels, ..self }
    }

    /// Labels of places.
    pub(crate) fn place_labels(&self) -> &Labels {
        &self.labels
    }

    /// Rules for calls.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Adds a denial, which overrides every permission.
    #[must_use]
    pub fn deny(mut self, permission: Permission) -> Self {
        self.denied.push(permission);
        self
    }
}
