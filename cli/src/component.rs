//! Components as their authors keep them: one takes its place at once, and only if every tool of it can be loaded.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use toolcrib::Tool;
use toolcrib::source::{self, Severity};

use crate::commands::validate;
use crate::options::Compiling;
use crate::{progress, render};

/// How the name of a folder begins in which something is made that is not whole yet.
pub(crate) const UNFINISHED: &str = ".unfinished-";

/// The bytes of a component.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    source::program_bytes(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// Puts a component at its place, and gives its tools. What the library would refuse changes nothing there; its warnings go to
/// standard error.
pub(crate) async fn put(path: &Path, component: &[u8], compiling: &Compiling) -> anyhow::Result<Vec<Tool>> {
    let told = || format!("cannot write `{}`", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().with_context(told)?;
    let unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(folder).with_context(told)?;
    let fresh: PathBuf = unfinished.path().join(name);
    fs::write(&fresh, component).with_context(told)?;
    let problems = progress::during("looking at the tools", validate::problems(&fresh, compiling)).await;
    let (mut errors, at) = (Vec::new(), render::from_here(path).display());
    for problem in problems {
        // It is about the file that is to be, wherever that lies now.
        let said = problem.to_string().replace(&fresh.display().to_string(), &path.display().to_string());
        match problem.severity {
            Severity::Error => errors.push(format!("{at}: {said}")),
            Severity::Warning => render::warning(&format!("{at}: {said}")),
        }
    }
    anyhow::ensure!(errors.is_empty(), errors.join("\n"));
    let tools = source::load(&fresh)?.tools;
    fs::rename(&fresh, path).with_context(told)?;
    Ok(tools)
}
