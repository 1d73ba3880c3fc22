//! Files of a source: its definitions and the programs that they name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::tool::{ScriptedHook, Tool};

use super::document::from_root;
use super::{DIALECTS, LoadedSource, files, is_bundle, load, load_usable, project};

/// Files of a source.
#[derive(Debug)]
#[non_exhaustive]
pub struct SourceParts {
    /// Folder of the source.
    pub folder: PathBuf,
    /// Path in the folder that loads the source; empty for the folder itself.
    pub entry: PathBuf,
    /// Files that define tools and hooks, each an absolute path, without those that are programs.
    pub definitions: BTreeSet<PathBuf>,
    /// Programs that the definitions name, each an absolute path.
    pub programs: BTreeSet<PathBuf>,
    /// Tools, in the order of the source.
    pub tools: Vec<Tool>,
    /// Hooks, in the order of the source.
    pub hooks: Vec<ScriptedHook>,
}

/// Lists the files of a source on disk. Every tool must be sound.
///
/// # Errors
///
/// The first problem of the source; a bundle, which is one file already.
pub fn parts(path: &Path) -> Result<SourceParts, Error> {
    parts_of(path, load)
}

/// Lists the files of a source like [`parts`], but keeps a faulty tool as an unusable one.
///
/// # Errors
///
/// The first problem of the whole source; a bundle, as for [`parts`].
pub fn usable_parts(path: &Path) -> Result<SourceParts, Error> {
    parts_of(path, load_usable)
}

fn parts_of(path: &Path, load: impl Fn(&Path) -> Result<LoadedSource, Error>) -> Result<SourceParts, Error> {
    if is_bundle(path) {
        let message = "it is a bundle already; name the sources that it was packed from".to_owned();
        return Err(Error::Source { path: path.to_path_buf(), message });
    }
    let loaded = load(path)?;
    let (folder, entry, mut definitions) = match project::find(path) {
        Some(project) => {
            let manifest = DIALECTS.manifest(&project);
            let files = project::definitions(&project).into_iter().chain(manifest).map(|file| from_root(&file));
            (from_root(&project), PathBuf::new(), files.collect())
        }
        None if files::is_folder(path) => {
            let entry = DIALECTS.manifest(path).and_then(|manifest| Some(PathBuf::from(manifest.file_name()?)));
            (from_root(path), entry.unwrap_or_default(), BTreeSet::new())
        }
        None => {
            let file = from_root(path);
            let folder = file.parent().unwrap_or(Path::new("/")).to_path_buf();
            (folder, file.file_name().map(PathBuf::from).unwrap_or_default(), BTreeSet::new())
        }
    };
    if !entry.as_os_str().is_empty() {
        definitions.insert(folder.join(&entry));
    }
    let tools = loaded.tools.iter().chain(loaded.hooks.iter().map(|hook| &hook.tool));
    let programs: BTreeSet<_> = loaded.tools.iter().filter_map(|tool| tool.body.program().map(from_root)).collect();
    definitions.extend(tools.map(|tool| from_root(&tool.origin.path)));
    let skills = loaded.tools.iter().filter_map(|tool| tool.body.skill());
    definitions
        .extend(skills.flat_map(|skill| skill.files.iter().map(|file| from_root(&skill.folder.join(&file.path)))));
    definitions.retain(|file| !programs.contains(file));
    let (tools, hooks) = (loaded.tools, loaded.hooks);
    Ok(SourceParts { folder, entry, definitions, programs, tools, hooks })
}
