//! Sources of tools: one file a dialect, each turning its own words into [`Tool`]s. Past this module there is only
//! `Tool`. A source is read, never executed.

mod component;
mod manifest;
mod program;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::Error;
use crate::tool::Tool;

pub(crate) use manifest::nearest;

/// The file name of a manifest, looked for in a folder.
pub const MANIFEST: &str = "tools.json";

/// What a source brought.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The tools, in the order of the source.
    pub tools: Vec<Tool>,
    /// What did not stop the load but should be looked at.
    pub warnings: Vec<Problem>,
}

/// Something wrong in a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Whether it stops the load.
    pub severity: Severity,
    /// The file it stands in.
    pub path: PathBuf,
    /// Which entry, which field, what was found and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Whether a problem stops the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It does.
    Error,
    /// It does not.
    Warning,
}

/// Reads the tools of a manifest, of a folder (its `tools.json`, else its components) or of a component.
///
/// # Errors
///
/// The first problem of the source, in the order in which its format checks them.
pub fn load(path: &Path) -> Result<Loaded, Error> {
    let (tools, problems) = read(path);
    let mut warnings = Vec::new();
    for problem in problems {
        match problem.severity {
            Severity::Error => return Err(Error::Source { path: problem.path, message: problem.message }),
            Severity::Warning => warnings.push(problem),
        }
    }
    for tool in &tools {
        program::available(tool)?;
    }
    Ok(Loaded { tools, warnings })
}

/// Every problem of a source, errors and warnings, in the order in which they stand in it.
pub fn check(path: &Path) -> Vec<Problem> {
    let (tools, mut problems) = read(path);
    for tool in &tools {
        let path = tool.origin.path.to_path_buf();
        match program::available(tool) {
            Err(error) => problems.push(Problem { severity: Severity::Error, path, message: error.to_string() }),
            Ok(()) => problems.extend(crate::schema::Arguments::compile(tool.parameters.as_ref()).err().map(|error| {
                Problem { severity: Severity::Error, path, message: format!("tool {:?}: {error}", tool.name) }
            })),
        }
    }
    problems
}

fn read(path: &Path) -> (Vec<Tool>, Vec<Problem>) {
    if path.is_dir() {
        let manifest = path.join(MANIFEST);
        if manifest.is_file() { manifest::read(&manifest) } else { component::read_folder(path) }
    } else if component::is_component(path) {
        component::read_file(path)
    } else {
        manifest::read(path)
    }
}
