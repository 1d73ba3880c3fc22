//! A policy against the system it will be used on: folders opened by their real paths, names upper-cased, impossible
//! wishes refused before anything runs.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::tool::Access;

use super::{Permission, Policy};

/// A policy whose folders exist.
#[derive(Debug, Default)]
pub struct Allowed {
    /// Folders that flags allow, in the order in which they were given, each once.
    pub(super) folders: Vec<(PathBuf, Access)>,
    /// Variables that flags allow.
    pub(super) env: Vec<String>,
    denied_folders: Vec<(PathBuf, Access)>,
    denied_env: Vec<String>,
}

impl Allowed {
    /// Resolves a policy.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] where a folder is missing or is no folder.
    pub fn resolve(policy: &Policy) -> Result<Self, Error> {
        let mut allowed = Self::default();
        for permission in &policy.denied {
            match permission {
                Permission::Read(path) => allowed.denied_folders.push((real_or_absolute(path), Access::Read)),
                Permission::Write(path) => allowed.denied_folders.push((real_or_absolute(path), Access::Write)),
                Permission::Env(name) => allowed.denied_env.push(name.to_uppercase()),
            }
        }
        for permission in &policy.allowed {
            match permission {
                Permission::Read(path) => allowed.add_folder(path, Access::Read)?,
                Permission::Write(path) => allowed.add_folder(path, Access::Write)?,
                Permission::Env(name) => allowed.env.push(name.to_uppercase()),
            }
        }
        Ok(allowed)
    }

    fn add_folder(&mut self, path: &Path, access: Access) -> Result<(), Error> {
        let written = format!("--allow-{}={}", access.as_str(), path.display());
        let path = real_folder(path, &written)?;
        match self.folders.iter_mut().find(|(known, _)| *known == path) {
            Some((_, known)) => *known = access.max(*known),
            None => self.folders.push((path, access)),
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

/// The real path of a folder that is to be granted.
pub(super) fn real_folder(path: &Path, written: &str) -> Result<PathBuf, Error> {
    let refuse = |reason: String| Error::Permission { permission: written.to_owned(), reason };
    let real = path.canonicalize().map_err(|error| refuse(error.to_string()))?;
    if real.is_dir() { Ok(real) } else { Err(refuse("not a folder".into())) }
}

/// A denied path need not exist; what exists of it is resolved.
fn real_or_absolute(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_path_buf())
}
