//! Folders and files of a grant: those that a tool requests and the operator allows, with their names in the guest.

use std::collections::HashMap;
use std::path::Path;

use crate::call::{Denial, pasted};
use crate::error::Error;
use crate::tool::{Access, FileRequest, FolderRequest, Tool};

use super::folder::RealFolder;
use super::grant::{Folder, GrantedFile};
use super::location::Location;
use super::resolved::Allowed;

pub(super) fn granted_folders(
    tool: &Tool,
    allowed: &Allowed,
    denied: &mut Vec<Denial>,
) -> Result<Vec<(RealFolder, Access)>, Error> {
    let mut folders = Vec::new();
    match &tool.requested.files {
        FileRequest::None if tool.requested.declared => {}
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

/// Adds a folder that a tool requests by its path, as far as it is allowed.
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
        if tool.is_request_granted() { Some(*access) } else { by_flag }
    };
    let wanting = |at: &Location| {
        // No flag overrides a denial.
        let helps = matches!(allowed.left_of(at, *access), Ok(Some(left)) if left == *access);
        let named_by = |path: &Path| pasted(&format!("--allow-{}", access.as_str()), &path.to_string_lossy());
        let flag = helps.then(|| named_by(at.path())).flatten();
        Denial { flag, ..named(*access, path) }
    };
    // A folder that is not allowed may be missing.
    let at = Location::of(path, &allowed.mounts);
    if most(&at).is_none() {
        denied.push(wanting(&at));
        return Ok(());
    }
    let written = format!("tool {:?}: capabilities.files.{}: {}", tool.name, access.as_str(), path.display());
    let below = path.strip_prefix(beside).unwrap_or(path);
    let real = RealFolder::open_below(beside, below, &written, &allowed.mounts, &[])?;
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

/// Adds the folders that flags allow, reduced by denials.
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
            denied.push(named(wanted, &folder.whole_path()));
        }
        if let Some(left) = left {
            add(folders, folder.clone(), left);
        }
    }
    Ok(())
}

/// Adds a folder. A folder that is requested twice has the wider access.
fn add(folders: &mut Vec<(RealFolder, Access)>, folder: RealFolder, access: Access) {
    match folders.iter_mut().find(|(known, _)| known.is(&folder)) {
        Some((_, known)) => *known = access.max(*known),
        None => folders.push((folder, access)),
    }
}

fn named(access: Access, path: &Path) -> Denial {
    Denial { capability: format!("{}:{}", access.as_str(), path.display()), flag: None }
}

/// Collects the files of one folder with one access, without those in a folder that is granted as a whole.
fn grouped(folders: Vec<(RealFolder, Access)>) -> Vec<Folder> {
    let whole: Vec<_> = folders.iter().filter(|(folder, _)| folder.file.is_none()).cloned().collect();
    let is_covered = |file: &RealFolder, access: Access| {
        whole.iter().any(|(folder, granted)| *granted >= access && file.location.is_in(&folder.location))
    };
    let mut groups: Vec<Folder> = Vec::with_capacity(folders.len());
    for (folder, access) in folders {
        let covered = folder.file.is_some() && is_covered(&folder, access);
        let RealFolder { path: host, handle, location, file } = folder;
        let file = file.map(|name| GrantedFile { name, location: location.clone() });
        let beside = |group: &&mut Folder| !group.files.is_empty() && group.host == host && group.access == access;
        match (file, groups.iter_mut().find(beside)) {
            _ if covered => {}
            (Some(file), Some(group)) => group.files.push(file),
            (file, _) => {
                let files = file.into_iter().collect();
                let (guest, inside) = (Vec::new(), None);
                groups.push(Folder { host, handle, location, guest, access, files, inside });
            }
        }
    }
    groups
}

/// Assigns the paths in the guest: the first folder is `/`; if there are several, each is also `/NAME`.
pub(super) fn name_folders(folders: Vec<(RealFolder, Access)>) -> Result<Vec<Folder>, Error> {
    let folders = grouped(folders);
    let several = folders.len() > 1;
    let mut names = HashMap::new();
    let mut named = Vec::with_capacity(folders.len());
    for (index, Folder { host, handle, location, access, files, .. }) in folders.into_iter().enumerate() {
        let mut guest = Vec::new();
        if index == 0 {
            guest.push("/".to_owned());
        }
        if let (true, Some(name)) = (several, host.file_name()) {
            let name = format!("/{}", name.to_string_lossy());
            if let Some(first) = names.insert(name.clone(), host.clone()) {
                if first == host {
                    return Err(Error::Permission {
                        permission: host.display().to_string(),
                        reason:
                            "it and a file of it, or two of its files, are granted with different access; grant the \
                                 same access to both"
                                .to_owned(),
                    });
                }
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
        named.push(Folder { host, handle, location, guest, access, files, inside: None });
    }
    Ok(named)
}
