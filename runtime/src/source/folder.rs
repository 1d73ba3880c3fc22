//! A folder without a manifest: its records, and those of its components that no record names. Hidden files are no tools.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::tool::Tool;

use super::{Problem, Severity, component, document, record};

/// The tools of a folder, by the names of their files.
pub(super) fn read(folder: &Path) -> (Vec<Tool>, Vec<Problem>) {
    let problem =
        |message| vec![Problem { severity: Severity::Error, path: folder.to_path_buf(), place: None, message }];
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) => return (Vec::new(), problem(format!("read folder: {error}"))),
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| !is_hidden(path));
    let (mut records, mut components): (Vec<_>, Vec<_>) = paths
        .filter(|path| record::is_named(path) || component::is_component(path))
        .partition(|path| record::is_named(path));
    if records.is_empty() && components.is_empty() {
        let message = "no `tools.json` and no `.wasm` file in this folder, and no record (`NAME.tool.json`)";
        return (Vec::new(), problem(message.to_owned()));
    }
    records.sort();
    components.sort();
    let mut tools = Vec::new();
    let mut problems = Vec::new();
    let mut add = |(mut found, mut wrong): (Vec<Tool>, Vec<Problem>)| -> Vec<PathBuf> {
        let programs = found.iter().filter_map(|tool| tool.body.program()?.canonicalize().ok()).collect();
        tools.append(&mut found);
        problems.append(&mut wrong);
        programs
    };
    let named: HashSet<PathBuf> = records.iter().flat_map(|record| add(document::read(record))).collect();
    for component in components {
        if !component.canonicalize().is_ok_and(|path| named.contains(&path)) {
            add(component::read_file(&component));
        }
    }
    (tools, problems)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}
