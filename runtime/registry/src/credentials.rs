//! Operator credentials: found in the files of Docker and Podman or through credential helpers, and stored there by
//! `login`.
//!
//! The caller passes paths and variables: this crate reads no environment.

mod docker_file;
mod helper;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use helper::HelperEnvironment;

use crate::error::CredentialError;
use crate::limits::MAX_HELPER_TIME;
use crate::reference::{Registry, Repository};
use crate::secret::Credential;
use docker_file::{DockerFile, Source};

/// Places in which credentials are looked up and stored.
#[derive(Clone, Debug, Default)]
pub struct CredentialStore {
    files: Vec<PathBuf>,
    login_file: Option<PathBuf>,
    helpers: HelperEnvironment,
}

/// Place in which `login` stored a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredIn {
    /// The credential file, readable by its owner and not encrypted.
    File(PathBuf),
    /// The helper `docker-credential-NAME`.
    Helper(String),
}

impl CredentialStore {
    /// Creates a store.
    ///
    /// `files` are read in order; the first that has a credential for the registry decides. `login_file` is the file
    /// that [`save`](Self::save) and [`erase`](Self::erase) change.
    pub fn new(files: Vec<PathBuf>, login_file: Option<PathBuf>, helpers: HelperEnvironment) -> Self {
        Self { files, login_file, helpers }
    }

    /// Creates a store from the variables of a process, usually `std::env::vars_os()`.
    ///
    /// Files: `$REGISTRY_AUTH_FILE`, or else `$XDG_RUNTIME_DIR/containers/auth.json`; then
    /// `$DOCKER_CONFIG/config.json`, or else `~/.docker/config.json`, which is also the one that `login` changes.
    /// Relative paths in these variables are ignored. Credential helpers are found in `$PATH` and receive all
    /// variables.
    pub fn from_variables(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let variables: Vec<(OsString, OsString)> = variables.into_iter().collect();
        let get = |name: &str| {
            let found = variables.iter().find(|(key, _)| key == OsStr::new(name));
            found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
        };
        let folder = |name: &str| get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let podman = folder("REGISTRY_AUTH_FILE")
            .or_else(|| folder("XDG_RUNTIME_DIR").map(|path| path.join("containers").join("auth.json")));
        let home = folder("HOME").or_else(|| folder("USERPROFILE"));
        let docker = folder("DOCKER_CONFIG")
            .or_else(|| home.map(|home| home.join(".docker")))
            .map(|path| path.join("config.json"));
        let helpers = HelperEnvironment::new(get("PATH").unwrap_or_default(), variables.clone());
        Self { files: podman.into_iter().chain(docker.clone()).collect(), login_file: docker, helpers }
    }

    /// Sets the time that a credential helper may run. Default and upper bound: [`MAX_HELPER_TIME`].
    pub fn set_helper_time(&mut self, time: Duration) {
        self.helpers.time = time.min(MAX_HELPER_TIME);
    }

    /// Looks up the credential for a repository. `None` means anonymous access.
    ///
    /// Within a file, an entry of `credHelpers` comes first, then `credsStore`, then the most specific entry of
    /// `auths`.
    ///
    /// # Errors
    ///
    /// If a file or helper exists and cannot be used. A missing file is skipped.
    pub async fn find(&self, repository: &Repository) -> Result<Option<Credential>, CredentialError> {
        for path in &self.files {
            let Some(mut file) = read(path.clone()).await? else { continue };
            if let Some(name) = file.helper_for(repository.registry())? {
                let found = helper::get(&self.helpers, &name, &server_name(repository.registry())).await?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            if let Some(credential) = file.take_entry(repository)? {
                return Ok(Some(credential));
            }
        }
        Ok(None)
    }

    /// Stores a credential in the helper that the login file names for the registry, or else in the file itself.
    ///
    /// # Errors
    ///
    /// [`CredentialError::NoStore`] without a login file; if the file or helper cannot be used.
    pub async fn save(&self, registry: &Registry, credential: &Credential) -> Result<StoredIn, CredentialError> {
        let path = self.login_file.clone().ok_or(CredentialError::NoStore)?;
        let server = server_name(registry);
        let current = read(path.clone()).await?;
        if let Some(name) = current.as_ref().map(|file| file.helper_for(registry)).transpose()?.flatten() {
            helper::store(&self.helpers, &name, &server, credential).await?;
            change(path, server, None).await?;
            return Ok(StoredIn::Helper(name));
        }
        change(path.clone(), server, Some(credential.clone())).await?;
        Ok(StoredIn::File(path))
    }

    /// Erases the credential of a registry from the login file and its helper. Returns `true` if the file had one.
    ///
    /// # Errors
    ///
    /// [`CredentialError::NoStore`] without a login file; if the file or helper cannot be used.
    pub async fn erase(&self, registry: &Registry) -> Result<bool, CredentialError> {
        let path = self.login_file.clone().ok_or(CredentialError::NoStore)?;
        let Some(file) = read(path.clone()).await? else { return Ok(false) };
        let server = server_name(registry);
        if let Some(name) = file.helper_for(registry)? {
            helper::erase(&self.helpers, &name, &server).await?;
        }
        let registry = registry.clone();
        blocking(&path.clone(), move || docker_file::remove(&path, &registry)).await
    }
}

/// Returns the name under which Docker keeps the credentials of a registry.
fn server_name(registry: &Registry) -> String {
    match registry.api_authority() {
        "registry-1.docker.io" => "https://index.docker.io/v1/".to_owned(),
        authority => authority.to_owned(),
    }
}

async fn read(path: PathBuf) -> Result<Option<DockerFile>, CredentialError> {
    blocking(&path.clone(), move || DockerFile::read(&path)).await
}

/// Sets the entry of a server: to a credential, or to the empty object that marks a helper's entry.
async fn change(path: PathBuf, server: String, credential: Option<Credential>) -> Result<(), CredentialError> {
    let source = credential.map_or(Source::Helper, Source::File);
    blocking(&path.clone(), move || docker_file::insert(&path, &server, &source)).await
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, CredentialError> + Send + 'static,
) -> Result<T, CredentialError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(CredentialError::File { action: "read", path: path.to_owned(), source: std::io::Error::other(error) })
    })
}
