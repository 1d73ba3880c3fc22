//! Components without a manifest: the file's stem is the tool's name. A command takes any JSON object, for nothing in
//! its bytes says more.

use std::path::Path;

use crate::tool::{Body, Format, Origin, Tool};

use super::reading::Reading;
use super::report::Report;

/// Whether a file's name says that it is a component.
pub(super) fn is_component(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("wasm"))
}

/// One component.
pub(super) fn read_file(path: &Path) -> Reading {
    let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else {
        return Reading::failed(path, "the file's name is not UTF-8, so the tool would have no name");
    };
    let body = Body::Command { program: path.to_path_buf(), argv: vec![name.to_owned()] };
    let tool = Tool::new(name, body, Origin::of(Format::Component, path));
    Reading::of([tool], Report::new(path))
}
