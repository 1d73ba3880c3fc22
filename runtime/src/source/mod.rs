//! Tool sources: files, folders and bundles, each read by its dialect into [`Tool`]s. Past this module there is only
//! `Tool`. Reading a source executes nothing.

mod agent_tool;
mod bundle;
mod capabilities;
mod check;
mod component;
mod diagnostics;
mod dialect;
mod document;
mod environment;
mod files;
mod folder;
mod inference;
pub mod inspect;
mod interface;
mod markdown;
mod mcp;
mod name;
mod parts;
mod places;
mod program;
mod project;
mod secrets;
mod shape;
mod skill;
mod source_folder;
mod suggestion;
mod tools_json;
mod tools_policy;
mod world;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::tool::{Body, Format, Origin, ScriptedHook, Tool, Unusable};

pub use crate::error::Severity;
pub(crate) use bundle::OpenBundle;
pub use bundle::is_bundle;
pub use check::check;
pub use diagnostics::Diagnostic;
use diagnostics::{Parsed, Scope, ScopedDiagnostic};
use dialect::Dialects;
pub use inspect::inspect;
pub(crate) use markdown::{body_of, defined_hook, defined_tool};
pub use parts::{SourceParts, parts, usable_parts};
pub(crate) use program::portable;
pub use program::{Fingerprint, fingerprint, program_bytes};
pub(crate) use skill::{ReadError, read_file as read_skill_file};
pub(crate) use suggestion::nearest;
pub(crate) use toolcrib_component::MAX_PROGRAM_BYTES;
pub use toolcrib_component::functions::documented;
pub use toolcrib_component::{descriptor, digest};
pub(crate) use tools_json::program_folders;
pub(crate) use tools_policy::ToolsPolicy;

/// All dialects. A new dialect is a file that implements [`Dialect`](dialect::Dialect) and an entry of this list.
static DIALECTS: Dialects = Dialects {
    all: &[
        &project::Project { dialects: &DIALECTS },
        &folder::Folder { dialects: &DIALECTS },
        &mcp::McpServer,
        // Before skills, as its manifest is looked for first.
        &tools_json::ToolsJson,
        &skill::Skills,
        &agent_tool::AgentTool,
        &component::Component,
        &markdown::Markdown,
    ],
    default: &tools_json::ToolsJson,
};

/// Maximum number of tools per run, and so per source.
pub(crate) const MAX_TOOLS: usize = 32_768;

/// Name of the manifest file that is looked for in a folder.
pub const MANIFEST: &str = tools_json::MANIFEST;

/// Content of a source.
#[derive(Debug, Default)]
pub struct LoadedSource {
    /// Tools, in the order of the source.
    pub tools: Vec<Tool>,
    /// Hooks, in the order of the source.
    pub hooks: Vec<ScriptedHook>,
    /// Policies of its projects over tools, by name.
    pub(crate) policies: Vec<ToolsPolicy>,
    /// Problems that did not stop the load.
    pub warnings: Vec<Diagnostic>,
    /// Bundle that was read, open as long as somebody holds it.
    pub(crate) bundle: Option<Arc<OpenBundle>>,
}

/// Reads the tools and hooks of a `tools.json`, a skill, an Agent Tool definition, a component, a Markdown file, a project of
/// Markdown files, a folder: its `tools.json` or `SKILL.md`, or else its skills, Agent Tool definitions, components and Markdown
/// files, or a bundle of them, which is not unpacked.
///
/// # Errors
///
/// Returns the first problem of the source, in the order in which its format checks them. All invalid values of Markdown
/// files that could be parsed are reported together.
pub fn load(path: &Path) -> Result<LoadedSource, Error> {
    load_parsed(read(path), path, true)
}

/// Reads a source like [`load`], but keeps a faulty tool as an unusable one, with a warning. Errors of a whole source and
/// of its hooks stay errors: a hook that guards calls must not be left out.
///
/// # Errors
///
/// Returns the first problem of the whole source.
pub fn load_usable(path: &Path) -> Result<LoadedSource, Error> {
    load_parsed(read(path), path, false)
}

