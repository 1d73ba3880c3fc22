//! Agent Tool definition (standard version 0.2.0) in a file of its own: interface fields, flat, and the declaration
//! fields that have an effect here. The fields `component`, `args`, `capabilities` and `limits` extend the standard.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::schema;
use crate::tool::{Basis, Body, Fact, FactValue, Format, LimitRequest, Origin, Tool};

use super::diagnostics::{Diagnostics, Parsed};
use super::dialect::Dialect;
use super::document::{Candidate, from_root, without_mark};
use super::interface::Statement;
use super::places::place_of;
use super::shape::{kind, members};
use super::{capabilities, name, program};

/// Version of the standard.
const VERSION: &str = "0.2.0";
/// JSON pointer to the record in its document.
const ROOT: &str = "";
/// Ending of the file names.
const ENDING: &str = ".tool.json";
/// Members that mark a definition, which has at least one of them.
const MARKS: [&str; 2] = ["interface_id", "tool_id"];
/// Start of an escaped character in JSON.
const ESCAPE: &str = "\\u";
/// Member of a `tools.json`, which no definition has.
const LIST: &str = "tools";
/// Fields that are not part of an interface.
const FIELDS: [&str; 8] = ["name", "description", "title", "lifecycle", "component", "args", "capabilities", "limits"];
/// Fields of the standard without an effect here, kept unchanged, each with its type.
const CARRIED: [(&str, &str); 9] = [
    ("$schema", "a string"),
    ("schema_version", "a string"),
    ("interface_id", "a string"),
    ("interface_ref", "a string"),
    ("tool_kind", "a string"),
    ("input_contract", "an object"),
    ("output_contract", "an object"),
    ("annotations", "an object"),
    ("external_mappings", "an array"),
];
/// Lifecycle states of a declaration. The first two allow calls.
const LIFECYCLES: [&str; 7] = ["draft", "available", "disabled", "requires_setup", "deferred", "deprecated", "retired"];
const CALLABLE: usize = 2;

/// A file `NAME.tool.json`, or any JSON object with an identifier of the standard.
pub(super) struct AgentTool;

impl Dialect for AgentTool {
    fn matches_path(&self, path: &Path) -> bool {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.ends_with(ENDING) && name.len() > ENDING.len())
    }

    fn matches_text(&self, text: &str) -> bool {
        // Most texts have no such mark, not even escaped, and need not be parsed.
        if !MARKS.iter().any(|mark| text.contains(mark)) && !text.contains(ESCAPE) {
            return false;
        }
        let Ok(members) = serde_json::from_str::<HashMap<String, IgnoredAny>>(without_mark(text)) else { return false };
        MARKS.iter().any(|mark| members.contains_key(*mark)) && !members.contains_key(LIST)
    }

    fn read(&self, candidate: &Candidate<'_>) -> Parsed {
        let path = candidate.path();
        let mut parsed = match candidate.text() {
            Ok(text) => parse(path, text),
            Err(error) => Parsed::failed(path, &format!("read record: {error}")),
        };
        if parsed.tools.iter().all(|tool| tool.body.program().is_none()) {
            parsed.without_program = Some(path.to_path_buf());
        }
        parsed
    }

    fn matches_entry(&self, file: &Path) -> bool {
        self.matches_path(file)
    }

    fn entry_form(&self) -> Option<&'static str> {
        Some("Agent Tool record (`NAME.tool.json`)")
    }
}

/// Returns the part of a file name before the first dot.
fn stem(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.split('.').next()
}

