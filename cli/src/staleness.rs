//! Components that are older than a source beside them: tools that their authors changed and did not build again. A folder
//! without sources costs a few failed looks.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use toolcrib::Tool;

use crate::render::{self, Advice};

/// Manifest of a package in Rust.
const PACKAGE: &str = "Cargo.toml";
/// Sources of a component in the folder of its package.
const SOURCES: [&str; 5] = [PACKAGE, "build.rs", "src", "sdk", "wit"];
/// Script that builds a tool in another language, as `toolcrib new tool --lang` creates it.
pub(crate) const SCRIPT: &str = "build";
/// Extensions of the sources beside such a script.
const CODE: [&str; 8] = ["c", "go", "h", "js", "mjs", "mod", "py", "ts"];
/// Folder in that of sources with the output of builds.
const OUTPUT: &str = "target";
/// Maximum depth of source folders searched.
const MAX_DEPTH: usize = 16;
/// Maximum number of files and folders that are looked at beside one component.
const MAX_ENTRIES: usize = 10_000;
/// Maximum number of components that are named in warnings.
const MAX_WARNINGS: usize = 10;

/// Component with a newer source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StaleComponent {
    component: PathBuf,
    source: PathBuf,
    /// Command that builds the component.
    build: String,
}

impl StaleComponent {
    /// Looks for a newer source of one component.
    pub(crate) fn of(component: &Path) -> Option<Self> {
        Packages::default().stale(component, None)
    }

    /// Looks for newer sources of the components of tools, each once.
    pub(crate) fn of_tools<'a>(tools: impl IntoIterator<Item = &'a Tool>) -> Vec<Self> {
        let mut packages = Packages::default();
        let mut seen = BTreeSet::new();
        let programs = tools.into_iter().filter_map(|tool| Some((tool.body.program()?, tool.origin.path.parent())));
        let programs = programs.filter(|(program, _)| seen.insert(*program));
        programs.filter_map(|(program, definition)| packages.stale(program, definition)).collect()
    }

    /// Source and component in one clause.
    pub(crate) fn message(&self) -> String {
        let [source, component] = [&self.source, &self.component].map(|path| render::from_here(path).display());
        format!("`{source}` is newer than `{component}`")
    }

    /// Advice to build the component.
    pub(crate) fn advice(&self) -> String {
        format!("run `{}` first", self.build)
    }

    /// Error of a command that needs the current component.
    pub(crate) fn refusal(&self) -> anyhow::Error {
        Advice::new(self.message(), self.advice()).into()
    }
}

/// Warns of tools that run as they were built before a change of their sources.
pub(crate) fn warn<'a>(tools: impl IntoIterator<Item = &'a Tool>) {
    let stale = StaleComponent::of_tools(tools);
    for one in stale.iter().take(MAX_WARNINGS) {
        render::warning(&format!("{}, which is used as it is", one.message()));
        render::hint(&format!("run `{}` to use the change", one.build));
    }
    if let Some(more @ 1..) = stale.len().checked_sub(MAX_WARNINGS) {
        render::warning(&format!("and {} are older than their sources", render::counted(more, "more component")));
    }
}

/// Newest source in each folder that was looked at.
#[derive(Default)]
struct Packages(HashMap<PathBuf, Option<(SystemTime, PathBuf)>>);

impl Packages {
    /// Compares a component with the sources in its folder, and in the folder of its definition if a script there builds it.
    fn stale(&mut self, component: &Path, definition: Option<&Path>) -> Option<StaleComponent> {
        let beside = component.parent()?;
        let scripted = definition.filter(|folder| *folder != beside && folder.join(SCRIPT).is_file());
        for folder in [Some(beside), scripted].into_iter().flatten() {
            let newest = self.0.entry(folder.to_path_buf()).or_insert_with(|| newest(folder));
            let Some((changed, source)) = newest else { continue };
            let built = fs::metadata(component).and_then(|about| about.modified()).ok()?;
            if *changed > built {
                let (component, source) = (component.to_path_buf(), source.clone());
                return Some(StaleComponent { component, source, build: build_command(folder) });
            }
        }
        None
    }
}

/// Returns the command that builds the package in a folder.
pub(crate) fn build_command(folder: &Path) -> String {
    let is_scripted = !folder.join(PACKAGE).is_file() && folder.join(SCRIPT).is_file();
    let is_here = folder.as_os_str().is_empty() || std::env::current_dir().is_ok_and(|here| here == folder);
    let folder = if is_here { Path::new(".") } else { folder };
    match is_scripted {
        true => render::from_here(folder).join(SCRIPT).display().to_string(),
        false => format!("toolcrib build {}", render::shell_path(folder)),
    }
}

/// Returns the source in the folder of a package that was changed last.
fn newest(folder: &Path) -> Option<(SystemTime, PathBuf)> {
    let mut search = Search { left: MAX_ENTRIES, newest: None };
    for source in SOURCES {
        search.at(&folder.join(source), MAX_DEPTH);
    }
    let script = folder.join(SCRIPT);
    if script.is_file() {
        search.at(&script, 0);
        let is_code = |path: &PathBuf| path.extension().is_some_and(|ending| CODE.iter().any(|code| ending == *code));
        let beside = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        beside.take(MAX_ENTRIES).filter(is_code).for_each(|path| search.at(&path, 0));
    }
    search.newest
}

/// Search for the newest file, which follows no link.
struct Search {
    left: usize,
    newest: Option<(SystemTime, PathBuf)>,
}

impl Search {
    fn at(&mut self, path: &Path, depth: usize) {
        let Ok(about) = path.symlink_metadata() else { return };
        if about.is_file() {
            let Ok(changed) = about.modified() else { return };
            if self.newest.as_ref().is_none_or(|(newest, _)| changed > *newest) {
                self.newest = Some((changed, path.to_path_buf()));
            }
            return;
        }
        if !about.is_dir() || depth == 0 || path.ends_with(OUTPUT) {
            return;
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            self.at(&entry.path(), depth - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_component_is_compared_with_the_sources_of_its_own_package() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, seconds: u64| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let file = File::create(&path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
            path
        };
        let component = write("greet/greet.wasm", 100);
        let source = |path: &Path| StaleComponent::of(path).map(|stale| stale.source);
        assert_eq!(source(&component), None, "no sources");
        write("greet/src/lib.rs", 99);
        write("greet/src/target/debug/x", 200);
        write("greet/app.py", 200);
        write("other/src/lib.rs", 200);
        assert_eq!(source(&component), None, "older, output, no script, another folder");
        let deep = write("greet/src/a/b.rs", 101);
        assert_eq!(source(&component), Some(deep));
        let code = folder.path().join("greet/app.py");
        write("greet/build", 1);
        assert_eq!(source(&component), Some(code), "the newest");
        assert_eq!(source(&folder.path().join("greet/absent.wasm")), None);
    }
}
