//! Project of Markdown files: its own file `harness.md`, and the folder `.harness` with one folder per kind of file.

use std::path::{Path, PathBuf};

use crate::tool::{Basis, Fact, Visibility};

use super::diagnostics::{Diagnostics, Parsed};
use super::dialect::{Dialect, Dialects};
use super::document::{Candidate, from_root};
use super::markdown::{self, BUILTINS, FILE, FOLDER, FOLDERS, Kind, Merge, OVERRIDES};
use super::{component, files, folder};

/// Folder of the programs that scripts may run by name.
const PROGRAMS: &str = "bin";

/// A folder with `harness.md` or `.harness`, or the folder `.harness` itself.
pub(super) struct Project {
    /// Dialects of the manifest in its folder.
    pub(super) dialects: &'static Dialects,
}

impl Dialect for Project {
    fn matches_path(&self, path: &Path) -> bool {
        find(path).is_some()
    }

    /// Reads the project after the manifest of its folder.
    fn read(&self, candidate: &Candidate<'_>) -> Parsed {
        let path = candidate.path();
        let before =
            self.dialects.manifest(path).map(|manifest| self.dialects.read(&manifest, None)).unwrap_or_default();
        match find(path) {
            Some(project) => read_project(&project, before),
            None => before,
        }
    }
}

/// Finds the folder that holds a project.
pub(super) fn find(path: &Path) -> Option<PathBuf> {
    let absolute = from_root(path);
    if files::is_folder(path) && absolute.file_name().is_some_and(|name| name == FOLDER) {
        return absolute.parent().map(Path::to_path_buf);
    }
    (files::is_file(&path.join(FILE)) || files::is_folder(&path.join(FOLDER))).then(|| path.to_path_buf())
}

fn read_project(project: &Path, before: Parsed) -> Parsed {
    let folder = project.join(FOLDER);
    let mut merge = Merge::default();
    for (name, kind) in FOLDERS {
        if name == BUILTINS {
            // The lists of the project file come after the files of one tool or hook each.
            let own = own_files(project);
            own.for_each(|file| merge.add(markdown::read_file(&file, Kind::Project), false));
        }
        for file in self::files(&folder.join(name), markdown::is_entry, &mut merge) {
            merge.add(markdown::read_file(&file, kind), name == OVERRIDES);
        }
    }
    let programs = self::files(&folder.join(PROGRAMS), component::is_component, &mut merge);
    let mut parsed = merge.finish(before);
    for program in programs {
        let mut program = component::read_file(&program);
        for tool in &mut program.tools {
            let visibility = &mut tool.interface.discovery.schema_visibility;
            *visibility = Fact { value: Visibility::Internal, basis: Basis::Declared };
        }
        parsed.add(program);
    }
    if parsed.tools.is_empty() && parsed.hooks.is_empty() && parsed.problems.is_empty() {
        let mut report = Diagnostics::new(project);
        report.warn("this project has no tools and no hooks");
        parsed.problems = report.problems;
    }
    parsed
}

/// Lists the files of a project with its lists and its policy.
fn own_files(project: &Path) -> impl Iterator<Item = PathBuf> {
    [project.join(FILE), project.join(FOLDER).join(FILE)].into_iter().filter(|file| files::is_file(file))
}

/// Lists the Markdown files that a project consists of.
pub(super) fn definitions(project: &Path) -> Vec<PathBuf> {
    let folders = FOLDERS.into_iter().map(|(name, _)| project.join(FOLDER).join(name));
    let entries = folders.flat_map(|folder| folder::files(&folder).unwrap_or_default());
    own_files(project).chain(entries.filter(|file| markdown::is_entry(file))).collect()
}

/// Lists the files of a folder that match. A missing folder is empty.
fn files(folder: &Path, matches: impl Fn(&Path) -> bool, merge: &mut Merge) -> Vec<PathBuf> {
    match folder::files(folder) {
        Ok(files) => files.into_iter().filter(|file| matches(file)).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            merge.report(Parsed::failed(folder, &format!("read folder: {error}")).problems);
            Vec::new()
        }
    }
}
