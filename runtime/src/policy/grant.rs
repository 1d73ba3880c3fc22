//! What a tool gets.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::call::{Denial, pasted};
use crate::error::Error;
use crate::tool::{Access, FileRequest, FolderRequest, SecretRequest, Tool};

use super::folder::RealFolder;
use super::location::{Identity, Location, real_path};
use super::network::Network;
use super::protected::Protected;
use super::resolved::Allowed;
use super::secret;
use super::service::Rights;

/// Variables that the guest always has, with values of its own: the host's would tell a path and a user.
const GUEST_ENV: [(&str, &str); 2] = [("PATH", "/bin"), ("HOME", "/")];

/// A folder of the host as a guest sees it.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The real path on the host when it was granted.
    pub host: PathBuf,
    /// The folder itself: whatever later takes its path, this is what was granted.
    handle: Arc<File>,
    /// Location of the folder when it was opened.
    pub(crate) location: Arc<Location>,
    /// The paths under which the guest finds it; the first granted folder is `/`, its working directory.
    pub guest: Vec<String>,
    /// What may be done there.
    pub access: Access,
}

impl Folder {
    /// A path that leads to the granted folder and to no other, for as long as the grant lives.
    #[cfg(target_os = "linux")]
    pub(crate) fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()))
    }

    /// The path of the folder. Where handles have no paths, [`Grant::new`] refuses a writable folder around another.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn path(&self) -> PathBuf {
        let _ = &self.handle;
        self.host.clone()
    }
}

/// What one tool was granted. It is made in one place, and nothing widens it.
#[derive(Debug, Clone)]
pub struct Grant {
    folders: Vec<Folder>,
    env: Vec<(String, String)>,
    secrets: Vec<SecretRequest>,
    network: Arc<Network>,
    rights: Rights,
    denied: Vec<Denial>,
    protected: Arc<Protected>,
}