/// Reads a source like [`load_usable`], but opens only the program of the tool with this name or alias, and leaves out the
/// others. A source is read whole if its names come from its programs, or if it `is_reviewed` and has the tool: its digest
/// covers all of its tools.
///
/// # Errors
///
/// Returns the first problem of the whole source.
pub(crate) fn load_tool(path: &Path, name: &str, is_reviewed: bool) -> Result<LoadedSource, Error> {
    let complete_one = |mut parsed: Parsed| {
        let is_from_program = |tool: &Tool| tool.origin.format == Format::Component;
        let is_whole = |tool: &Tool| is_from_program(tool) || (is_reviewed && tool.is_named(name));
        if !parsed.tools.iter().any(is_whole) {
            leave_out(&mut parsed.tools, name);
        }
        complete(parsed)
    };
    let called = (!is_reviewed).then_some(name);
    load_parsed(read_with(path, called, complete_one), path, false)
}

fn load_parsed(parsed: Parsed, path: &Path, strict: bool) -> Result<LoadedSource, Error> {
    let Parsed { tools, hooks, policies, problems, bundle, .. } = parsed;
    let mut warnings = Vec::new();
    let mut invalid = Vec::new();
    for scoped in problems {
        match (scoped.problem.severity, scoped.scope) {
            (Severity::Warning, _) => warnings.push(scoped.problem),
            (Severity::Error, Scope::Tool) if !strict => warnings.push(scoped.into_warning()),
            (Severity::Error, Scope::SameTool) if !strict => {}
            (Severity::Error, _) if scoped.together => invalid.push(scoped.problem.message),
            (Severity::Error, _) => return Err(scoped.into_error()),
        }
    }
    if !invalid.is_empty() {
        let message = diagnostics::invalid_config(invalid.iter().map(String::as_str));
        return Err(Error::Source { path: path.to_path_buf(), message });
    }
    Ok(LoadedSource { tools, hooks, policies, warnings, bundle })
}

/// Reads a source in its dialect, and completes each tool from the bytes of its program.
fn read(path: &Path) -> Parsed {
    read_with(path, None, complete)
}

fn read_with(path: &Path, called: Option<&str>, complete: impl Fn(Parsed) -> Parsed) -> Parsed {
    match bundle::at(path) {
        None => complete(DIALECTS.read(path, called)),
        Some(Ok(bundle)) => read_bundle(path, called, bundle, complete),
        Some(Err(error)) => Parsed::failed(path, &format!("read bundle: {error}")),
    }
}

/// Reads the sources in a bundle. One part that cannot be read makes the whole bundle unusable.
fn read_bundle(
    path: &Path,
    called: Option<&str>,
    bundle: Arc<OpenBundle>,
    complete: impl Fn(Parsed) -> Parsed,
) -> Parsed {
    let mut parsed = Parsed::default();
    for source in bundle.sources() {
        parsed.add(match bundle.is_program() {
            true => component::read_file(&source),
            false => DIALECTS.read(&source, called),
        });
    }
    let mut parsed = complete(parsed);
    if let Some(fault) = bundle.fault() {
        return Parsed::failed(path, &format!("read bundle: {fault}"));
    }
    parsed.bundle = Some(bundle);
    parsed
}

/// Makes every tool unusable but the one with this name or alias. The others keep their programs and their names.
pub(crate) fn leave_out(tools: &mut [Tool], name: &str) {
    for tool in tools.iter_mut().filter(|tool| tool.unusable.is_none() && !tool.is_named(name)) {
        let body = std::mem::replace(&mut tool.body, Body::Absent);
        let mut left_out = left_out(&tool.name, body, tool.origin.clone());
        left_out.interface.identity = tool.interface.identity.clone();
        *tool = left_out;
    }
}

/// Creates a tool that is left out because another is called. Its name is not provisional: nothing says that the tool could not
/// be used.
fn left_out(name: &str, body: Body, origin: Origin) -> Tool {
    let reason = "the runtime was prepared for calls of another tool".to_owned();
    let fault = Error::Source { path: origin.path.to_path_buf(), message: format!("tool {name:?}: {reason}") };
    let origin = Origin { provisional_name: false, ..origin };
    Tool { body, ..Tool::broken(name, Unusable { reason, fault }, origin) }
}

