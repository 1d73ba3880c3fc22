//! A project of Markdown files: its own file, `harness.md`, and the folder `.harness` with one folder for each kind of
//! artifact. What all of them bring is put together here: the order, who may replace whom, and what is denied.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::tool::{Basis, Fact, Origin, Place, ScriptedHook, Tool, Visibility};

use super::diagnostics::{Diagnostics, ScopedDiagnostic};
use super::document::from_root;
use super::markdown::{self, Contents, Found, Kind, ToolsPolicy};
use super::parsed::Parsed;
use super::{component, folder};

/// The project's own file.
const FILE: &str = "harness.md";
/// The folder of its artifacts.
pub(super) const FOLDER: &str = ".harness";
/// The folders in it, each with what its files are; the last one's replace others of their names.
const FOLDERS: [(&str, Kind); 5] = [
    ("tools", Kind::Tool),
    ("hooks", Kind::Hook),
    ("builtins", Kind::Bundle),
    ("plugins", Kind::Bundle),
    (OVERRIDES, Kind::Bundle),
];
const OVERRIDES: &str = "overrides";
/// The programs that scripts may run by name.
const PROGRAMS: &str = "bin";

/// Files that were named one by one or lie in a plain folder, behind what was read of the same source before.
pub(super) fn read_files<'a>(files: impl IntoIterator<Item = &'a Path>, before: Parsed) -> Parsed {
    let mut gathered = Gathered::default();
    for file in files {
        gathered.add(markdown::read(file, kind(file)), false);
    }
    gathered.settled(before)
}

/// What a file is by its name and by the folder that it lies in.
fn kind(file: &Path) -> Kind {
    let place = from_root(file);
    let mut folders = place.ancestors().skip(1).filter_map(Path::file_name);
    let (folder, above) = (folders.next(), folders.next());
    let is_ours = above.is_some_and(|above| above == FOLDER);
    match FOLDERS.into_iter().find(|(name, _)| is_ours && folder.is_some_and(|folder| folder == *name)) {
        _ if place.file_name().is_some_and(|name| name == FILE) => Kind::Project,
        Some((_, kind)) => kind,
        None => Kind::Tool,
    }
}

/// The folder that holds a project, where a folder is one or is its `.harness`.
pub(super) fn find(folder: &Path) -> Option<PathBuf> {
    let place = from_root(folder);
    if folder.is_dir() && place.file_name().is_some_and(|name| name == FOLDER) {
        return place.parent().map(Path::to_path_buf);
    }
    (folder.join(FILE).is_file() || folder.join(FOLDER).is_dir()).then(|| folder.to_path_buf())
}

/// Everything of a project, behind what was read of the same source before.
pub(super) fn read_project(project: &Path, before: Parsed) -> Parsed {
    let folder = project.join(FOLDER);
    let mut gathered = Gathered::default();
    for (name, kind) in FOLDERS {
        if name == "builtins" {
            // The lists of the project itself stand behind the files of one artifact each.
            let own = [project, &folder].map(|folder| folder.join(FILE)).into_iter().filter(|file| file.is_file());
            own.for_each(|file| gathered.add(markdown::read(&file, Kind::Project), false));
        }
        for file in gathered.files(&folder.join(name), markdown::is_named) {
            gathered.add(markdown::read(&file, kind), name == OVERRIDES);
        }
    }
    let programs = gathered.files(&folder.join(PROGRAMS), component::is_component);
    let mut reading = gathered.settled(before);
    for program in programs {
        let mut program = component::read_file(&program);
        for tool in &mut program.tools {
            let visibility = &mut tool.interface.discovery.schema_visibility;
            *visibility = Fact { value: Visibility::Internal, basis: Basis::Declared };
        }
        reading.add(program);
    }
    if reading.tools.is_empty() && reading.hooks.is_empty() && reading.problems.is_empty() {
        let mut report = Diagnostics::new(project);
        report.warn("no tool and no hook in this project: there is nothing to call");
        reading.problems = report.problems;
    }
    reading
}

/// What the files of a source brought, in order, before it is known who has which name.
#[derive(Default)]
struct Gathered {
    tools: Vec<Claim<Tool>>,
    hooks: Vec<Claim<ScriptedHook>>,
    policies: Vec<ToolsPolicy>,
    problems: Vec<ScopedDiagnostic>,
}

/// Something found, and whether it may replace what has its name.
struct Claim<T> {
    found: Found<T>,
    overrides: bool,
}

impl Gathered {
    /// Adds what a file holds.
    fn add(&mut self, contents: Contents, overrides: bool) {
        let Contents { tools, hooks, policy, problems } = contents;
        self.tools.extend(tools.into_iter().map(|found| Claim { found, overrides }));
        self.hooks.extend(hooks.into_iter().map(|found| Claim { found, overrides }));
        self.policies.extend(policy);
        self.problems.extend(problems);
    }

    /// The files of a folder that may not be there.
    fn files(&mut self, path: &Path, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        match folder::files(path) {
            Ok(files) => files.into_iter().filter(|file| wanted(file)).collect(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                self.problems.extend(Parsed::failed(path, &format!("read folder: {error}")).problems);
                Vec::new()
            }
        }
    }

    /// Everything under its name, behind what was read before, and closed where a policy says so.
    fn settled(self, before: Parsed) -> Parsed {
        let Self { tools, hooks, policies, problems } = self;
        let mut reading = before;
        reading.problems.extend(problems);
        let known = reading.tools.iter().map(|tool| (tool.name.clone(), tool.origin.describe())).collect();
        let tools = named("tool", tools, |tool| tool, known, &mut reading.problems);
        let hooks = named("hook", hooks, |hook| &hook.tool, HashMap::new(), &mut reading.problems);
        reading.tools.extend(tools);
        reading.hooks.extend(hooks);
        policies.iter().for_each(|policy| policy.close(&mut reading.tools));
        reading.policies.extend(policies);
        reading
    }
}

/// One of each name, in the place of the first. `known` are the names that are taken for good, with who has them.
fn named<T>(
    noun: &str,
    claims: Vec<Claim<T>>,
    tool: impl Fn(&T) -> &Tool,
    known: HashMap<String, String>,
    problems: &mut Vec<ScopedDiagnostic>,
) -> Vec<T> {
    let mut kept: Vec<Claim<T>> = Vec::with_capacity(claims.len());
    let mut by_name: HashMap<String, usize> = HashMap::new();
    for claim in claims {
        let Tool { name, origin, .. } = tool(&claim.found.value);
        let first = match (known.get(name), by_name.get(name).map(|at| &mut kept[*at])) {
            (Some(first), _) => first.clone(),
            (None, Some(first)) if claim.overrides && !first.overrides => {
                *first = claim;
                continue;
            }
            (None, Some(first)) => at(&tool(&first.found.value).origin, first.found.place),
            (None, None) => {
                by_name.insert(name.clone(), kept.len());
                kept.push(claim);
                continue;
            }
        };
        let second = at(origin, claim.found.place);
        let mut report = Diagnostics::new(&origin.path);
        let message = format!("{noun} {name:?} is defined more than once: in {first} and in {second}");
        report.invalid(claim.found.place, message);
        problems.extend(report.problems);
    }
    kept.into_iter().map(|claim| claim.found.value).collect()
}

/// Where something stands, in words.
fn at(origin: &Origin, place: Option<Place>) -> String {
    match place {
        Some(Place { line, column }) => format!("{}:{line}:{column}", origin.path.display()),
        None => origin.path.display().to_string(),
    }
}
