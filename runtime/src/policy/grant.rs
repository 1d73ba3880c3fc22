//! Grant of a tool: its requests, as far as the operator's allowances cover them.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_primitives::fs::open_dir;
use toolcrib_staging::{CallHistory, Record, Stage, StagedCall, Withhold};

use crate::call::{Denial, pasted};
use crate::error::Error;
use crate::tool::names::NameRules;
use crate::tool::{Access, FileRequest, SecretRequest, Tool};

use super::folder::RealFolder;
use super::granted_folders::{granted_folders, name_folders};
use super::identity::Identity;
use super::location::{Location, Mounts, real_path};
use super::network::Network;
use super::protected::Protected;
use super::resolved::Allowed;
use super::secret_rules;
use super::service::Rights;

/// Variables that every guest has, with fixed values, because the host's values would reveal a path and a user.
const GUEST_ENV: [(&str, &str); 2] = [("PATH", "/bin"), ("HOME", "/")];

/// Returns `true` if the guest's value of a variable is fixed: a request for it grants nothing.
pub(super) fn is_fixed(variable: &str) -> bool {
    GUEST_ENV.iter().any(|(name, _)| *name == variable)
}

/// A granted folder of the host, with its paths in the guest.
#[derive(Debug, Clone)]
pub struct Folder {
    /// Real path on the host when the folder was granted.
    pub host: PathBuf,
    /// Open handle of the granted folder, valid even if something else takes its path.
    pub(super) handle: Arc<File>,
    /// Location of the folder when it was opened.
    pub(crate) location: Arc<Location>,
    /// Paths in the guest; the first granted folder is `/`, its working directory.
    pub guest: Vec<String>,
    /// Granted access.
    pub access: Access,
    /// Granted files in the folder; empty if all of it is granted.
    pub(super) files: Vec<GrantedFile>,
    /// Path of the folder inside it that a script has chosen, if writes are held back: it may exist in the stage alone.
    pub(super) inside: Option<String>,
}

/// Granted file of a folder.
#[derive(Debug, Clone)]
pub(super) struct GrantedFile {
    pub(super) name: String,
    pub(super) location: Arc<Location>,
}

impl Folder {
    /// Returns the names of the granted files, if only some files in the folder are granted; empty if all are.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.name.as_str())
    }

    /// Returns `true` if the granted files, or all files in the folder, overlap a place of the host.
    pub(crate) fn overlaps(&self, place: &Location) -> bool {
        match self.files.is_empty() {
            true => self.location.overlaps(place),
            false => self.files.iter().any(|file| file.location.overlaps(place)),
        }
    }

    /// Host paths that are granted.
    fn paths(&self) -> Vec<PathBuf> {
        match self.files.is_empty() {
            true => vec![self.host.clone()],
            false => self.files().map(|name| self.host.join(name)).collect(),
        }
    }

    /// Path of the folder inside that is opened in the stage.
    pub(crate) fn inside(&self) -> Option<&str> {
        self.inside.as_deref()
    }

    /// Opens the granted folder anew by its handle, whatever is at its path by now.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub(crate) fn open(&self) -> io::Result<File> {
        open_dir(&self.handle, Path::new("."))
    }
}

/// Grant of one tool. It has one constructor, and nothing widens it but the files of a skill for its own scripts.
#[derive(Debug, Clone)]
pub struct Grant {
    folders: Vec<Folder>,
    env: Vec<(String, String)>,
    secrets: Vec<SecretRequest>,
    network: Arc<Network>,
    rights: Rights,
    denied: Vec<Denial>,
    /// Positions of the policy's denials for some tools only that apply to the tool.
    own_denials: Vec<usize>,
    protected: Arc<Protected>,
    /// Stage that holds writes back.
    stage: Option<Arc<Stage>>,
    /// `true` if it is the stage of one call, which ends with it.
    is_stage_of_call: bool,
    /// Record of changes that are not held back.
    record: Option<Arc<Record>>,
}