/// Completes each tool from the bytes of its program.
fn complete(mut parsed: Parsed) -> Parsed {
    let mut programs = world::ProgramCache::default();
    for tool in std::mem::take(&mut parsed.tools) {
        if tool.unusable.is_some() {
            parsed.tools.push(tool);
            continue;
        }
        let (tools, problems) = programs.expand(tool);
        parsed.tools.extend(tools);
        parsed.problems.extend(problems);
    }
    for tool in &mut parsed.tools {
        inference::infer(tool);
        let doubt = inference::doubt(tool).map(|text| tool_diagnostic(tool, Severity::Warning, &text, ""));
        parsed.problems.extend(doubt);
    }
    parsed
}

/// Creates a diagnostic of a tool. `part` is a JSON pointer into its entry of a `tools.json`; an Agent Tool record has the
/// same parts under other names.
fn tool_diagnostic(tool: &Tool, severity: Severity, message: &str, part: &str) -> ScopedDiagnostic {
    let pointer = match tool.origin.format {
        Format::ToolsJson => tool.origin.index.map(|index| format!("{}{part}", tools_json::pointer(index))),
        Format::AgentTool => Some(agent_tool::pointer(tool, part)),
        _ => None,
    };
    let path = tool.origin.path.to_path_buf();
    let problem = Diagnostic { severity, path, place: None, message: format!("tool {:?}: {message}", tool.name) };
    ScopedDiagnostic { pointer, ..ScopedDiagnostic::new(problem) }
}

/// Returns the path that identifies a source: a project's folder, the manifest of a folder that has one, or else the
/// path itself.
pub(crate) fn root(path: &Path) -> PathBuf {
    if is_bundle(path) {
        return path.to_path_buf();
    }
    project::find(path).or_else(|| DIALECTS.manifest(path)).unwrap_or_else(|| path.to_path_buf())
}

/// Lists a source's folders in which every file is a part of it.
pub(crate) fn projects(path: &Path) -> Vec<PathBuf> {
    if is_bundle(path) {
        return Vec::new();
    }
    let project = project::find(path).map(|project| project.join(markdown::FOLDER));
    project.into_iter().chain(skill::folders(path)).collect()
}

/// Returns `true` if a path is a folder in which every file can be a tool: neither a project nor a folder with a manifest.
pub(crate) fn is_listed(path: &Path) -> bool {
    path.is_dir() && project::find(path).is_none() && DIALECTS.manifest(path).is_none()
}

/// Message for a source or run with more than [`MAX_TOOLS`] tools.
pub(crate) fn too_many(found: usize) -> String {
    format!("{found} tools, and at most {MAX_TOOLS} are loaded; load only those that the run needs")
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::tool::Body;

    const MARKDOWN: &str = "---\nparameters:\n  text:\n    type: string\nscript: |\n  def run(args):\n      return 1\n---\nCount the words.\nAll of them.\n";
    const MANIFEST: &str = "{\n  \"tools\": [\n    {\n      \"name\": \"count\",\n      \"description\": \"Count the words.\"\n    }\n  ]\n}\n";

    #[test]
    fn line_ends_of_windows_and_a_byte_order_mark_change_no_source() {
        let dir = tempfile::tempdir().unwrap();
        let read = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            let tool = load_usable(&path).unwrap().tools.remove(0);
            let script = match &tool.body {
                Body::Script(script) => Some(script.source.clone()),
                _ => None,
            };
            (tool.name.clone(), tool.description.map(|text| text.replace("\r\n", "\n")), script)
        };
        for (name, text) in [("count.md", MARKDOWN), ("tools.json", MANIFEST)] {
            let plain = read(name, text);
            assert_eq!(plain.0, "count");
            assert_eq!(read(name, &text.replace('\n', "\r\n")), plain, "{name}");
            assert_eq!(read(name, &format!("\u{feff}{}", text.replace('\n', "\r\n"))), plain, "{name}");
        }
    }
}
