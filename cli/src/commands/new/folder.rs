//! The folder of a new project, which appears only when it is complete.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use toolcrib_authoring::component::UNFINISHED;
use toolcrib_base::render::Advice;

/// Creates the folder `name` inside `dir` with the files that `fill` writes.
///
/// # Errors
///
/// There is an entry of that name, or the folder cannot be written.
pub(super) fn create(dir: &Path, name: &str, fill: impl FnOnce(&Path) -> io::Result<()>) -> anyhow::Result<PathBuf> {
    let folder = dir.join(name);
    let context = || format!("cannot write `{}`", folder.display());
    match fs::symlink_metadata(&folder) {
        Ok(_) => {
            let hint = "existing files are never overwritten: choose another name, or remove it first";
            return Err(Advice::new(format!("`{}` already exists", folder.display()), hint).into());
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(context),
    }
    fs::create_dir_all(dir).with_context(context)?;
    let unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(dir).with_context(context)?;
    let fresh = unfinished.path().join(name);
    fill(&fresh).and_then(|()| fs::rename(&fresh, &folder)).with_context(context)?;
    Ok(folder)
}