impl Grant {
    /// Grants the requests of `tool` that `allowed` allows. A trusted source allows the folders, variables,
    /// destinations and secrets that it names; all other requests need a flag.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] if a folder is missing or a denial cannot be enforced.
    pub(crate) fn new(tool: &Tool, allowed: &Allowed, environment: &HashMap<String, String>) -> Result<Self, Error> {
        let own_denials = allowed.own_denials(tool);
        let allowed = &*allowed.for_tool(tool);
        let mut denied = Vec::new();
        let mut folders = name_folders(granted_folders(tool, allowed, &mut denied)?)?;
        if tool.interface.safety.is_read_only.value {
            // Declared by the tool or proved from its bytes; it also holds for a program that replaces them.
            folders.iter_mut().for_each(|folder| folder.access = Access::Read);
        }
        let mut env = Vec::from(GUEST_ENV.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let by_flag: &[String] = if tool.requested.declared { &[] } else { &allowed.env };
        let mut seen = HashSet::from(GUEST_ENV.map(|(name, _)| name));
        for name in tool.requested.env.iter().chain(by_flag) {
            if !seen.insert(name.as_str()) {
                continue;
            }
            if allowed.denies_env(name) {
                denied.push(Denial { capability: format!("env:{name}"), flag: None });
            } else if !tool.is_request_granted() && !allowed.env.contains(name) {
                denied.push(Denial { capability: format!("env:{name}"), flag: pasted("--allow-env", name) });
            } else if let Some(value) = NameRules::HERE.variable(environment, name) {
                env.push((name.clone(), value.clone()));
            }
        }
        let by_naming = tool.is_request_granted();
        let Allowed { network, denied_network, .. } = allowed;
        let network = Network::new(tool, by_naming, network, denied_network, &mut denied);
        let secrets = secret_rules::granted(tool, by_naming, &allowed.secrets, &mut denied);
        let rights = Rights::new(tool, by_naming, allowed, &mut denied);
        let protected = allowed.protected.clone();
        let network = Arc::new(network);
        let (stage, record, is_stage_of_call) = (None, None, false);
        Ok(Self {
            folders,
            env,
            network,
            secrets,
            rights,
            denied,
            own_denials,
            protected,
            stage,
            is_stage_of_call,
            record,
        })
    }

    /// Returns the grant with read access only.
    pub(crate) fn reading(mut self) -> Self {
        self.folders.iter_mut().for_each(|folder| folder.access = Access::Read);
        self
    }

    /// Creates the grant of a program that a script runs: the script's grant without its secrets and services, with
    /// only the folder that the script names, if it names one, and with read access only if `only_reads` is `true`.
    ///
    /// # Errors
    ///
    /// The reason why the folder is not available, worded for the script.
    pub(crate) fn for_program(&self, folder: Option<&str>, only_reads: bool) -> Result<Self, String> {
        let folders = match folder {
            None => self.folders.clone(),
            Some(path) => vec![self.folder_inside(path).map_err(|why| format!("folder `{path}`: {why}"))?],
        };
        let (env, network, protected) = (self.env.clone(), self.network.clone(), self.protected.clone());
        let (secrets, rights, denied) = (Vec::new(), Rights::default(), Vec::new());
        let own_denials = self.own_denials.clone();
        let grant = Self { folders, env, network, secrets, rights, denied, own_denials, protected, ..self.clone() };
        Ok(if only_reads { grant.reading() } else { grant })
    }

    /// Returns the grant for a skill's script. It also reads a copy of the skill, at `guest`, and in `/` if nothing else is granted.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] if the copy cannot be opened, or a granted folder has the same path in the guest.
    pub(crate) fn with_skill_files(&self, copy: &Path, guest: &str) -> Result<Self, Error> {
        if let Some(folder) = self.folders.iter().find(|folder| folder.guest.iter().any(|path| path == guest)) {
            return Err(Error::Permission {
                permission: folder.host.display().to_string(),
                reason: format!("it would be `{guest}` in the guest, as the files of the skill are; grant its parent"),
            });
        }
        let real = RealFolder::open(copy, "files of the skill", &Mounts::none(), &[])?;
        let RealFolder { path: host, handle, location, .. } = real;
        let root = self.folders.is_empty().then(|| "/".to_owned());
        let guest = root.into_iter().chain([guest.to_owned()]).collect();
        let copy = Folder { host, handle, location, guest, access: Access::Read, files: Vec::new(), inside: None };
        let folders = self.folders.iter().cloned().chain([copy]).collect();
        Ok(Self { folders, ..self.clone() })
    }

    /// Returns `true` if all denials for some tools only that apply to `other` apply to this tool too.
    pub(crate) fn has_denials_of(&self, other: &Self) -> bool {
        other.own_denials.iter().all(|denial| self.own_denials.contains(denial))
    }

    fn folder_inside(&self, path: &str) -> Result<Folder, String> {
        let (folder, names) = self.place(path)?;
        if !folder.files.is_empty() {
            return match names.is_empty() {
                true => Ok(Folder { guest: vec!["/".to_owned()], ..folder.clone() }),
                false => Err("permission denied by the grant".to_owned()),
            };
        }
        if self.stage.is_some() {
            let inside = Some(names.join("/")).filter(|inside| !inside.is_empty());
            return Ok(Folder { guest: vec!["/".to_owned()], inside, ..folder.clone() });
        }
        let (path, handle, location) = (folder.host.clone(), folder.handle.clone(), folder.location.clone());
        let outer = RealFolder { path, handle, location, file: None };
        let inner = outer.inside(&names).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "no such folder".to_owned(),
            std::io::ErrorKind::NotADirectory => "not a folder".to_owned(),
            _ => "permission denied by the grant".to_owned(),
        })?;
        let RealFolder { path: host, handle, location, .. } = inner;
        let (guest, files) = (vec!["/".to_owned()], Vec::new());
        Ok(Folder { host, handle, location, guest, access: folder.access, files, inside: None })
    }

    /// Returns the grant with its writes held back in a stage, or noted in a record.
    #[must_use]
    pub(crate) fn with_effects(self, stage: Option<Arc<Stage>>, record: Option<Arc<Record>>) -> Self {
        Self { stage, record, ..self }
    }

    /// Returns the grant with its writes held back in the stage of one call.
    #[must_use]
    pub(crate) fn within_call(self, stage: Arc<Stage>) -> Self {
        let mut grant = self.with_effects(Some(stage), None);
        grant.is_stage_of_call = true;
        grant
    }

    /// Returns `true` if its writes are held back until the end of one call, which commits them.
    pub(crate) fn is_within_call(&self) -> bool {
        self.is_stage_of_call
    }

    /// Begins the notes about a call whose writes are not held back, if there is a record. Its hooks can write with other grants.
    pub(crate) fn notes(
        &self,
        call: impl FnOnce() -> StagedCall,
        withhold: impl FnOnce() -> Option<Withhold>,
    ) -> Option<Arc<CallHistory>> {
        let record = self.record.as_ref().filter(|record| self.stage.is_none() && record.is_on())?;
        Some(record.call(call(), withhold()))
    }

    /// Returns `true` if a stage holds back all that the grant allows to change, send or store.
    pub(crate) fn is_held_back(&self) -> bool {
        self.stage.is_some() && !self.rights.reaches_beyond() && !self.rights.keeps() && self.network.is_empty()
    }

    /// Stage that holds writes back.
    pub(crate) fn stage(&self) -> Option<&Arc<Stage>> {
        self.stage.as_ref()
    }

    fn writable_folders(&self) -> impl Iterator<Item = &Folder> {
        self.folders.iter().filter(|folder| folder.access == Access::Write)
    }

    /// Name of the stage that holds writes back, if the grant allows any.
    pub(crate) fn stage_name(&self) -> Option<&str> {
        self.stage.as_ref().filter(|_| self.writable_folders().next().is_some()).map(|stage| stage.name())
    }

    /// Granted folders, with the working directory of the guest first.
    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// Files that may not be changed in any of the folders.
    pub(crate) fn protected(&self) -> &Arc<Protected> {
        &self.protected
    }

    /// Identities of the granted folders, which links may not leave.
    pub(crate) fn roots(&self) -> Arc<[Identity]> {
        self.folders.iter().filter_map(|folder| folder.location.identity()).collect()
    }

    /// Checks by its name alone that a path of the guest is in a granted folder. The sandbox checks links when the path
    /// is used.
    ///
    /// # Errors
    ///
    /// The reason for a refusal, worded for the model.
    pub(crate) fn reaches(&self, path: &str, access: Access) -> Result<(), &'static str> {
        let (folder, names) = self.place(path)?;
        let is_granted = folder.files.is_empty() || names.is_empty() || folder.files().any(|file| names == [file]);
        match access {
            _ if access <= folder.access && is_granted => Ok(()),
            Access::Read => Err("permission denied by the grant (see --allow-read)"),
            Access::Write => Err("permission denied by the grant (see --allow-write)"),
        }
    }

    /// Finds the granted folder for a guest path, with the remaining names in the path.
    fn place<'p>(&self, path: &'p str) -> Result<(&Folder, Vec<&'p str>), &'static str> {
        let Some(root) = self.folders.first() else {
            return Err("no folder is granted");
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or("permission denied by the grant: the path leads out of the granted folder")?;
                }
                part => parts.push(part),
            }
        }
        let named = |folder: &&Folder| match (folder.guest.last(), parts.first()) {
            (Some(name), Some(first)) => name.strip_prefix('/') == Some(first),
            _ => false,
        };
        match self.folders.iter().find(named) {
            Some(folder) => {
                parts.remove(0);
                Ok((folder, parts))
            }
            None => Ok((root, parts)),
        }
    }

    /// Second name of the guest's `/`, if several folders are granted.
    pub(crate) fn root(&self) -> Option<&str> {
        self.folders.first()?.guest.get(1)?.strip_prefix('/')
    }

    /// Returns `true` if the grant allows no writing, storing or sending.
    pub(crate) fn is_read_only(&self) -> bool {
        !self.rights.reaches_beyond()
            && !self.rights.keeps()
            && self.network.is_empty()
            && self.folders.iter().all(|folder| folder.access == Access::Read)
    }

    /// Network grant.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Granted services.
    pub(crate) fn rights(&self) -> &Rights {
        &self.rights
    }

    /// All variables of the guest's environment.
    pub(crate) fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// Names of the variables passed on from the host.
    pub fn env_keys(&self) -> impl Iterator<Item = &str> {
        self.env.iter().skip(GUEST_ENV.len()).map(|(name, _)| name.as_str())
    }

    /// Secrets that are inserted into requests; the guest never sees their values.
    pub fn secrets(&self) -> &[SecretRequest] {
        &self.secrets
    }

    /// Lists the granted permissions, such as `read:/data`, `env:TZ`, `net:api.example.com:443` or
    /// `secret:github@api.github.com#header:authorization`.
    pub fn granted(&self) -> Vec<String> {
        let written = |folder: &Folder, path: &Path| format!("{}:{}", folder.access.as_str(), path.display());
        let folders = self
            .folders
            .iter()
            .flat_map(|folder| folder.paths().into_iter().map(|path| written(folder, &path)).collect::<Vec<_>>());
        let env = self.env_keys().map(|name| format!("env:{name}"));
        let network = self.network.destinations().iter().map(|one| format!("net:{one}"));
        let secrets = self.secrets.iter().map(SecretRequest::capability);
        folders.chain(env).chain(network).chain(secrets).chain(self.rights.granted()).collect()
    }

    /// Finds the granted folder that contains a path of the host, whether or not the path exists.
    pub fn folder_of(&self, path: &Path) -> Option<&Folder> {
        let path = real_path(path);
        self.folders.iter().find(|folder| folder.paths().iter().any(|granted| path.starts_with(granted)))
    }

    /// Requests that were not granted.
    pub fn denied(&self) -> &[Denial] {
        &self.denied
    }

    /// Returns `true` if a tool with this grant cannot serve its purpose: it declares that it needs folders, hosts or other tools,
    /// and it is granted nothing at all, or only reading although it is there to write.
    pub fn is_useless_for(&self, tool: &Tool) -> bool {
        let is_needed = |denial: &Denial| {
            let kind = denial.capability.split_once(':').map_or(denial.capability.as_str(), |(kind, _)| kind);
            ["read", "write", "net", "call"].contains(&kind)
        };
        let is_writer = matches!(tool.requested.files, FileRequest::Workspace(Access::Write));
        let serves = |granted: &String| !(is_writer && granted.starts_with("read:"));
        tool.requested.declared && self.denied.iter().any(is_needed) && !self.granted().iter().any(serves)
    }
}