/// Parses a definition, with every problem in it.
fn parse(path: &Path, text: Arc<str>) -> Parsed {
    let mut report = Diagnostics::new(path);
    report.within(ROOT.to_owned());
    let fields = match schema::parse(without_mark(&text)) {
        Ok(value) => report.value(members("a record", value)),
        Err(error) => {
            report.alone(place_of(&error), format!("parse record: {error}"));
            None
        }
    };
    let origin = Origin { text: Some(text), ..Origin::of(Format::AgentTool, from_root(path)) };
    let partial = fields.as_ref().map(|fields| (stated_name(fields), program(fields, &origin))).unwrap_or_default();
    let known = origin.clone();
    let tool = fields.and_then(|fields| tool(&mut report, origin, fields));
    let tool = match report.confine(0) {
        None => tool,
        Some(unusable) => {
            let (name, program) = partial;
            let name = name.and_then(name::usable).or_else(|| stem(path).map(str::to_owned).and_then(name::usable));
            // The faulty definition keeps its program, which would become a tool without a definition otherwise.
            let body = program.unwrap_or(Body::Absent);
            name.map(|name| Tool { body, ..Tool::broken(name, unusable, known) })
        }
    };
    let tool = tool.map(|mut tool| {
        tool.origin.provisional_name = stem(&tool.origin.path) == Some(tool.name.as_str());
        tool
    });
    Parsed::of(tool, report)
}

/// Returns the name that a definition states, valid or not otherwise.
fn stated_name(fields: &Map<String, Value>) -> Option<String> {
    let own = || fields.get("name")?.as_str().map(str::to_owned);
    own().or_else(|| fields.get("tool_id")?.as_str()?.rsplit('.').next().map(str::to_owned))
}

/// Returns the program that a definition names, valid or not otherwise.
fn program(fields: &Map<String, Value>, origin: &Origin) -> Option<Body> {
    let component = fields.get("component")?.as_str().filter(|path| capabilities::beside(path))?.to_owned();
    let folder = origin.path.parent().unwrap_or(Path::new("/"));
    Some(Body::Command {
        program: program::locate(&folder.join(&component)),
        argv: vec![component],
        command_line: None,
    })
}

fn tool(report: &mut Diagnostics, origin: Origin, mut fields: Map<String, Value>) -> Option<Tool> {
    let folder = origin.path.parent().unwrap_or(Path::new("/"));
    let mut unknown = Map::new();
    for (field, wanted) in CARRIED {
        if let Some(value) = fields.shift_remove(field) {
            report.require(kind(&value) == wanted, &format!("{field} must be {wanted}, found {}", kind(&value)));
            unknown.insert(field.to_owned(), value);
        }
    }
    check_version(unknown.get("schema_version"), report);
    let tool_id = fields.get("tool_id");
    let has_id = tool_id.is_some_and(|id| id.as_str() != Some(""));
    report.require(has_id, "tool_id is required");
    let last_of_id = tool_id.filter(|_| has_id).and_then(|id| id.as_str()?.rsplit('.').next()).map(str::to_owned);
    let name = if fields.contains_key("name") { take(report, &mut fields, "name") } else { last_of_id };
    // Without a name, the reason is another error.
    let is_named = name.as_ref().is_none_or(|name: &String| !name.trim().is_empty());
    report.require(is_named, "name is required, or a tool_id that ends in it");
    let name = name.unwrap_or_default();
    report.value(name::check_length(&name));
    report
        .require(fields.contains_key("component"), "component is required: the path of the program beside the record");
    let component = take::<String>(report, &mut fields, "component");
    if let Some(path) = component.as_ref().filter(|path| !capabilities::beside(path)) {
        report.error(&format!("component {path:?} is not beside the record; name a file in its folder or below"));
    }
    let args = take::<Vec<String>>(report, &mut fields, "args").unwrap_or_default();
    let description = take::<String>(report, &mut fields, "description");
    let title = take::<String>(report, &mut fields, "title");
    let lifecycle = take::<String>(report, &mut fields, "lifecycle");
    let requested = report.values(capabilities::capabilities(fields.shift_remove("capabilities"), Vec::new(), folder));
    let limits = report.values(capabilities::limits(fields.shift_remove("limits")));

    let mut stated = Statement::default();
    stated.read("", fields, &FIELDS, report);
    let shown = &mut stated.interface.identity.user_facing_name;
    if let (Some(title), Basis::Default) = (title, shown.basis) {
        *shown = Fact { value: Some(title), basis: Basis::Declared };
    }
    if let Some(lifecycle) = lifecycle {
        apply_lifecycle(&lifecycle, &mut stated, report);
    }
    let (parameters, deadline) = (report.value(stated.parameters(None))?, report.value(stated.deadline(None))?);
    if !report.sound() {
        return None;
    }
    name::warn_of_servers(&name, None, report);
    unknown.extend(stated.unknown);
    let component = component?;
    let program = program::locate(&folder.join(&component));
    let argv = std::iter::once(component).chain(args).collect();
    let body = Body::Command { program, argv, command_line: None };
    Some(Tool {
        description,
        parameters,
        requested: requested?,
        limits: LimitRequest { deadline, ..limits? },
        interface: stated.interface,
        ..Tool::new(name, body, Origin { unknown, ..origin })
    })
}

