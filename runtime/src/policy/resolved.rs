//! Resolution of a policy on the system: folders are opened, variable names are converted to upper case, and impossible
//! permissions are refused before anything runs.

use std::borrow::Cow;
use std::path::{Component, Path};
use std::sync::Arc;

use crate::error::Error;
use crate::source::nearest;
use crate::tool::{Access, Destination, Glob, Service, Tool};

use super::folder::RealFolder;
use super::identity::Identity;
use super::location::{Location, Mounts};
use super::protected::Protected;
use super::secret_rules::{SecretRule, SecretRules};
use super::selection::{ResolvedSelection, ToolSelection};
use super::{Permission, Policy};

/// A resolved policy, with open folders.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowed {
    /// Folders that flags allow, in the order in which they were given, each once.
    pub(super) folders: Vec<(RealFolder, Access)>,
    /// Variables that flags allow.
    pub(super) env: Vec<String>,
    /// Rules for secrets.
    pub(super) secrets: SecretRules,
    denied_folders: Vec<(Location, Access)>,
    denied_env: Vec<String>,
    /// Destinations that flags allow.
    pub(super) network: Vec<Destination>,
    pub(super) denied_network: Vec<Destination>,
    /// Services that flags allow, and those that they deny.
    pub(super) services: Vec<(Service, Glob)>,
    pub(super) denied_services: Vec<(Service, Glob)>,
    pub(super) mounts: Arc<Mounts>,
    /// Files that no tool may change in any folder.
    pub(super) protected: Arc<Protected>,
    /// Permissions and denials for some tools only.
    limited: Vec<Limited>,
}

/// Permissions and denials for some tools only.
#[derive(Debug, Clone)]
struct Limited {
    to: ToolSelection,
    tools: ResolvedSelection,
    policy: Allowed,
}

impl Allowed {
    /// Resolves a policy.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] if a folder is missing or is not a folder.
    pub(crate) fn resolve(policy: &Policy) -> Result<Self, Error> {
        let mut allowed = Self::default();
        for permission in &policy.denied {
            allowed.deny(permission)?;
        }
        let writable = allowed.writable(policy)?;
        for permission in &policy.allowed {
            allowed.allow(policy, permission, &writable, "")?;
        }
        Ok(allowed)
    }

    /// Adds a denial.
    fn deny(&mut self, permission: &Permission) -> Result<(), Error> {
        match permission {
            Permission::Read(path) => self.deny_folder(path, Access::Read),
            Permission::Write(path) => self.deny_folder(path, Access::Write),
            Permission::Folder(folder, access) => {
                self.denied_folders.push((folder.location(&self.mounts), *access));
            }
            Permission::Env(all) if all == "*" => self.denied_env.push(all.clone()),
            Permission::Env(name) => self.denied_env.push(variable(name, "--deny-env")?),
            Permission::Secret(text) => self.secrets.deny.push(SecretRule::read(text, "--deny-secret")?),
            Permission::Net(destination) => self.denied_network.push(destination.clone()),
            Permission::Service(service, names) => self.denied_services.push((*service, names.clone())),
            // No permission of a tool: see `HookAccess`.
            Permission::Hooks(_) => {}
            Permission::Limited(tools, permission) => {
                refuse_hooks("--deny-hooks", tools, permission)?;
                self.limited_to(tools).deny(permission)?;
            }
        }
        Ok(())
    }

    /// Adds a permission; `prefix` is the text of the tools that limit it.
    fn allow(
        &mut self,
        policy: &Policy,
        permission: &Permission,
        writable: &[Identity],
        prefix: &str,
    ) -> Result<(), Error> {
        match permission {
            Permission::Read(path) => self.add_folder(policy, path, Access::Read, writable, prefix)?,
            Permission::Write(path) => self.add_folder(policy, path, Access::Write, writable, prefix)?,
            Permission::Folder(folder, access) => {
                let written = written(prefix, folder.path(), *access);
                self.insert_folder(RealFolder::held(folder, &written, &self.mounts)?, *access);
            }
            Permission::Env(name) => self.env.push(variable(name, "--allow-env")?),
            Permission::Secret(text) => self.secrets.allow.push(SecretRule::read(text, "--allow-secret")?),
            Permission::Net(destination) => self.network.push(destination.clone().with_default_port()),
            Permission::Service(service, names) => self.services.push((*service, names.clone())),
            Permission::Hooks(_) => {}
            Permission::Limited(tools, permission) => {
                refuse_hooks("--allow-hooks", tools, permission)?;
                self.limited_to(tools).allow(policy, permission, writable, &format!("{prefix}{tools}"))?;
            }
        }
        Ok(())
    }

    /// Returns the permissions and denials that are limited to some tools.
    fn limited_to(&mut self, to: &ToolSelection) -> &mut Self {
        let known = self.limited.iter().position(|limited| limited.to == *to);
        let at = known.unwrap_or_else(|| {
            let policy = Self { mounts: self.mounts.clone(), ..Self::default() };
            self.limited.push(Limited { to: to.clone(), tools: to.resolve(), policy });
            self.limited.len() - 1
        });
        &mut self.limited[at].policy
    }

