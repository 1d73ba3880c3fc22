//! Sources of tools: one file a dialect, each turning its own words into [`Tool`]s. Past this module there is only
//! `Tool`. A source is read, never executed.

mod agent_tool;
mod capabilities;
mod component;
mod diagnostics;
mod document;
mod environment;
mod folder;
mod inference;
pub mod inspect;
mod interface;
mod markdown;
mod name;
mod parsed;
mod places;
mod program;
mod project;
mod secrets;
mod shape;
mod tools_json;
mod world;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::Error;
use crate::schema;
use crate::tool::{Format, Place, ScriptedHook, Tool};

pub(crate) use diagnostics::nearest;
use diagnostics::{Scope, ScopedDiagnostic};
pub use inspect::inspect;
pub(crate) use markdown::{ToolsPolicy, defined_hook, defined_tool};
use parsed::Parsed;
pub(crate) use program::portable;
pub use program::{Fingerprint, fingerprint, program_bytes};
pub use toolcrib_component::descriptor;
pub use toolcrib_component::functions::documented;
pub(crate) use toolcrib_component::{MAX_PROGRAM_BYTES, digest};

/// The most tools of one run, and so of one source.
pub(crate) const MAX_TOOLS: usize = 32_768;

/// The file name of a manifest, looked for in a folder.
pub const MANIFEST: &str = "tools.json";

/// The folder beside a manifest in which its programs are.
pub(crate) const PROGRAMS: &str = "tools/bin";

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
    pub warnings: Vec<Diagnostic>,
}

/// Something wrong in a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
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

impl fmt::Display for Diagnostic {
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
    settled(path, true)
}

/// Reads the same, and keeps a tool with an error as one that is unusable, with a warning. What concerns a whole source
/// stays an error, and so does everything about a hook: a guard that cannot be loaded is not left out.
///
/// # Errors
///
/// The first problem of the whole source, likewise.
pub fn load_usable(path: &Path) -> Result<Loaded, Error> {
    settled(path, false)
}

fn settled(path: &Path, strict: bool) -> Result<Loaded, Error> {
    let Parsed { tools, hooks, policies, problems } = read(path);
    let mut warnings = Vec::new();
    let mut invalid = Vec::new();
    for noted in problems {
        match (noted.problem.severity, noted.scope) {
            (Severity::Warning, _) => warnings.push(noted.problem),
            (Severity::Error, Scope::Tool) if !strict => warnings.push(noted.into_warning()),
            (Severity::Error, Scope::SameTool) if !strict => {}
            (Severity::Error, _) if noted.together => invalid.push(noted.problem.message),
            (Severity::Error, _) => return Err(noted.into_error()),
        }
    }
    if !invalid.is_empty() {
        let message = format!("invalid config: {}", invalid.join("; "));
        return Err(Error::Source { path: path.to_path_buf(), message });
    }
    Ok(Loaded { tools, hooks, policies, warnings })
}

/// Every problem of a source, errors and warnings, in the order in which they stand in it.
pub fn check(path: &Path) -> Vec<Diagnostic> {
    let Parsed { tools, mut problems, .. } = read(path);
    for tool in &tools {
        problems.extend(wrong_schemas(tool));
        let contradictions = inference::contradictions(tool).into_iter();
        problems.extend(contradictions.map(|text| noted(tool, Severity::Warning, &text, "/interface")));
    }
    places::settle(&mut problems);
    problems.into_iter().map(|noted| noted.problem).collect()
}

/// Everything that is wrong in the schemas of a tool.
fn wrong_schemas(tool: &Tool) -> Vec<ScopedDiagnostic> {
    let Err(first) = schema::Input::compile(tool) else { return Vec::new() };
    let schemas = &tool.interface.schemas;
    let each = [
        ("", "/schema", &tool.parameters),
        ("", "/interface/model_input_schema", &schemas.model_input_schema.value),
        ("output_", "/interface/output_schema", &schemas.output_schema.value),
    ];
    let mut told: Vec<(String, String)> = Vec::new();
    for (prefix, part, schema) in each {
        for fault in schema.iter().flat_map(schema::faults) {
            let message = format!("{prefix}{fault}");
            // What a model sees may be what the tool gets.
            if told.iter().all(|(known, _)| *known != message) {
                told.push((message, format!("{part}{}", fault.pointer)));
            }
        }
    }
    if told.iter().all(|(known, _)| *known != first) {
        told.insert(0, (first, "/schema".to_owned()));
    }
    told.into_iter().map(|(message, part)| noted(tool, Severity::Error, &message, &part)).collect()
}

/// A problem of a tool, about a part of its entry where it has one in a document of JSON.
fn noted(tool: &Tool, severity: Severity, message: &str, part: &str) -> ScopedDiagnostic {
    let index = tool.origin.index.filter(|_| tool.origin.format == Format::ToolsJson);
    let pointer = index.map(|index| format!("{}{part}", tools_json::pointer(index)));
    ScopedDiagnostic { pointer, ..ScopedDiagnostic::new(problem(tool, severity, message)) }
}

/// Returns true where a record's tool has the name of the file.
pub(crate) fn is_named_by_file(tool: &Tool) -> bool {
    agent_tool::of_file(&tool.origin.path).is_some_and(|name| name == tool.name)
}

/// The folders of a source in which every file is a part of it.
pub(crate) fn projects(path: &Path) -> Vec<PathBuf> {
    project::find(path).map(|project| project.join(project::FOLDER)).into_iter().collect()
}

/// Returns true where a source is a folder of which every file can be a tool: one without a manifest.
pub(crate) fn is_listed(path: &Path) -> bool {
    path.is_dir() && project::find(path).is_none() && !path.join(MANIFEST).is_file()
}

fn read(path: &Path) -> Parsed {
    let manifest = Some(path.join(MANIFEST)).filter(|manifest| manifest.is_file());
    let mut reading = match (project::find(path), manifest) {
        (Some(project), manifest) => {
            let before = manifest.map(|manifest| document::read(&manifest)).unwrap_or_default();
            project::read_project(&project, before)
        }
        (None, Some(manifest)) => document::read(&manifest),
        (None, None) if path.is_dir() => folder::read(path),
        (None, None) if component::is_component(path) => component::read_file(path),
        (None, None) if markdown::is_markdown(path) => project::read_files([path], Parsed::default()),
        (None, None) => document::read(path),
    };
    let mut programs = world::ProgramCache::default();
    for tool in std::mem::take(&mut reading.tools) {
        if tool.unusable.is_some() {
            reading.tools.push(tool);
            continue;
        }
        let (tools, problems) = programs.expand(tool);
        reading.tools.extend(tools);
        reading.problems.extend(problems);
    }
    for tool in &mut reading.tools {
        inference::infer(tool);
        let doubt = inference::doubt(tool).map(|text| noted(tool, Severity::Warning, &text, ""));
        reading.problems.extend(doubt);
    }
    reading
}

/// The words for more tools than that.
pub(crate) fn too_many(found: usize) -> String {
    format!("{found} tools, and at most {MAX_TOOLS} are loaded; load only those that the run needs")
}

fn problem(tool: &Tool, severity: Severity, message: &str) -> Diagnostic {
    let path = tool.origin.path.to_path_buf();
    Diagnostic { severity, path, place: None, message: format!("tool {:?}: {message}", tool.name) }
}
