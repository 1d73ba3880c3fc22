//! Components that are older than a source of theirs: tools that their authors changed and did not build again. Times are a hint
//! alone, since a clone or a restored file has a time of its own: only the two layouts that `toolcrib new tool` creates are looked
//! at, the component beside its package in Rust, and the one that a `build` script names.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use toml_edit::Document;
use toolcrib::Tool;
use toolcrib_base::render::{self, Advice};
use toolcrib_base::source_files::{self, MAX_ENTRIES};

/// Manifest of a package in Rust.
pub const PACKAGE: &str = "Cargo.toml";
/// Sources of a component in its package's folder.
const SOURCES: [&str; 4] = [PACKAGE, "build.rs", "src", "wit"];
/// Script that builds a tool in another language, as `toolcrib new tool --lang` creates it.
pub const SCRIPT: &str = "build";
/// Comment of such a script before the component that it builds.
const BUILDS: &str = "# Builds ";
/// Sources of its component, beside the files in [`CODE`].
const SCRIPTED: [&str; 2] = [SCRIPT, "wit"];
/// Extensions of the sources beside such a script.
const CODE: [&str; 8] = ["c", "go", "h", "js", "mjs", "mod", "py", "ts"];
/// Extension of components.
const COMPONENT: &str = "wasm";
/// Time difference that a newer source exceeds: a clone writes component and sources one after the other.
const MARGIN: Duration = Duration::from_secs(2);
/// Maximum size of a manifest, and of the part that is read of a script, in bytes.
const MAX_TEXT: u64 = 64 << 10;
/// Maximum number of components that are named in warnings.
const MAX_WARNINGS: usize = 10;

/// Component with a newer source.
#[derive(Debug, PartialEq, Eq)]
pub struct StaleComponent {
    component: PathBuf,
    source: PathBuf,
    /// Command that builds the component.
    build: String,
}

impl StaleComponent {
    /// Looks for a newer source of one component.
    pub fn of(component: &Path) -> Option<Self> {
        Self::find(component, None)
    }

    /// Looks for newer sources of tool components, each once.
    pub fn of_tools<'a>(tools: impl IntoIterator<Item = &'a Tool>) -> Vec<Self> {
        let mut seen = BTreeSet::new();
        let programs = tools.into_iter().filter_map(|tool| Some((tool.body.program()?, tool.origin.path.parent())));
        let programs = programs.filter(|(program, _)| seen.insert(*program));
        programs.filter_map(|(program, definition)| Self::find(program, definition)).collect()
    }

    /// Compares a component with the package sources in its folder, or with the script that builds it there or in the
    /// folder of its definition.
    fn find(component: &Path, definition: Option<&Path>) -> Option<Self> {
        if component.extension().is_none_or(|extension| extension != COMPONENT) {
            return None;
        }
        let beside = component.parent()?;
        let (newest, build) = if is_of_package(component, beside) {
            (newest(SOURCES.map(|name| beside.join(name))), package_command(beside))
        } else {
            let mut folders = [Some(beside), definition].into_iter().flatten();
            let folder = folders.find(|folder| is_of_script(component, folder))?;
            (newest(scripted(folder)), script_command(folder))
        };
        let (changed, source) = newest?;
        let built = fs::metadata(component).and_then(|about| about.modified()).ok()?;
        let is_newer = changed.duration_since(built).is_ok_and(|later| later > MARGIN);
        is_newer.then(|| Self { component: component.to_path_buf(), source, build })
    }

    /// Source and component in one clause.
    fn message(&self) -> String {
        let [source, component] = [&self.source, &self.component].map(|path| render::from_here(path).display());
        format!("`{source}` is newer than `{component}`")
    }

    /// Error for authors whose command needs the current component to `act` on it.
    pub fn refusal(&self, act: &str) -> anyhow::Error {
        let hint = format!("run `{}` first, or {act} the component as it is with `--allow-stale`", self.build);
        Advice::new(self.message(), hint).into()
    }

    /// Warns that the component is used as it was built. Times and script may be a stranger's: no command is named.
    pub fn warn(&self) {
        render::warning(&format!("{}, which is used as it is", self.message()));
    }
}

/// Warns of tools that run as built before their sources changed.
pub fn warn<'a>(tools: impl IntoIterator<Item = &'a Tool>) {
    let stale = StaleComponent::of_tools(tools);
    stale.iter().take(MAX_WARNINGS).for_each(StaleComponent::warn);
    if let Some(more @ 1..) = stale.len().checked_sub(MAX_WARNINGS) {
        render::warning(&format!("and {} are older than their sources", render::counted(more, "more component")));
    }
}

/// Returns the command that builds the package in a folder of the author.
pub fn build_command(folder: &Path) -> String {
    match !folder.join(PACKAGE).is_file() && folder.join(SCRIPT).is_file() {
        true => script_command(folder),
        false => package_command(folder),
    }
}

fn package_command(folder: &Path) -> String {
    format!("toolcrib build {}", render::shell_path(or_here(folder)))
}

fn script_command(folder: &Path) -> String {
    let script = render::from_here(or_here(folder)).join(SCRIPT);
    // A shell looks for a name without a folder elsewhere.
    render::shell_word(&render::one_line(&script.to_string_lossy()))
}