/// Warns of a record without a version, and refuses one with a version whose fields may mean something else.
fn check_version(version: Option<&Value>, report: &mut Diagnostics) {
    match version {
        None => {
            report.warn(&format!("schema_version is missing, which the standard requires; it is read as \"{VERSION}\""))
        }
        // A value of another type has its error already.
        Some(Value::String(version)) if !is_read(version) => {
            let found = name::shortened(version);
            report.error(&format!("schema_version {found:?} is not supported: write the record for \"{VERSION}\""));
        }
        Some(_) => {}
    }
}

/// Returns `true` for the version of the standard and its patches.
fn is_read(version: &str) -> bool {
    let minor = VERSION.rsplit_once('.').map_or(VERSION, |(minor, _)| minor);
    let patch = version.strip_prefix(minor).and_then(|rest| rest.strip_prefix('.'));
    patch.is_some_and(|patch| !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Disables a tool whose lifecycle state does not allow calls.
fn apply_lifecycle(lifecycle: &str, stated: &mut Statement, report: &mut Diagnostics) {
    match LIFECYCLES.iter().position(|known| *known == lifecycle) {
        None => report.error(&format!("lifecycle must be one of `{}`, found {lifecycle:?}", LIFECYCLES.join("`, `"))),
        Some(..CALLABLE) => {}
        Some(_) => {
            let reason = format!("its record says that it is `{lifecycle}`");
            report.warn(&format!("lifecycle is `{lifecycle}`: the tool is disabled"));
            let availability = &mut stated.interface.availability;
            availability.is_enabled = Fact { value: false, basis: Basis::Declared };
            if availability.requires_setup.basis == Basis::Default {
                availability.requires_setup = Fact { value: Some(reason), basis: Basis::Declared };
            }
        }
    }
}

/// Takes a field of one type. Returns `None` if it is absent or, with an error, of another type.
pub(super) fn take<T: FactValue>(report: &mut Diagnostics, fields: &mut Map<String, Value>, field: &str) -> Option<T> {
    let value = fields.shift_remove(field)?;
    let found = kind(&value);
    report.value(T::read(value).ok_or_else(|| format!("{field} must be {}, found {found}", T::EXPECTED)))
}

/// Converts a JSON pointer into an entry of a `tools.json` to one into a record, which has the same parts at its top level.
pub(super) fn pointer(tool: &Tool, part: &str) -> String {
    let schemas = &tool.interface.schemas;
    let arguments =
        if schemas.runtime_input_schema.value.is_some() { "/runtime_input_schema" } else { "/model_input_schema" };
    let parts = [("/command/0", "/component"), ("/command", "/args"), ("/schema", arguments), ("/interface", ROOT)];
    let found = parts.iter().find_map(|(entry, own)| Some(format!("{own}{}", part.strip_prefix(entry)?)));
    found.unwrap_or_else(|| part.to_owned())
}