    /// Finds the limits that select none of the tools, each with the name that was probably meant.
    pub(crate) fn unmatched<'a>(&'a self, tools: &'a [Tool]) -> impl Iterator<Item = (String, Option<&'a str>)> {
        // Settings files grant to trusted tools in every folder.
        let none = |limited: &&Limited| {
            !matches!(limited.to, ToolSelection::Trusted(_)) && !tools.iter().any(|tool| limited.tools.denies(tool))
        };
        let all = || tools.iter().map(|tool| tool.name.as_str());
        self.limited.iter().filter(none).map(move |limited| {
            let meant = match &limited.to {
                ToolSelection::Names(names) => nearest(names.as_str(), all()),
                ToolSelection::Source(_) | ToolSelection::Trusted(_) => None,
            };
            (limited.to.to_string(), meant)
        })
    }

    /// Returns the positions of the denials for some tools only that apply to this one.
    pub(super) fn own_denials(&self, tool: &Tool) -> Vec<usize> {
        let applies = |limited: &Limited| limited.policy.has_denials() && limited.tools.denies(tool);
        self.limited.iter().enumerate().filter(|(_, limited)| applies(limited)).map(|(at, _)| at).collect()
    }

    /// Returns `true` if anything is denied, for some tools or for all.
    fn has_denials(&self) -> bool {
        !self.denied_folders.is_empty()
            || !self.denied_env.is_empty()
            || !self.secrets.deny.is_empty()
            || !self.denied_network.is_empty()
            || !self.denied_services.is_empty()
            || self.limited.iter().any(|limited| limited.policy.has_denials())
    }

    /// Returns the policy for one tool: everything that is for all tools or for this one. Folders for this one come last.
    pub(super) fn for_tool(&self, tool: &Tool) -> Cow<'_, Self> {
        let mut own = Cow::Borrowed(self);
        for Limited { tools, policy, .. } in &self.limited {
            let (allows, denies) = (tools.allows(tool), tools.denies(tool));
            let policy = policy.for_tool(tool);
            if allows {
                own.to_mut().extend_allowed(&policy);
            }
            if denies {
                own.to_mut().extend_denied(&policy);
            }
        }
        own
    }

    fn extend_allowed(&mut self, other: &Self) {
        other.folders.iter().for_each(|(folder, access)| self.insert_folder(folder.clone(), *access));
        self.env.extend_from_slice(&other.env);
        self.secrets.allow.extend_from_slice(&other.secrets.allow);
        self.network.extend_from_slice(&other.network);
        self.services.extend_from_slice(&other.services);
    }

    fn extend_denied(&mut self, other: &Self) {
        self.denied_folders.extend_from_slice(&other.denied_folders);
        self.denied_env.extend_from_slice(&other.denied_env);
        self.secrets.deny.extend_from_slice(&other.secrets.deny);
        self.denied_network.extend_from_slice(&other.denied_network);
        self.denied_services.extend_from_slice(&other.denied_services);
    }

    /// Adds the files that no tool may change.
    pub(crate) fn protecting(self, protected: Arc<Protected>) -> Self {
        Self { protected, ..self }
    }

    /// Mounts of the system when the policy was resolved.
    pub(crate) fn mounts(&self) -> &Mounts {
        &self.mounts
    }

    /// Identities of the writable folders. Links in them may have been created by tools.
    fn writable(&self, policy: &Policy) -> Result<Vec<Identity>, Error> {
        let mut writable = Vec::new();
        for permission in &policy.allowed {
            match permission.unlimited() {
                Permission::Write(path) => {
                    let folder = self.open(policy, path, &written(&prefix(permission), path, Access::Write), &[])?;
                    writable.extend(folder.location.identity());
                }
                Permission::Folder(folder, Access::Write) => writable.push(folder.identity()),
                _ => {}
            }
        }
        Ok(writable)
    }

    fn deny_folder(&mut self, path: &Path, access: Access) {
        let is_everywhere = path == Path::new("/");
        let location = if is_everywhere { Location::everywhere() } else { Location::of(path, &self.mounts) };
        self.denied_folders.push((location, access));
    }

    /// Opens a folder that the policy allows, or the folder of a file.
    fn open(&self, policy: &Policy, path: &Path, written: &str, writable: &[Identity]) -> Result<RealFolder, Error> {
        let (folder, file) = match path.metadata().is_ok_and(|about| about.is_file()) {
            true => (path.parent().unwrap_or(path), path.file_name()),
            false => (path, None),
        };
        let opened = self.open_folder(policy.outer_of(path), folder, written, writable)?;
        match file {
            Some(file) => opened.only(file, written, &self.mounts),
            None => Ok(opened),
        }
    }

    fn open_folder(
        &self,
        outer: Option<&Path>,
        path: &Path,
        written: &str,
        writable: &[Identity],
    ) -> Result<RealFolder, Error> {
        let Some(outer) = outer else {
            return RealFolder::open(path, written, &self.mounts, writable);
        };
        let below = path.strip_prefix(outer).ok();
        let Some(rest) = below.filter(|rest| rest.components().all(|part| matches!(part, Component::Normal(_)))) else {
            let reason = format!("not below `{}`", outer.display());
            return Err(Error::Permission { permission: written.to_owned(), reason });
        };
        RealFolder::open_below(outer, rest, written, &self.mounts, writable)
    }

    fn add_folder(
        &mut self,
        policy: &Policy,
        path: &Path,
        access: Access,
        writable: &[Identity],
        prefix: &str,
    ) -> Result<(), Error> {
        let folder = self.open(policy, path, &written(prefix, path, access), writable)?;
        self.insert_folder(folder, access);
        Ok(())
    }

    fn insert_folder(&mut self, folder: RealFolder, access: Access) {
        match self.folders.iter_mut().find(|(known, _)| known.is(&folder)) {
            Some((_, known)) => *known = access.max(*known),
            None => self.folders.push((folder, access)),
        }
    }

    /// Reduces `access` to a real folder by the denials; `None` if no access is left.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] if a denial is for a path inside the folder: a grant covers the whole folder, so the
    /// denial cannot be enforced.
    pub(super) fn left_of(&self, folder: &Location, access: Access) -> Result<Option<Access>, Error> {
        let mut left = Some(access);
        for (denied, what) in &self.denied_folders {
            if folder.is_in(denied) {
                left = match what {
                    Access::Read => None,
                    Access::Write => left.map(|_| Access::Read),
                };
            } else if folder.overlaps(denied) && *what <= access {
                return Err(Error::Permission {
                    permission: format!("--deny-{}={}", what.as_str(), denied.path().display()),
                    reason: format!(
                        "lies inside the granted {}; grant the folders beside it instead",
                        folder.path().display()
                    ),
                });
            }
            if left.is_none() {
                break;
            }
        }
        Ok(left)
    }

    /// Returns `true` if a variable is denied.
    pub(super) fn denies_env(&self, name: &str) -> bool {
        self.denied_env.iter().any(|denied| denied == "*" || denied == name)
    }
}

