//! Components without a manifest: the file's stem is the tool's name. A command takes any JSON object, for nothing in
//! its bytes says more.

use std::path::Path;
use std::sync::Arc;

use crate::tool::{Body, Capabilities, Format, Interface, LimitRequest, Origin, Tool};

use super::{Problem, Severity};

/// Whether a file's name says that it is a component.
pub(super) fn is_component(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("wasm"))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// The components of a folder, by name; hidden files are no tools.
pub(super) fn read_folder(folder: &Path) -> (Vec<Tool>, Vec<Problem>) {
    let problem = |severity, message| Problem { severity, path: folder.to_path_buf(), message };
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) => return (Vec::new(), vec![problem(Severity::Error, format!("read folder: {error}"))]),
    };
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_component(path) && !is_hidden(path))
        .collect();
    files.sort();
    if files.is_empty() {
        let message = format!("no `{}` and no `.wasm` file in this folder", super::MANIFEST);
        return (Vec::new(), vec![problem(Severity::Error, message)]);
    }
    let mut tools = Vec::new();
    let mut problems = Vec::new();
    for file in files {
        let (mut found, mut wrong) = read_file(&file);
        tools.append(&mut found);
        problems.append(&mut wrong);
    }
    (tools, problems)
}

/// One component.
pub(super) fn read_file(path: &Path) -> (Vec<Tool>, Vec<Problem>) {
    let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else {
        let message = "the file's name is not UTF-8, so the tool would have no name".to_owned();
        return (Vec::new(), vec![Problem { severity: Severity::Error, path: path.to_path_buf(), message }]);
    };
    let tool = Tool {
        name: name.to_owned(),
        description: None,
        parameters: None,
        body: Body::Command { program: path.to_path_buf(), argv: vec![name.to_owned()] },
        requested: Capabilities::default(),
        limits: LimitRequest::default(),
        interface: Interface::default(),
        origin: Origin {
            format: Format::Component,
            path: Arc::from(path),
            index: None,
            text: None,
            unknown: Default::default(),
        },
    };
    (vec![tool], Vec::new())
}
