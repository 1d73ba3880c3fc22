//! Files of a skill: found once with their digests, and read later only as they were found.

use std::io::{self, ErrorKind};

use serde_json::json;
use toolcrib_component::digest as digest_of;

use crate::call::Flag;
use crate::source::source_folder::{ItemKind, SourceFolder};
use crate::tool::{Skill, SkillFile};

/// Maximum number of skill files, `SKILL.md` included.
const MAX_FILES: usize = 512;
/// Maximum total size of a skill's files, in bytes.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum number of entries in a skill's folders, with those that are left out.
const MAX_ENTRIES: usize = 4096;
/// Maximum depth of a skill's folders.
const MAX_DEPTH: usize = 16;
/// Maximum length of a file's path, in bytes.
const MAX_PATH: usize = 512;
/// Folders that programs write beside sources, and that are no part of a skill.
const WRITTEN: [&str; 2] = ["__pycache__", "node_modules"];

/// Files that packing adds beside the only skill of a bundle.
const OF_BUNDLE: [&str; 2] = ["sbom.cdx.json", "toolcrib.lock"];

/// Files of a folder.
#[derive(Debug)]
pub(super) struct Found {
    /// Files in the order of their paths.
    pub(super) files: Vec<SkillFile>,
    /// Entries that are left out, each with the reason.
    pub(super) left_out: Vec<(String, &'static str)>,
}

/// Finds the files of a skill and computes their digests. Hidden files, and folders that programs write, are no part of it.
///
/// # Errors
///
/// A folder that cannot be read, or more than a skill may have.
pub(super) fn find(root: &SourceFolder) -> Result<Found, String> {
    let mut found = Found { files: Vec::new(), left_out: Vec::new() };
    let mut folders = vec![(String::new(), 0)];
    let (mut entries, mut bytes) = (0, 0);
    while let Some((folder, depth)) = folders.pop() {
        let items = root.list(&folder, MAX_ENTRIES + 1 - entries);
        let items = items.map_err(|error| format!("read folder {folder:?}: {error}"))?;
        entries += items.len();
        if entries > MAX_ENTRIES {
            return Err(format!(
                "its folder has more than the {MAX_ENTRIES} entries allowed; keep only the skill's files there"
            ));
        }
        for item in items {
            let Some(name) = item.name else {
                found.left_out.push((folder.clone(), "a name that is no Unicode text"));
                continue;
            };
            if root.is_root_of_bundle() && folder.is_empty() && OF_BUNDLE.contains(&name.as_str()) {
                continue;
            }
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let is_hidden = |c: char| c.is_control() || Flag::unseen(None, c).is_some();
            let why = match item.kind {
                _ if name.starts_with('.') || WRITTEN.contains(&name.as_str()) => continue,
                _ if name.contains(is_hidden) => Some("invisible characters in its name"),
                _ if name.contains(['\\', ':']) => Some("`\\` or `:` in its name"),
                _ if path.len() > MAX_PATH => Some("a long path"),
                ItemKind::Link => Some("a link"),
                ItemKind::Other => Some("no regular file"),
                ItemKind::Folder if depth == MAX_DEPTH => Some("deep folders"),
                ItemKind::File | ItemKind::Folder => None,
            };
            match (why, item.kind) {
                (Some(why), _) => found.left_out.push((path, why)),
                (None, ItemKind::Folder) => folders.push((path, depth + 1)),
                (None, _) => {
                    let file = file_of(root, path, MAX_BYTES - bytes)?;
                    bytes += file.bytes;
                    found.files.push(file);
                }
            }
            if found.files.len() > MAX_FILES {
                return Err(format!("it has more than the {MAX_FILES} files allowed"));
            }
        }
    }
    found.files.sort_by(|one, other| one.path.cmp(&other.path));
    found.left_out.sort();
    Ok(found)
}

fn file_of(root: &SourceFolder, path: String, max: u64) -> Result<SkillFile, String> {
    let bytes = root.read(&path, max).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => format!("its files have more than the {MAX_BYTES} bytes allowed together"),
        _ => format!("read {path:?}: {error}"),
    })?;
    Ok(SkillFile { digest: digest_of(&bytes), bytes: bytes.len() as u64, path })
}

/// Returns the digest over the paths and digests of files.
pub(super) fn digest(files: &[SkillFile]) -> String {
    let all: Vec<_> = files.iter().map(|file| json!([file.path, file.digest])).collect();
    digest_of(json!(all).to_string().as_bytes())
}

/// Reason why a file of a skill cannot be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The system's error.
    System(io::Error),
    /// Its content is another one than when the skill was loaded.
    Changed,
}

/// Reads a file of a skill as it was when the skill was loaded.
///
/// # Errors
///
/// The file cannot be read, or it has changed.
pub(crate) fn read_file(skill: &Skill, file: &SkillFile) -> Result<Vec<u8>, ReadError> {
    let bytes = SourceFolder::open(&skill.folder).and_then(|root| root.read(&file.path, file.bytes));
    match bytes {
        Ok(bytes) if digest_of(&bytes) == file.digest => Ok(bytes),
        Ok(_) => Err(ReadError::Changed),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Err(ReadError::Changed),
        Err(error) => Err(ReadError::System(error)),
    }
}

impl ReadError {
    /// Returns the reason in words for a model.
    pub(crate) fn message(&self, file: &SkillFile) -> String {
        let path = &file.path;
        match self {
            Self::Changed => {
                format!(
                    "`{path}` has changed since the skill was loaded; it is served again once the skill is loaded again"
                )
            }
            Self::System(error) if error.kind() == ErrorKind::NotFound => format!("`{path}` is gone"),
            Self::System(error) => format!("`{path}` cannot be read: {}", error.kind()),
        }
    }
}
