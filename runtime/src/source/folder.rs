//! A folder without a manifest: its records, those of its components that no record names, and its artifacts. Hidden files
//! are no tools.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::parsed::Parsed;
use super::{agent_tool, component, document, markdown, project};

/// The tools of a folder, by the names of their files.
pub(super) fn read(folder: &Path) -> Parsed {
    let files = match files(folder) {
        Ok(files) => files,
        Err(error) => return Parsed::failed(folder, &format!("read folder: {error}")),
    };
    let are = |is: fn(&Path) -> bool| files.iter().filter(move |path| is(path));
    let (records, components, artifacts) = (agent_tool::is_named, component::is_component, markdown::is_named);
    if ![records, components, artifacts].into_iter().any(|is| are(is).next().is_some()) {
        let message = "no `tools.json` and no `.wasm` file in this folder, no record (`NAME.tool.json`) and no artifact \
            (`NAME.md`)";
        return Parsed::failed(folder, message);
    }
    let mut reading = Parsed::default();
    let mut unread = None;
    for record in are(records) {
        let one = document::read(record);
        if one.tools.iter().all(|tool| tool.body.program().is_none()) {
            unread = Some(record);
        }
        reading.add(one);
    }
    let programs = reading.tools.iter().filter_map(|tool| tool.body.program()?.canonicalize().ok());
    let named: HashSet<PathBuf> = programs.collect();
    for component in are(components) {
        if !component.canonicalize().is_ok_and(|path| named.contains(&path)) {
            reading.add(match unread {
                None => component::read_file(component),
                Some(record) => component::withheld(component, record),
            });
        }
    }
    project::read_files(are(artifacts).map(PathBuf::as_path), reading)
}

/// The files of a folder in the order of their names, without those that are hidden.
pub(super) fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = folder.read_dir()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<_> = entries.filter(|path| !is_hidden(path)).collect();
    files.sort();
    Ok(files)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}
