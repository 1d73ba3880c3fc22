//! Dialect B: a record of the Agent Tool standard (version 0.2.0) in a file of its own. It holds the fields of an
//! interface, flat, and of a declaration those that say something here; what the standard leaves to a runtime stands in
//! fields of ours: `component`, `args`, `capabilities` and `limits`.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::schema;
use crate::tool::{Basis, Body, Fact, FactValue, Format, LimitRequest, Origin, Tool};

use super::diagnostics::Diagnostics;
use super::document::without_mark;
use super::interface::Statement;
use super::parsed::Parsed;
use super::shape::{kind, members};
use super::{capabilities, name, program};

/// How the file name of a record ends.
const ENDING: &str = ".tool.json";
/// The members by either of which an object is a record.
pub(super) const MARKS: [&str; 2] = ["interface_id", "tool_id"];
/// The fields of a record that are no part of an interface.
const FIELDS: [&str; 8] = ["name", "description", "title", "lifecycle", "component", "args", "capabilities", "limits"];
/// What the standard defines and nothing here depends on: kept as it is, with its kind.
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
/// The states of a tool in a declaration, those first in which it can be called.
const LIFECYCLES: [&str; 7] = ["draft", "available", "disabled", "requires_setup", "deferred", "deprecated", "retired"];
const CALLABLE: usize = 2;

/// Whether a file's name says that it is a record.
pub(super) fn is_named(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.ends_with(ENDING) && name.len() > ENDING.len())
}

/// The name of a record's file, as long as nothing else tells that of its tool.
pub(super) fn of_file(path: &Path) -> Option<String> {
    path.file_name()?.to_str()?.split('.').next().map(str::to_owned)
}

/// The tool of a record and every problem in it. `path` is what was asked for, `place` the same from the root.
pub(super) fn read(path: &Path, place: &Path, text: Arc<str>) -> Parsed {
    let mut report = Diagnostics::new(path);
    let parsed = schema::parse(without_mark(&text)).map_err(|error| format!("parse record: {error}"));
    let fields = parsed.and_then(|value| members("a record", value));
    let origin = Origin {
        format: Format::AgentTool,
        path: Arc::from(place),
        index: None,
        text: Some(text),
        unknown: Map::new(),
    };
    let glimpsed = fields.as_ref().map(|fields| (named(fields), program(fields, &origin))).unwrap_or_default();
    let known = origin.clone();
    let tool = report.value(fields).and_then(|fields| tool(&mut report, origin, fields));
    let Some(unusable) = report.confine(0) else { return Parsed::of(tool, report) };
    let (name, program) = glimpsed;
    let name = name.and_then(name::usable).or_else(|| of_file(path).and_then(name::usable));
    let broken = name.map(|name| {
        let broken = Tool::broken(name, unusable, known);
        // It still is about its program, which else would be a tool without a record.
        Tool { body: program.unwrap_or(Body::Absent), ..broken }
    });
    Parsed::of(broken, report)
}

/// The name that a record gives to its tool, whatever else is wrong in it.
fn named(fields: &Map<String, Value>) -> Option<String> {
    let own = || fields.get("name")?.as_str().map(str::to_owned);
    own().or_else(|| fields.get("tool_id")?.as_str()?.rsplit('.').next().map(str::to_owned))
}

/// The program that a record names, whatever else is wrong in it.
fn program(fields: &Map<String, Value>, origin: &Origin) -> Option<Body> {
    let component = fields.get("component")?.as_str().filter(|path| capabilities::beside(path))?.to_owned();
    let folder = origin.path.parent().unwrap_or(Path::new("/"));
    Some(Body::Command { program: program::locate(&folder.join(&component)), argv: vec![component] })
}

fn tool(report: &mut Diagnostics, origin: Origin, mut fields: Map<String, Value>) -> Option<Tool> {
    let folder = origin.path.parent().unwrap_or(Path::new("/"));
    let mut unknown = Map::new();
    for (field, wanted) in CARRIED {
        if let Some(value) = fields.shift_remove(field) {
            report.that(kind(&value) == wanted, &format!("{field} must be {wanted}, found {}", kind(&value)));
            unknown.insert(field.to_owned(), value);
        }
    }
    if !unknown.contains_key("schema_version") {
        report.warn("schema_version is missing, which the standard requires; it is read as \"0.2.0\"");
    }
    let tool_id = fields.get("tool_id");
    report.that(tool_id.is_some_and(|id| id.as_str() != Some("")), "tool_id is required");
    let last_of_id =
        tool_id.and_then(Value::as_str).and_then(|id| id.rsplit('.').next()).unwrap_or_default().to_owned();
    let name = take::<String>(report, &mut fields, "name").unwrap_or(last_of_id);
    report.that(!name.trim().is_empty(), "name is required, or a tool_id that ends in it");
    report.value(name::check_length(&name));
    report.that(fields.contains_key("component"), "component is required: the path of the program beside the record");
    let component = take::<String>(report, &mut fields, "component");
    if let Some(path) = component.as_ref().filter(|path| !capabilities::beside(path)) {
        report.error(&format!("component {path:?} is not beside the record; name a file in its folder or below"));
    }
    let args = take::<Vec<String>>(report, &mut fields, "args").unwrap_or_default();
    let description = take::<String>(report, &mut fields, "description");
    let title = take::<String>(report, &mut fields, "title");
    let lifecycle = take::<String>(report, &mut fields, "lifecycle");
    let requested = report.value(capabilities::capabilities(fields.shift_remove("capabilities"), Vec::new(), folder));
    let limits = report.value(capabilities::limits(fields.shift_remove("limits")));

    let mut stated = Statement::default();
    stated.read("", fields, &FIELDS, report);
    let shown = &mut stated.interface.identity.user_facing_name;
    if let (Some(title), Basis::Default) = (title, shown.basis) {
        *shown = Fact { value: Some(title), basis: Basis::Declared };
    }
    if let Some(lifecycle) = lifecycle {
        live(&lifecycle, &mut stated, report);
    }
    let (parameters, deadline) = (report.value(stated.parameters(None))?, report.value(stated.deadline(None))?);
    if !report.sound() {
        return None;
    }
    name::warn_of_servers(&name, None, report);
    unknown.extend(stated.unknown);
    let component = component?;
    let program = program::locate(&folder.join(&component));
    let body = Body::Command { program, argv: std::iter::once(component).chain(args).collect() };
    Some(Tool {
        description,
        parameters,
        requested: requested?,
        limits: LimitRequest { deadline, ..limits? },
        interface: stated.interface,
        ..Tool::new(name, body, Origin { unknown, ..origin })
    })
}

/// A tool that its declaration calls anything but ready cannot be called, whatever else it says.
fn live(lifecycle: &str, stated: &mut Statement, report: &mut Diagnostics) {
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

/// A field of one kind, if it is there.
pub(super) fn take<T: FactValue>(report: &mut Diagnostics, fields: &mut Map<String, Value>, field: &str) -> Option<T> {
    let value = fields.shift_remove(field)?;
    let found = kind(&value);
    report.value(T::read(value).ok_or_else(|| format!("{field} must be {}, found {found}", T::EXPECTED)))
}
