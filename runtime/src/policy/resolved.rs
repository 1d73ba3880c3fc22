//! A policy against the system it will be used on: folders found and opened, names upper-cased, impossible
//! wishes refused before anything runs.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::tool::{Access, Destination, Glob};

use super::folder::{RealFolder, real_path};
use super::secret::SecretRule;
use super::{Permission, Policy};

/// A policy whose folders exist.
#[derive(Debug, Default)]
pub(crate) struct Allowed {
    /// Folders that flags allow, in the order in which they were given, each once.
    pub(super) folders: Vec<(RealFolder, Access)>,
    /// Variables that flags allow.
    pub(super) env: Vec<String>,
    /// Secrets that flags allow, and those that they deny.
    pub(super) secrets: Vec<SecretRule>,
    pub(super) denied_secrets: Vec<SecretRule>,
    denied_folders: Vec<(PathBuf, Access)>,
    denied_env: Vec<String>,
    /// Destinations that flags allow.
    pub(super) network: Vec<Destination>,
    pub(super) denied_network: Vec<Destination>,
    /// Programs that flags let scripts run, and those that they deny.
    pub(super) exec: Vec<Glob>,
    pub(super) denied_exec: Vec<Glob>,
    pub(super) delegate: bool,
    pub(super) denies_delegate: bool,
    pub(super) meta: bool,
    pub(super) denies_meta: bool,
    pub(super) model: bool,
    pub(super) denies_model: bool,
    /// Tools that flags let other tools call, and those that they deny.
    pub(super) call: Vec<Glob>,
    pub(super) denied_call: Vec<Glob>,
}

impl Allowed {
    /// Resolves a policy.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] where a folder is missing or is no folder.
    pub(crate) fn resolve(policy: &Policy) -> Result<Self, Error> {
        let mut allowed = Self::default();
        for permission in &policy.denied {
            match permission {
                Permission::Read(path) => allowed.denied_folders.push((real_path(path), Access::Read)),
                Permission::Write(path) => allowed.denied_folders.push((real_path(path), Access::Write)),
                Permission::Env(all) if all == "*" => allowed.denied_env.push(all.clone()),
                Permission::Env(name) => allowed.denied_env.push(variable(name, "--deny-env")?),
                Permission::Secret(text) => allowed.denied_secrets.push(SecretRule::read(text, "--deny-secret")?),
                Permission::Net(destination) => allowed.denied_network.push(destination.clone()),
                Permission::Exec(name) => allowed.denied_exec.push(name.clone()),
                Permission::Delegate => allowed.denies_delegate = true,
                Permission::Meta => allowed.denies_meta = true,
                Permission::Model => allowed.denies_model = true,
                Permission::Call(name) => allowed.denied_call.push(name.clone()),
            }
        }
        for permission in &policy.allowed {
            match permission {
                Permission::Read(path) => allowed.add_folder(path, Access::Read)?,
                Permission::Write(path) => allowed.add_folder(path, Access::Write)?,
                Permission::Env(name) => allowed.env.push(variable(name, "--allow-env")?),
                Permission::Secret(text) => allowed.secrets.push(SecretRule::read(text, "--allow-secret")?),
                Permission::Net(destination) => allowed.network.push(destination.clone().settled()),
                Permission::Exec(name) => allowed.exec.push(name.clone()),
                Permission::Delegate => allowed.delegate = true,
                Permission::Meta => allowed.meta = true,
                Permission::Model => allowed.model = true,
                Permission::Call(name) => allowed.call.push(name.clone()),
            }
        }
        Ok(allowed)
    }

    fn add_folder(&mut self, path: &Path, access: Access) -> Result<(), Error> {
        let written = format!("--allow-{}={}", access.as_str(), path.display());
        let folder = RealFolder::open(path, &written)?;
        match self.folders.iter_mut().find(|(known, _)| known.path == folder.path) {
            Some((_, known)) => *known = access.max(*known),
            None => self.folders.push((folder, access)),
        }
        Ok(())
    }

    /// What is left of `access` in a real folder after the denials: `None` where nothing is.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] where a denial lies inside the folder: a grant is a whole folder, so it cannot be honoured.
    pub(super) fn left_of(&self, folder: &Path, access: Access) -> Result<Option<Access>, Error> {
        let mut left = Some(access);
        for (denied, what) in &self.denied_folders {
            if folder.starts_with(denied) {
                left = match what {
                    Access::Read => None,
                    Access::Write => left.map(|_| Access::Read),
                };
            } else if denied.starts_with(folder) && *what <= access {
                return Err(Error::Permission {
                    permission: format!("--deny-{}={}", what.as_str(), denied.display()),
                    reason: format!(
                        "lies inside the granted {}; grant the folders beside it instead",
                        folder.display()
                    ),
                });
            }
            if left.is_none() {
                break;
            }
        }
        Ok(left)
    }

    /// Whether a variable is denied.
    pub(super) fn denies_env(&self, name: &str) -> bool {
        self.denied_env.iter().any(|denied| denied == "*" || denied == name)
    }
}

/// The name of a variable, upper case.
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