/// Formats the flag that allows a folder.
fn written(prefix: &str, path: &Path, access: Access) -> String {
    format!("--allow-{}={prefix}{}", access.as_str(), path.display())
}

/// Returns the text of the tools that a permission is limited to.
fn prefix(permission: &Permission) -> String {
    match permission {
        Permission::Limited(tools, permission) => format!("{tools}{}", prefix(permission)),
        _ => String::new(),
    }
}

/// Refuses a permission for hooks of some tools: hooks belong to a source.
fn refuse_hooks(flag: &str, tools: &ToolSelection, permission: &Permission) -> Result<(), Error> {
    match permission.unlimited() {
        Permission::Hooks(_) if !matches!(tools, ToolSelection::Trusted(_)) => Err(Error::Permission {
            permission: format!("{flag}={tools}…"),
            reason: "a permission for hooks names a source and cannot be limited to tools".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Converts the name of a variable to upper case.
fn variable(name: &str, flag: &str) -> Result<String, Error> {
    let upper = name.trim().to_uppercase();
    let first = upper.starts_with(|first: char| first.is_ascii_uppercase() || first == '_');
    let rest = upper.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if first && rest {
        return Ok(upper);
    }
    let reason = "not the name of a variable (must match [A-Z_][A-Z0-9_]*)".to_owned();
    Err(Error::Permission { permission: format!("{flag}={name}"), reason })
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_folder_below_another_is_opened_without_a_link_that_came_after_its_check() {
        let folder = tempfile::tempdir().unwrap();
        let project = crate::policy::canonical(folder.path()).unwrap().join("project");
        let docs = project.join("docs");
        std::fs::create_dir_all(docs.join("inner")).unwrap();
        std::fs::create_dir_all(folder.path().join("outside/inner")).unwrap();
        for permission in [Permission::Read as fn(PathBuf) -> Permission, Permission::Write] {
            let opens = |path: &Path| {
                let policy = Policy::default().allow_below(&project, permission(path.to_path_buf()));
                Allowed::resolve(&policy).map(|allowed| allowed.folders.len()).map_err(|error| error.to_string())
            };
            for path in [&project, &docs, &docs.join("inner")] {
                assert_eq!(opens(path), Ok(1), "{}", path.display());
            }
            assert!(opens(folder.path()).unwrap_err().contains("not below"));
            assert!(opens(&project.join("../outside")).unwrap_err().contains("not below"));
            std::fs::rename(&docs, project.join("moved")).unwrap();
            std::os::unix::fs::symlink("../outside", &docs).unwrap();
            for path in [&docs, &docs.join("inner")] {
                assert!(opens(path).unwrap_err().contains("is a link"), "{}", path.display());
            }
            std::fs::remove_file(&docs).unwrap();
            std::fs::rename(project.join("moved"), &docs).unwrap();
        }
    }
}
