//! Sources of tools: one file a dialect, each turning its own words into [`Tool`]s. Past this module there is only
//! `Tool`. A source is read, never executed.

pub mod about;
mod artifact;
mod component;
pub mod descriptor;
mod document;
mod environment;
mod extension;
mod folder;
mod harness;
mod imports;
mod inference;
mod interface;
mod manifest;
mod name;
mod program;
mod reading;
mod record;
mod report;
mod secrets;
mod shape;
mod typed;
mod world;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::Error;
use crate::tool::{Place, ScriptedHook, Tool};

pub use about::about;
pub(crate) use artifact::{ToolsPolicy, defined_hook, defined_tool};
pub(crate) use imports::check_nesting;
pub use program::{Fingerprint, fingerprint, program_bytes};
pub(crate) use program::{MOST_PROGRAM_BYTES, digest};
use reading::Reading;
use report::Noted;
pub(crate) use report::nearest;
pub use typed::documented;
pub(crate) use typed::is_contract;

/// The file name of a manifest, looked for in a folder.
pub const MANIFEST: &str = "tools.json";

/// What a source brought.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The tools, in the order of the source.
    pub tools: Vec<Tool>,
    /// The hooks, in the order of the source.
    pub hooks: Vec<ScriptedHook>,
    /// What its projects say of tools by their names.
    pub(crate) policies: Vec<ToolsPolicy>,
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
    /// Where in the file, as far as that is known.
    #[serde(flatten)]
    pub place: Option<Place>,
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

/// Reads the tools and hooks of a manifest, of a record, of a component, of a Markdown file, of a project of them, or of
/// a folder: its `tools.json`, else its records, components and artifacts.
///
/// # Errors
///
/// The first problem of the source, in the order in which its format checks them; of artifacts that could be parsed,
/// everything that is invalid in them together.
pub fn load(path: &Path) -> Result<Loaded, Error> {
    let Reading { tools, hooks, policies, problems } = read(path);
    let mut warnings = Vec::new();
    let mut invalid = Vec::new();
    for Noted { problem, together } in problems {
        match problem.severity {
            Severity::Warning => warnings.push(problem),
            Severity::Error if together => invalid.push(problem.message),
            Severity::Error => return Err(Error::Source { path: problem.path, message: problem.message }),
        }
    }
    if !invalid.is_empty() {
        let message = format!("invalid config: {}", invalid.join("; "));
        return Err(Error::Source { path: path.to_path_buf(), message });
    }
    for tool in &tools {
        program::available(tool)?;
    }
    Ok(Loaded { tools, hooks, policies, warnings })
}

/// Every problem of a source, errors and warnings, in the order in which they stand in it.
pub fn check(path: &Path) -> Vec<Problem> {
    let Reading { tools, problems, .. } = read(path);
    let mut problems: Vec<_> = problems.into_iter().map(|noted| noted.problem).collect();
    for tool in &tools {
        match program::available(tool) {
            Err(error) => {
                let path = tool.origin.path.to_path_buf();
                problems.push(Problem { severity: Severity::Error, path, place: None, message: error.to_string() });
            }
            Ok(()) => {
                let told = |severity, message: String| problem(tool, severity, &message);
                let schema = crate::schema::Input::compile(tool);
                problems.extend(schema.err().map(|error| told(Severity::Error, error)));
                problems.extend(inference::contradictions(tool).into_iter().map(|text| told(Severity::Warning, text)));
            }
        }
    }
    problems
}

fn read(path: &Path) -> Reading {
    let manifest = Some(path.join(MANIFEST)).filter(|manifest| manifest.is_file());
    let mut reading = match (harness::project(path), manifest) {
        (Some(project), manifest) => {
            let before = manifest.map(|manifest| document::read(&manifest)).unwrap_or_default();
            harness::read_project(&project, before)
        }
        (None, Some(manifest)) => document::read(&manifest),
        (None, None) if path.is_dir() => folder::read(path),
        (None, None) if component::is_component(path) => component::read_file(path),
        (None, None) if artifact::is_markdown(path) => harness::read_files([path], Reading::default()),
        (None, None) => document::read(path),
    };
    let mut programs = world::Programs::default();
    for tool in std::mem::take(&mut reading.tools) {
        let (tools, problems) = programs.settle(tool);
        reading.tools.extend(tools);
        reading.problems.extend(problems);
    }
    for tool in &mut reading.tools {
        inference::infer(tool);
        let doubt = inference::doubt(tool).map(|text| problem(tool, Severity::Warning, &text));
        reading.problems.extend(doubt.map(|problem| Noted { problem, together: false }));
    }
    reading
}

fn problem(tool: &Tool, severity: Severity, message: &str) -> Problem {
    let path = tool.origin.path.to_path_buf();
    Problem { severity, path, place: None, message: format!("tool {:?}: {message}", tool.name) }
}
