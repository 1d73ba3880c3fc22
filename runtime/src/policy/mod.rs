//! What the operator allows, and the [`Grant`] that a tool gets: what it asks for and the operator allows, no more.
//! Nothing is allowed by default, a denial wins over every allowance, and a guest can change neither.

mod address;
mod approval;
mod approvals;
mod definition;
mod encodings;
mod folder;
mod grant;
mod location;
mod network;
mod protected;
mod resolved;
mod rule;
mod scanner;
mod secret;
mod service;
mod target;
#[cfg(unix)]
mod walk;

use std::path::{Path, PathBuf};

use crate::tool::{Destination, Glob, Service};

pub use approval::{Approval, ApprovalAnswer, ApprovalRequest, Approver};
pub use approvals::{Approvals, StoredApproval};
pub(crate) use definition::definition;
pub use grant::{Folder, Grant};
pub(crate) use location::{Identity, Location, Mounts, real_path};
pub use network::Network;
pub(crate) use network::{Prospect, Refusal};
pub use protected::settled_by;
#[cfg(target_os = "linux")]
pub(crate) use protected::{MAX_ABOVE, moving};
pub(crate) use protected::{Protected, is_link_out, would_settle_below};
pub(crate) use resolved::Allowed;
pub(crate) use rule::{Command, Judged, Rules, Sentence, dead_condition};
pub use rule::{Pattern, Rule};
pub(crate) use scanner::{Leak, MASK, Scan, Scanner, masked};
pub(crate) use secret::Credentials;
pub use secret::{Secret, SecretStore, Secrets};
pub(crate) use target::Target;

/// One permission, as an operator writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permission {
    /// Reading a folder and all below it. `/` in a denial means every folder.
    Read(PathBuf),
    /// Writing, and so reading, a folder and all below it. `/` in a denial means every folder.
    Write(PathBuf),
    /// Seeing an environment variable. `*` in a denial means every variable.
    Env(String),
    /// Having a secret put into requests: `NAME`, or `NAME@HOST` for one host alone. `*` in a denial means every secret.
    Secret(String),
    /// Sending requests to a destination.
    Net(Destination),
    /// Using a service of the crib. The glob selects names; for a service without names, it is `*`.
    Service(Service, Glob),
}

impl Permission {
    /// Creates the permission to use a service, for all names if it has any.
    pub fn service(service: Service) -> Self {
        Self::Service(service, Glob::everything())
    }
}

/// What an operator allows and denies. Parsed here, resolved against the system when a runtime is built.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    allowed: Vec<Permission>,
    denied: Vec<Permission>,
    rules: Rules,
}

impl Policy {
    /// The folders that tools may write.
    pub(crate) fn writable(&self) -> impl Iterator<Item = &Path> {
        self.allowed.iter().filter_map(|permission| match permission {
            Permission::Write(path) => Some(path.as_path()),
            _ => None,
        })
    }

    /// Adds an allowance.
    #[must_use]
    pub fn allow(mut self, permission: Permission) -> Self {
        self.allowed.push(permission);
        self
    }

    /// Adds a rule over calls.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.add(rule);
        self
    }

    /// The rules over calls.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Adds a denial, which wins over every allowance.
    #[must_use]
    pub fn deny(mut self, permission: Permission) -> Self {
        self.denied.push(permission);
        self
    }
}
