//! Components without a manifest: the file's stem is the tool's name. A command takes any JSON object, for nothing in
//! its bytes says more.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::tool::{Body, Format, Origin, Tool};

use super::diagnostics::{Diagnostics, Parsed};
use super::dialect::Dialect;
use super::document::Candidate;
use super::{files, name};

/// One component or core module, `NAME.wasm`.
pub(super) struct Component;

impl Dialect for Component {
    fn matches_path(&self, path: &Path) -> bool {
        is_component(path)
    }

    fn read(&self, candidate: &Candidate<'_>) -> Parsed {
        read_file(candidate.path())
    }

    fn matches_entry(&self, file: &Path) -> bool {
        is_component(file)
    }

    fn entry_form(&self) -> Option<&'static str> {
        Some("component (`NAME.wasm`)")
    }

    /// Reads the components that no tool before them runs.
    fn read_entries(&self, files: &[&Path], mut before: Parsed) -> Parsed {
        let programs = before.tools.iter().filter_map(|tool| files::canonical(tool.body.program()?).ok());
        let programs: HashSet<PathBuf> = programs.collect();
        let record = before.without_program.clone();
        for file in files {
            if !files::canonical(file).is_ok_and(|path| programs.contains(&path)) {
                before.add(match &record {
                    None => read_file(file),
                    Some(record) => withheld(file, record),
                });
            }
        }
        before
    }
}

/// Returns `true` if the file's name ends in `.wasm`.
pub(super) fn is_component(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("wasm"))
}

/// Creates an unusable tool for a component beside a faulty Agent Tool record that may define it: without the questions,
/// schema and limits of that record, the component must not run.
pub(super) fn withheld(path: &Path, record: &Path) -> Parsed {
    let mut report = Diagnostics::new(path);
    let record = record.file_name().unwrap_or_default().to_string_lossy();
    report.error(&format!("{record:?} beside it names no readable program, so it may define this one"));
    let unusable = report.confine(0);
    let name = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned).and_then(name::usable);
    let origin = origin(path);
    let tool = name.zip(unusable).map(|(name, unusable)| Tool::broken(name, unusable, origin));
    Parsed::of(tool, report)
}

/// Reads one component.
pub(super) fn read_file(path: &Path) -> Parsed {
    let mut report = Diagnostics::new(path);
    let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else {
        report.error("the file's name is not UTF-8, so the tool would have no name");
        report.confine(0);
        return Parsed::of(None, report);
    };
    let body = Body::Command { program: path.to_path_buf(), argv: vec![name.to_owned()], command_line: None };
    let tool = Tool::new(name, body, origin(path));
    Parsed::of([tool], report)
}

fn origin(path: &Path) -> Origin {
    Origin { provisional_name: true, ..Origin::of(Format::Component, path) }
}
