//! What a tool gets.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::call::Denial;
use crate::error::Error;
use crate::tool::{Access, FileRequest, Tool};

use super::resolved::{self, Allowed};

/// Variables that the guest always has, with values of its own: the host's would tell a path and a user.
const GUEST_ENV: [(&str, &str); 2] = [("PATH", "/bin"), ("HOME", "/")];

/// A folder of the host as a guest sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The real path on the host.
    pub host: PathBuf,
    /// The paths under which the guest finds it; the first granted folder is `/`, its working directory.
    pub guest: Vec<String>,
    /// What may be done there.
    pub access: Access,
}

/// What one tool was granted. There is one way to make one, [`Grant::new`], and no way to widen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    folders: Vec<Folder>,
    env: Vec<(String, String)>,
    denied: Vec<Denial>,
}

impl Grant {
    /// What `tool` asks for and `allowed` allows. An operator's own manifest allows the folders and variables that it
    /// names; everything else needs a flag.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] where a folder is missing or a denial cannot be honoured.
    pub fn new(tool: &Tool, allowed: &Allowed, environment: &HashMap<String, String>) -> Result<Self, Error> {
        let mut denied = Vec::new();
        let folders = name_folders(granted_folders(tool, allowed, &mut denied)?)?;
        let mut env = Vec::from(GUEST_ENV.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let by_flag: &[String] = if tool.requested.stated { &[] } else { &allowed.env };
        let mut seen = HashSet::from(GUEST_ENV.map(|(name, _)| name));
        for name in tool.requested.env.iter().chain(by_flag) {
            if !seen.insert(name.as_str()) {
                continue;
            }
            if allowed.denies_env(name) {
                denied.push(Denial { capability: format!("env:{name}"), flag: None });
            } else if let Some(value) = environment.get(name) {
                env.push((name.clone(), value.clone()));
            }
        }
        Ok(Self { folders, env, denied })
    }

    /// The folders, the guest's working directory first.
    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// Every variable of the guest's environment.
    pub(crate) fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// The names of the host's variables that are passed on.
    pub fn env_keys(&self) -> impl Iterator<Item = &str> {
        self.env.iter().skip(GUEST_ENV.len()).map(|(name, _)| name.as_str())
    }

    /// What is granted, in words, such as `read:/data` or `env:TZ`.
    pub fn granted(&self) -> Vec<String> {
        let folders = self.folders.iter().map(|folder| format!("{}:{}", folder.access.as_str(), folder.host.display()));
        folders.chain(self.env_keys().map(|name| format!("env:{name}"))).collect()
    }

    /// What was asked for and is not granted.
    pub fn denied(&self) -> &[Denial] {
        &self.denied
    }
}

fn granted_folders(tool: &Tool, allowed: &Allowed, denied: &mut Vec<Denial>) -> Result<Vec<(PathBuf, Access)>, Error> {
    let mut folders = Vec::new();
    match &tool.requested.files {
        FileRequest::None if tool.requested.stated => {}
        FileRequest::None => add_allowed(&mut folders, allowed, Access::Write)?,
        FileRequest::Workspace(access) => {
            add_allowed(&mut folders, allowed, *access)?;
            if !folders.iter().any(|(_, granted)| granted >= access) {
                let flag = Some(format!("--allow-{}=DIR", access.as_str()));
                denied.push(Denial { capability: access.as_str().to_owned(), flag });
            }
        }
        FileRequest::Folders(requests) => {
            for request in requests {
                let written = format!("tool {:?}: capabilities.files.{}", tool.name, request.access.as_str());
                let written = format!("{written}: {}", request.path.display());
                let real = resolved::real_folder(&request.path, &written)?;
                match allowed.left_of(&real, request.access)? {
                    Some(left) => {
                        if left < request.access {
                            denied.push(named(request.access, &request.path));
                        }
                        add(&mut folders, real, left);
                    }
                    None => denied.push(named(request.access, &request.path)),
                }
            }
        }
    }
    Ok(folders)
}

fn add_allowed(folders: &mut Vec<(PathBuf, Access)>, allowed: &Allowed, most: Access) -> Result<(), Error> {
    for (folder, access) in &allowed.folders {
        if let Some(left) = allowed.left_of(folder, most.min(*access))? {
            add(folders, folder.clone(), left);
        }
    }
    Ok(())
}

/// A folder asked for twice is one folder with the wider access.
fn add(folders: &mut Vec<(PathBuf, Access)>, folder: PathBuf, access: Access) {
    match folders.iter_mut().find(|(known, _)| *known == folder) {
        Some((_, known)) => *known = access.max(*known),
        None => folders.push((folder, access)),
    }
}

fn named(access: Access, path: &Path) -> Denial {
    Denial { capability: format!("{}:{}", access.as_str(), path.display()), flag: None }
}

/// Gives each folder its names in the guest: the first is `/`, and where there are several each is also `/NAME`.
fn name_folders(folders: Vec<(PathBuf, Access)>) -> Result<Vec<Folder>, Error> {
    let several = folders.len() > 1;
    let mut names = HashMap::new();
    let mut named = Vec::with_capacity(folders.len());
    for (index, (host, access)) in folders.into_iter().enumerate() {
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
        named.push(Folder { host, guest, access });
    }
    Ok(named)
}
