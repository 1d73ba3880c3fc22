//! Subject of a test run: a component or another tool source, with its cases and everything else that a test reads.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use toolcrib::source;
use toolcrib_authoring::changes;
use toolcrib_base::render::{self, Advice};
use toolcrib_base::suggestion;
use toolcrib_sources::options::project_file;
use toolcrib_sources::staleness::{self, PACKAGE, SCRIPT, StaleComponent};

use super::cases::Case;

/// Default file of test cases in a folder; for a file, its name is put before this one.
const CASES: &str = "tests.json";
/// Extension of Markdown tools.
const MARKDOWN: &str = "md";
/// Extension of components.
const COMPONENT: &str = "wasm";
/// Folder of Markdown tools in a project.
const PROJECT_TOOLS: &str = ".harness/tools";

/// A source of tools, and their names.
pub(super) struct Subject {
    pub(super) path: PathBuf,
    tools: Vec<String>,
    /// Programs of the tools.
    programs: Vec<PathBuf>,
    stale: Option<StaleComponent>,
}

impl Subject {
    /// Resolves a path: the path itself or, for a folder, its `tools.json`, its project of Markdown tools or its only
    /// component. With `allow_stale`, a component may be older than its sources.
    pub(super) fn find(path: &Path, allow_stale: bool) -> anyhow::Result<Self> {
        require(path)?;
        let is_package = path.is_dir() && project_file(path).is_none();
        let path = if is_package { component(path)? } else { path.to_path_buf() };
        // Before it is read: the current sources may build a sound component.
        if !allow_stale
            && path.is_file()
            && let Some(stale) = StaleComponent::of(&path)
        {
            return Ok(Self { path, tools: Vec::new(), programs: Vec::new(), stale: Some(stale) });
        }
        let tools = source::load(&path)?.tools;
        let programs = tools.iter().filter_map(|tool| tool.body.program()).map(Path::to_path_buf).collect();
        let stale = StaleComponent::of_tools(&tools).into_iter().next();
        Ok(Self { path, tools: tools.into_iter().map(|tool| tool.name).collect(), programs, stale })
    }

    /// Refuses a subject with a component that is older than its sources; with `allow_stale` it only warns.
    pub(super) fn require_fresh(&self, allow_stale: bool) -> anyhow::Result<()> {
        match &self.stale {
            Some(stale) if !allow_stale => return Err(stale.refusal("test")),
            Some(stale) => stale.warn(),
            None => {}
        }
        Ok(())
    }

    /// Returns the default file of cases: an adjacent one with the file's own name, if there is one, or the folder's.
    pub(super) fn cases(&self) -> PathBuf {
        if self.path.is_dir() {
            return self.path.join(CASES);
        }
        let (own, shared) = (self.path.with_extension(CASES), self.path.with_file_name(CASES));
        let is_markdown = self.path.extension().is_some_and(|extension| extension == MARKDOWN);
        if own.exists() || is_markdown && !shared.exists() { own } else { shared }
    }

    /// Returns the files that its tests read.
    pub(super) fn files(self) -> impl Iterator<Item = PathBuf> {
        let cases = self.cases();
        self.programs.into_iter().chain([self.path, cases])
    }

    /// Returns the name of the tool that a case calls.
    pub(super) fn tool<'a>(&'a self, case: &'a Case) -> anyhow::Result<&'a str> {
        let at = &case.name;
        match (&case.tool, self.tools.as_slice()) {
            (Some(name), tools) if tools.contains(name) => Ok(name),
            (Some(name), tools) => {
                let near = suggestion::nearest(name, tools.iter().map(String::as_str));
                let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                let hint = format!("{near}`tool` is one of `{}`", tools.join("`, `"));
                Err(Advice::new(format!("{at:?}: unknown tool `{name}`"), hint).into())
            }
            (None, [only]) => Ok(only),
            (None, tools) => {
                let hint = format!("`tool` is one of `{}`", tools.join("`, `"));
                Err(Advice::new(format!("{at:?}: `tool` is required: there are {} tools", tools.len()), hint).into())
            }
        }
    }
}

/// Finds the subjects with cases at and below a folder, in the order of their paths. A folder without any, and every other path,
/// is a subject itself.
pub(super) fn below(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_path_buf()];
    }
    let mut subjects: Vec<_> = changes::below(path).filter_map(|file| of_cases(&file, path)).collect();
    subjects.sort();
    subjects.dedup();
    if subjects.is_empty() { vec![path.to_path_buf()] } else { subjects }
}

/// Returns the subject of a case file: the file with the same name beside it, or its folder, if that is a tested source
/// or one with tools.
fn of_cases(file: &Path, root: &Path) -> Option<PathBuf> {
    let (folder, name) = (file.parent()?, file.file_name()?.to_str()?);
    if name == CASES {
        let is_own = |path: PathBuf| path.extension().is_some_and(|extension| extension == COMPONENT);
        let has_component = || {
            fs::read_dir(folder).is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|it| is_own(it.path()))))
        };
        let is_package = || [PACKAGE, SCRIPT].iter().any(|file| folder.join(file).is_file());
        let is_subject = folder == root || project_file(folder).is_some() || has_component() || is_package();
        return is_subject.then(|| folder.to_path_buf());
    }
    let stem = name.strip_suffix(CASES)?.strip_suffix('.').filter(|stem| !stem.is_empty())?;
    let component = folder.join(format!("{stem}.{COMPONENT}"));
    Some(if component.is_file() { component } else { folder.join(format!("{stem}.{MARKDOWN}")) })
}

/// Refuses a path that does not exist, with the nearest name beside it or among the project's tools.
fn require(path: &Path) -> anyhow::Result<()> {
    if path.try_exists().unwrap_or(true) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let entries = |folder: &Path| {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let is_tool = |path: &PathBuf| path.extension().is_some_and(|ending| ending == MARKDOWN || ending == COMPONENT);
    let known = entries(folder).filter(|path| is_tool(path) || path.is_dir());
    let known: Vec<PathBuf> = known.chain(entries(&folder.join(PROJECT_TOOLS)).filter(is_tool)).collect();
    // A name with or without its ending.
    let part = |path: &Path| match name.contains('.') || path.is_dir() {
        true => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        false => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    };
    let parts: Vec<(String, PathBuf)> = known.into_iter().map(|path| (part(&path), path)).collect();
    let exact = parts.iter().find(|(part, _)| *part == name);
    let near = || suggestion::nearest(&name, parts.iter().map(|(part, _)| part.as_str()));
    let near = exact.or_else(|| near().and_then(|near| parts.iter().find(|(part, _)| part == near)));
    let hint = match near {
        Some((_, path)) => format!("did you mean `{}`?", render::from_here(path).display()),
        None => "pass a component, a Markdown tool, or a folder of them".to_owned(),
    };
    Err(Advice::new(format!("`{}` does not exist", path.display()), hint).into())
}

/// Returns the only component of a folder.
fn component(folder: &Path) -> anyhow::Result<PathBuf> {
    let context = || format!("cannot read the folder `{}`", folder.display());
    let mut components = Vec::new();
    for entry in fs::read_dir(folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == COMPONENT) {
            components.push(path);
        }
    }
    match components.len() {
        1 => Ok(components.remove(0)),
        0 => {
            let hint = format!("run `{}` first", staleness::build_command(folder));
            Err(Advice::new(format!("found no component in `{}`", folder.display()), hint).into())
        }
        count => {
            let message = format!("found {count} components in `{}`", folder.display());
            Err(Advice::new(message, "pass one of them").into())
        }
    }
}