impl Grant {
    /// What `tool` asks for and `allowed` allows. An operator's own manifest allows the folders, variables, destinations
    /// and secrets that it names; a record, which may be a stranger's, and everything else need a flag.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] where a folder is missing or a denial cannot be honoured.
    pub(crate) fn new(tool: &Tool, allowed: &Allowed, environment: &HashMap<String, String>) -> Result<Self, Error> {
        let mut denied = Vec::new();
        let mut folders = name_folders(granted_folders(tool, allowed, &mut denied)?)?;
        if tool.interface.safety.is_read_only.value {
            // Its own word is kept for it, and what its bytes proved holds for whatever takes their place.
            folders.iter_mut().for_each(|folder| folder.access = Access::Read);
        }
        let mut env = Vec::from(GUEST_ENV.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let by_flag: &[String] = if tool.requested.stated { &[] } else { &allowed.env };
        let mut seen = HashSet::from(GUEST_ENV.map(|(name, _)| name));
        for name in tool.requested.env.iter().chain(by_flag) {
            if !seen.insert(name.as_str()) {
                continue;
            }
            if allowed.denies_env(name) {
                denied.push(Denial { capability: format!("env:{name}"), flag: None });
            } else if !tool.is_requested_by_operator() && !allowed.env.contains(name) {
                denied.push(Denial { capability: format!("env:{name}"), flag: pasted("--allow-env", name) });
            } else if let Some(value) = environment.get(name) {
                env.push((name.clone(), value.clone()));
            }
        }
        let by_naming = tool.is_requested_by_operator();
        let Allowed { network, denied_network, .. } = allowed;
        let network = Network::new(tool, by_naming, network, denied_network, &mut denied);
        let secrets = secret::granted(tool, by_naming, allowed, &mut denied);
        let rights = Rights::new(tool, by_naming, allowed, &mut denied);
        let protected = allowed.protected.clone();
        Ok(Self { folders, env, network: Arc::new(network), secrets, rights, denied, protected })
    }

    /// What a program gets that a script runs: the script's own grant, without its secrets and services, and of its folders
    /// only the one that the script names, if it names one; to read, where the program's own tool does no more.
    ///
    /// # Errors
    ///
    /// Why there is no such folder, in words for the script.
    pub(crate) fn for_program(&self, folder: Option<&str>, only_reads: bool) -> Result<Self, String> {
        let mut folders = match folder {
            None => self.folders.clone(),
            Some(path) => vec![self.folder_inside(path).map_err(|why| format!("folder `{path}`: {why}"))?],
        };
        if only_reads {
            folders.iter_mut().for_each(|folder| folder.access = Access::Read);
        }
        let (env, network, protected) = (self.env.clone(), self.network.clone(), self.protected.clone());
        let (secrets, rights, denied) = (Vec::new(), Rights::default(), Vec::new());
        Ok(Self { folders, env, network, secrets, rights, denied, protected })
    }

    fn folder_inside(&self, path: &str) -> Result<Folder, String> {
        let (folder, names) = self.place(path)?;
        let (path, handle, location) = (folder.host.clone(), folder.handle.clone(), folder.location.clone());
        let outer = RealFolder { path, handle, location };
        let inner = outer.inside(&names).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "no such folder".to_owned(),
            std::io::ErrorKind::NotADirectory => "not a folder".to_owned(),
            _ => "permission denied by the grant".to_owned(),
        })?;
        let RealFolder { path: host, handle, location } = inner;
        Ok(Folder { host, handle, location, guest: vec!["/".to_owned()], access: folder.access })
    }

    /// The folders, the guest's working directory first.
    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// Files that may not be changed in any of the folders.
    pub(crate) fn protected(&self) -> &Arc<Protected> {
        &self.protected
    }

    /// Identities of the folders, out of which no link may lead.
    pub(crate) fn roots(&self) -> Arc<[Identity]> {
        self.folders.iter().filter_map(|folder| folder.location.identity()).collect()
    }

    /// Whether a path of the guest's lies in what is granted, by its name alone: what links make of it, the sandbox
    /// judges when it is used.
    ///
    /// # Errors
    ///
    /// Why it does not, in words for the model.
    pub(crate) fn reaches(&self, path: &str, access: Access) -> Result<(), &'static str> {
        let (folder, _) = self.place(path)?;
        if access > folder.access { Err("permission denied by the grant") } else { Ok(()) }
    }

    /// The granted folder in which a path of the guest's lies, and the names that lead there from it.
    fn place<'p>(&self, path: &'p str) -> Result<(&Folder, Vec<&'p str>), &'static str> {
        let Some(root) = self.folders.first() else {
            return Err("no folder is granted");
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or("permission denied by the grant")?;
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

    /// The name that the guest's `/` has besides, where several folders are granted.
    pub(crate) fn root(&self) -> Option<&str> {
        self.folders.first()?.guest.get(1)?.strip_prefix('/')
    }

    /// Whether nothing can be written, kept or sent with it.
    pub(crate) fn is_read_only(&self) -> bool {
        !self.rights.reaches_beyond()
            && !self.rights.keeps()
            && self.network.is_empty()
            && self.folders.iter().all(|folder| folder.access == Access::Read)
    }

    /// Where requests may be sent.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// What its script may ask of the crib.
    pub(crate) fn rights(&self) -> &Rights {
        &self.rights
    }

    /// Every variable of the guest's environment.
    pub(crate) fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// The names of the host's variables that are passed on.
    pub fn env_keys(&self) -> impl Iterator<Item = &str> {
        self.env.iter().skip(GUEST_ENV.len()).map(|(name, _)| name.as_str())
    }

    /// The secrets that are put into its requests, by name; the guest never sees their values.
    pub fn secrets(&self) -> &[SecretRequest] {
        &self.secrets
    }

    /// What is granted, in words, such as `read:/data`, `env:TZ`, `net:api.example.com:443` or
    /// `secret:github@api.github.com#header:authorization`.
    pub fn granted(&self) -> Vec<String> {
        let folders = self.folders.iter().map(|folder| format!("{}:{}", folder.access.as_str(), folder.host.display()));
        let env = self.env_keys().map(|name| format!("env:{name}"));
        let network = self.network.destinations().iter().map(|one| format!("net:{one}"));
        let secrets = self.secrets.iter().map(SecretRequest::capability);
        folders.chain(env).chain(network).chain(secrets).chain(self.rights.granted()).collect()
    }

    /// The folder in which a path of the host lies, whether or not there is something.
    pub fn folder_of(&self, path: &Path) -> Option<&Folder> {
        let path = real_path(path);
        self.folders.iter().find(|folder| path.starts_with(&folder.host))
    }

    /// What was asked for and is not granted.
    pub fn denied(&self) -> &[Denial] {
        &self.denied
    }
}

fn granted_folders(
    tool: &Tool,
    allowed: &Allowed,
    denied: &mut Vec<Denial>,
) -> Result<Vec<(RealFolder, Access)>, Error> {
    let mut folders = Vec::new();
    match &tool.requested.files {
        FileRequest::None if tool.requested.stated => {}
        FileRequest::None => add_allowed(&mut folders, allowed, Access::Write, denied)?,
        FileRequest::Workspace(access) => {
            add_allowed(&mut folders, allowed, *access, denied)?;
            if !allowed.folders.iter().any(|(_, granted)| granted >= access) {
                let flag = Some(format!("--allow-{}=DIR", access.as_str()));
                denied.push(Denial { capability: access.as_str().to_owned(), flag });
            }
        }
        FileRequest::Folders(requests) => {
            for request in requests {
                add_named(&mut folders, tool, request, allowed, denied)?;
            }
        }
    }
    Ok(folders)
}

/// A folder that a tool asks for by name, as far as it is allowed.
fn add_named(
    folders: &mut Vec<(RealFolder, Access)>,
    tool: &Tool,
    request: &FolderRequest,
    allowed: &Allowed,
    denied: &mut Vec<Denial>,
) -> Result<(), Error> {
    let FolderRequest { path, access, beside } = request;
    let most = |at: &Location| {
        let holding = allowed.folders.iter().filter(|(folder, _)| at.is_in(&folder.location));
        let by_flag = holding.map(|(_, granted)| *granted.min(access)).max();
        if tool.is_requested_by_operator() { Some(*access) } else { by_flag }
    };
    let wanting = |at: &Location| {
        // No flag undoes a denial.
        let helps = matches!(allowed.left_of(at, *access), Ok(Some(left)) if left == *access);
        let named_by = |path: &Path| pasted(&format!("--allow-{}", access.as_str()), &path.to_string_lossy());
        let flag = helps.then(|| named_by(at.path())).flatten();
        Denial { flag, ..named(*access, path) }
    };
    // What nobody allowed need not even be there.
    let at = Location::of(path, &allowed.mounts);
    if most(&at).is_none() {
        denied.push(wanting(&at));
        return Ok(());
    }
    let written = format!("tool {:?}: capabilities.files.{}: {}", tool.name, access.as_str(), path.display());
    let real = RealFolder::open_below(beside, path.strip_prefix(beside).unwrap_or(path), &written, &allowed.mounts)?;
    let Some(most) = most(&real.location) else {
        denied.push(wanting(&real.location));
        return Ok(());
    };
    let left = allowed.left_of(&real.location, most)?;
    if left < Some(most) {
        denied.push(named(*access, path));
    } else if most < *access {
        denied.push(wanting(&real.location));
    }
    if let Some(left) = left {
        add(folders, real, left);
    }
    Ok(())
}

/// The folders that flags allow. What a denial took from them no flag brings back.
fn add_allowed(
    folders: &mut Vec<(RealFolder, Access)>,
    allowed: &Allowed,
    most: Access,
    denied: &mut Vec<Denial>,
) -> Result<(), Error> {
    for (folder, access) in &allowed.folders {
        let wanted = most.min(*access);
        let left = allowed.left_of(&folder.location, wanted)?;
        if left != Some(wanted) {
            denied.push(named(wanted, &folder.path));
        }
        if let Some(left) = left {
            add(folders, folder.clone(), left);
        }
    }
    Ok(())
}

/// A folder asked for twice is one folder with the wider access.
fn add(folders: &mut Vec<(RealFolder, Access)>, folder: RealFolder, access: Access) {
    match folders.iter_mut().find(|(known, _)| known.is(&folder)) {
        Some((_, known)) => *known = access.max(*known),
        None => folders.push((folder, access)),
    }
}

fn named(access: Access, path: &Path) -> Denial {
    Denial { capability: format!("{}:{}", access.as_str(), path.display()), flag: None }
}

/// Gives each folder its names in the guest: the first is `/`, and where there are several each is also `/NAME`.
fn name_folders(folders: Vec<(RealFolder, Access)>) -> Result<Vec<Folder>, Error> {
    if !cfg!(target_os = "linux") {
        refuse_nested(&folders)?;
    }
    let several = folders.len() > 1;
    let mut names = HashMap::new();
    let mut named = Vec::with_capacity(folders.len());
    for (index, (RealFolder { path: host, handle, location }, access)) in folders.into_iter().enumerate() {
        let mut guest = Vec::new();
        if index == 0 {
            guest.push("/".to_owned());
        }
        if let (true, Some(name)) = (several, host.file_name()) {
            let name = format!("/{}", name.to_string_lossy());
            if let Some(first) = names.insert(name.clone(), host.clone()) {
                return Err(Error::Permission {
                    permission: format!("{} and {}", first.display(), host.display()),
                    reason: format!("both would be `{name}` in the guest; grant one of them or their parent"),
                });
            }
            guest.push(name);
        }
        if guest.is_empty() {
            return Err(Error::Permission {
                permission: host.display().to_string(),
                reason: "has no name of its own; name it first, and it is the guest's `/`".into(),
            });
        }
        named.push(Folder { host, handle, location, guest, access });
    }
    Ok(named)
}

/// A guest that may write a folder could put something else in the place of a granted folder inside it.
fn refuse_nested(folders: &[(RealFolder, Access)]) -> Result<(), Error> {
    for (outer, access) in folders {
        let inner = folders.iter().find(|(inner, _)| inner.path != outer.path && inner.path.starts_with(&outer.path));
        if let (Access::Write, Some((inner, _))) = (access, inner) {
            return Err(Error::Permission {
                permission: inner.path.display().to_string(),
                reason: format!("lies inside the writable {}; grant one of the two", outer.path.display()),
            });
        }
    }
    Ok(())
}
