//! Subject of a test run: a component or another source of tools.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use toolcrib::source;

use crate::options::project_file;
use crate::render::Advice;

use super::cases::Case;

/// Sources of a component in the folder of its package.
const SOURCES: [&str; 3] = ["Cargo.toml", "src", "sdk"];
/// Default file of test cases in a folder; beside a file, the name of the file comes before it.
const CASES: &str = "tests.json";
/// Extension of Markdown tools.
const MARKDOWN: &str = "md";
/// Maximum depth of source folders searched.
const MAX_DEPTH: usize = 16;

/// A source of tools and their names.
pub(super) struct Subject {
    pub(super) path: PathBuf,
    tools: Vec<String>,
}

impl Subject {
    /// Resolves a path: the path itself or, for a folder, its `tools.json`, its project of Markdown tools or its only
    /// component.
    pub(super) fn find(path: &Path) -> anyhow::Result<Self> {
        let is_package = path.is_dir() && project_file(path).is_none();
        let path = if is_package { component(path)? } else { path.to_path_buf() };
        let tools = source::load(&path)?.tools.into_iter().map(|tool| tool.name).collect();
        Ok(Self { path, tools })
    }

    /// Returns the default file of cases: that of the file's own name beside it, if there is one, or that of the folder.
    pub(super) fn cases(&self) -> PathBuf {
        if self.path.is_dir() {
            return self.path.join(CASES);
        }
        let (own, shared) = (self.path.with_extension(CASES), self.path.with_file_name(CASES));
        let is_markdown = self.path.extension().is_some_and(|extension| extension == MARKDOWN);
        if own.exists() || is_markdown && !shared.exists() { own } else { shared }
    }

    /// Returns the name of the tool that a case calls.
    pub(super) fn tool<'a>(&'a self, case: &'a Case) -> anyhow::Result<&'a str> {
        let hint = || format!("`tool` is one of `{}`", self.tools.join("`, `"));
        let at = &case.name;
        match (&case.tool, self.tools.as_slice()) {
            (Some(name), tools) if tools.contains(name) => Ok(name),
            (Some(name), _) => Err(Advice::new(format!("{at:?}: unknown tool `{name}`"), hint()).into()),
            (None, [only]) => Ok(only),
            (None, tools) => {
                Err(Advice::new(format!("{at:?}: `tool` is required: there are {} tools", tools.len()), hint()).into())
            }
        }
    }
}

/// Returns the only component of a folder. Fails if one of its sources is newer.
fn component(folder: &Path) -> anyhow::Result<PathBuf> {
    let context = || format!("cannot read the folder `{}`", folder.display());
    let build = || format!("run `toolcrib build {}` first", folder.display());
    let mut components = Vec::new();
    for entry in fs::read_dir(folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "wasm") {
            components.push(path);
        }
    }
    let [component] = components.as_slice() else {
        let found =
            if components.is_empty() { "no component".to_owned() } else { format!("{} components", components.len()) };
        let hint = if components.is_empty() { build() } else { "pass one of them".to_owned() };
        return Err(Advice::new(format!("found {found} in `{}`", folder.display()), hint).into());
    };
    let built = fs::metadata(component).and_then(|about| about.modified()).with_context(context)?;
    for source in SOURCES {
        if let Some(newer) = newer(&folder.join(source), built, MAX_DEPTH).with_context(context)? {
            let message = format!("`{}` is newer than `{}`", newer.display(), component.display());
            return Err(Advice::new(message, build()).into());
        }
    }
    Ok(component.clone())
}

/// Returns a file at or below a path that was modified after a time.
fn newer(path: &Path, than: SystemTime, deep: usize) -> io::Result<Option<PathBuf>> {
    let about = match fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if about.is_file() {
        return Ok((about.modified()? > than).then(|| path.to_path_buf()));
    }
    if about.is_dir() && deep > 0 {
        for entry in fs::read_dir(path)? {
            if let Some(found) = newer(&entry?.path(), than, deep - 1)? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}