/// Returns `.` for the current directory.
fn or_here(folder: &Path) -> &Path {
    let is_here = folder.as_os_str().is_empty() || std::env::current_dir().is_ok_and(|here| here == folder);
    if is_here { Path::new(".") } else { folder }
}

/// `true` if a folder has a package in Rust with the name of a component.
fn is_of_package(component: &Path, folder: &Path) -> bool {
    let Some(text) = beginning(&folder.join(PACKAGE)) else { return false };
    let Ok(manifest) = Document::parse(text.as_str()) else { return false };
    let name = manifest.as_item().get("package").and_then(|package| package.get("name")?.as_str());
    let stem = component.file_stem().and_then(|stem| stem.to_str());
    // Cargo names a library by its crate.
    name.zip(stem).is_some_and(|(name, stem)| name.replace('-', "_") == stem.replace('-', "_"))
}

/// `true` if a folder has a script that names a component as the one that it builds.
fn is_of_script(component: &Path, folder: &Path) -> bool {
    let Ok(inside) = component.strip_prefix(folder) else { return false };
    let Some(text) = beginning(&folder.join(SCRIPT)) else { return false };
    let named = text.lines().find_map(|line| line.strip_prefix(BUILDS)?.split_whitespace().next()?.strip_suffix('.'));
    named.is_some_and(|named| Path::new(named) == inside)
}

/// Reads the beginning of a file; `None` without one.
fn beginning(path: &Path) -> Option<String> {
    // Anything else may keep its reader waiting.
    let file = path.is_file().then(|| fs::File::open(path)).and_then(Result::ok)?;
    let mut text = Vec::new();
    file.take(MAX_TEXT).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the file that was changed last, at or below some paths.
fn newest(paths: impl IntoIterator<Item = PathBuf>) -> Option<(SystemTime, PathBuf)> {
    let own = paths.into_iter().filter(|path| !path.is_symlink());
    let files = own.flat_map(|path| source_files::below(&path));
    files.filter_map(|(path, about)| Some((about.modified().ok()?, path))).max_by_key(|(changed, _)| *changed)
}

/// Lists the sources of a script.
fn scripted(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let is_code = |path: &PathBuf| path.extension().is_some_and(|ending| CODE.iter().any(|code| ending == *code));
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let beside = fs::read_dir(here).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let code = beside.map(|entry| folder.join(entry.file_name())).filter(is_code);
    SCRIPTED.iter().map(|name| folder.join(name)).chain(code)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// A folder with files of given times.
    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn write(&self, name: &str, text: &str, seconds: u64) -> PathBuf {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
            path
        }
    }

    #[test]
    fn a_component_is_compared_with_the_sources_of_its_own_package() {
        let folder = Folder::new();
        let component = folder.write("my-greet/my_greet.wasm", "", 100);
        let other = folder.write("my-greet/other.wasm", "", 100);
        let source = |path: &Path| StaleComponent::of(path).map(|stale| stale.source);
        let lib = folder.write("my-greet/src/lib.rs", "", 200);
        assert_eq!(source(&component), None, "no package");
        folder.write("my-greet/Cargo.toml", "[package]\nname = \"my-greet\"\n", 99);
        assert_eq!(source(&component), Some(lib));
        assert_eq!(source(&other), None, "of no package");
        assert_eq!(source(&folder.path("my-greet/Cargo.toml")), None, "no component");
        folder.write("my-greet/src/lib.rs", "", 102);
        folder.write("my-greet/src/target/debug/x", "", 200);
        folder.write("my-greet/app.py", "", 200);
        folder.write("other/src/lib.rs", "", 200);
        assert_eq!(source(&component), None, "as new, output, another language, another folder");
        let deep = folder.write("my-greet/src/a/b.rs", "", 103);
        assert_eq!(source(&component), Some(deep));
        for manifest in ["[workspace]", "[package]\nname = 1", "package = [", "[package]\nname = \"greet\""] {
            folder.write("my-greet/Cargo.toml", manifest, 200);
            assert_eq!(source(&component), None, "{manifest}");
        }
        assert_eq!(source(&folder.path("my-greet/absent.wasm")), None);
    }

    #[test]
    fn a_script_has_the_component_that_it_names_and_no_other() {
        let folder = Folder::new();
        let beside = folder.write("greet.wasm", "", 100);
        let below = folder.write("tools/bin/greet.wasm", "", 100);
        let code = folder.write("app.py", "", 200);
        folder.write("Cargo.toml", "[package]\nname = \"root\"\n", 300);
        folder.write("src/lib.rs", "", 300);
        let source = |path: &Path| StaleComponent::find(path, Some(folder.0.path())).map(|stale| stale.source);
        for script in ["", "#!/bin/sh\nmake all\n", "#!/bin/sh\n# Builds all.\n", "# Builds greet.wasm"] {
            folder.write("build", script, 200);
            assert_eq!((source(&beside), source(&below)), (None, None), "{script:?}");
        }
        folder.write("build", "#!/bin/sh\n# Builds greet.wasm. README.md tells\n", 1);
        assert_eq!((source(&beside), source(&below)), (Some(code.clone()), None));
        folder.write("build", "#!/bin/sh\n# Builds tools/bin/greet.wasm. README.md tells\n", 1);
        assert_eq!((source(&beside), source(&below)), (None, Some(code)));
        let wit = folder.write("wit/tool.wit", "", 300);
        assert_eq!(source(&below), Some(wit));
    }
}
