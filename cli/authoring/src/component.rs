//! Reads and installs component files. A component is installed atomically, and only if all its tools can be loaded.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use toolcrib::Tool;
use toolcrib::owner_only;
use toolcrib::source::{self, Severity};
use toolcrib_base::whole_file::folder_of;
use toolcrib_base::{progress, render};
use toolcrib_sources::options::Compiling;

use crate::check;

/// Name prefix of temporary folders for unfinished output.
pub const UNFINISHED: &str = ".unfinished-";

/// Reads the bytes of a component.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    source::program_bytes(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// Installs a component and returns its tools. A component that cannot be loaded changes nothing. Prints warnings to
/// standard error.
pub async fn put(path: &Path, component: &[u8], compiling: &Compiling) -> anyhow::Result<Vec<Tool>> {
    let context = || format!("cannot write `{}`", path.display());
    let name = path.file_name().with_context(context)?;
    let unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(folder_of(path)).with_context(context)?;
    let fresh: PathBuf = unfinished.path().join(name);
    fs::write(&fresh, component).with_context(context)?;
    let problems = progress::during("checking the tools", check::problems(&fresh, compiling)).await;
    let (mut errors, at) = (Vec::new(), render::from_here(path).display());
    for problem in problems {
        // Reported for the final path instead of the temporary one.
        let message = problem.to_string().replace(&fresh.display().to_string(), &path.display().to_string());
        match problem.severity {
            Severity::Error => errors.push(format!("{at}: {message}")),
            Severity::Warning => render::warning(&format!("{at}: {message}")),
        }
    }
    anyhow::ensure!(errors.is_empty(), errors.join("\n"));
    let tools = source::load(&fresh)?.tools;
    owner_only::rename(&fresh, path).with_context(context)?;
    Ok(tools)
}
