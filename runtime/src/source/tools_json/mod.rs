//! `tools.json`: a list of programs with schemas. Checks keep the order and the words of the format's reference; the fields
//! `argv`, `stdin`, `output`, `successCodes`, `capabilities`, `limits` and `interface` extend it.

mod command;
mod command_line;
mod other;
mod root;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::schema::StrictValue;
use crate::tool::{Body, Format, LimitRequest, Origin, Place, Tool};

use super::diagnostics::{Diagnostics, Parsed};
use super::dialect::Dialect;
use super::document::{Candidate, from_root, without_mark};
use super::interface::Statement;
use super::places::{Cursor, place_of};
use super::shape::{kind, members};
use super::{MAX_TOOLS, capabilities, environment, files, name, program, too_many};

use other::OtherTool;
use root::Root;

/// Name of the file in a folder.
pub(super) const MANIFEST: &str = "tools.json";
/// Folder beside a manifest that holds its programs.
const PROGRAMS: &str = "tools/bin";
const ROOT_KEYS: &[&str] = &["tools"];
const ENTRY_KEYS: &[&str] = &[
    "name",
    "description",
    "schema",
    "command",
    "argv",
    "stdin",
    "output",
    "successCodes",
    "timeoutSec",
    "envPassthrough",
    "capabilities",
    "limits",
    "interface",
];
/// Fields of an entry that must not be repeated in its `interface`.
const RESERVED: [&str; 2] = ["name", "description"];

/// A `tools.json`, under any file name.
pub(super) struct ToolsJson;

impl Dialect for ToolsJson {
    fn read(&self, candidate: &Candidate<'_>) -> Parsed {
        match candidate.text() {
            Ok(text) => parse(candidate.path(), text, candidate.called()),
            Err(error) => Parsed::failed(candidate.path(), &format!("read manifest: {error}")),
        }
    }

    fn manifest(&self) -> Option<&'static str> {
        Some(MANIFEST)
    }
}

/// Lists the folders that hold the programs of the loaded manifests. A folder that does not exist counts only for a faulty
/// entry: its program is unknown, and the fault may be fixed later.
pub(crate) fn program_folders(tools: &[&Tool]) -> BTreeSet<PathBuf> {
    let manifests = tools.iter().filter(|tool| tool.origin.format == Format::ToolsJson);
    // Thousands of tools can share a manifest.
    let manifests: BTreeSet<_> =
        manifests.map(|tool| (&*tool.origin.path, matches!(tool.body, Body::Absent))).collect();
    let folders = manifests.into_iter().filter_map(|(manifest, is_faulty)| {
        let folder = manifest.parent()?.join(PROGRAMS);
        (is_faulty || files::is_folder(&folder)).then_some(folder)
    });
    folders.collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object for a tool")]
struct Entry {
    name: Option<String>,
    description: Option<String>,
    schema: Option<Value>,
    command: Option<Vec<String>>,
    argv: Option<Value>,
    stdin: Option<Value>,
    output: Option<Value>,
    success_codes: Option<Value>,
    timeout_sec: Option<i64>,
    env_passthrough: Option<Vec<String>>,
    capabilities: Option<StrictValue>,
    limits: Option<StrictValue>,
    interface: Option<StrictValue>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// Parses a manifest's tools, with every problem in it; of those that are not `called`, only names and programs.
fn parse(path: &Path, text: Arc<str>, called: Option<&str>) -> Parsed {
    let mut report = Diagnostics::new(path);
    let Root { tools: entries, unknown } = match serde_json::from_str(without_mark(&text)) {
        Ok(manifest) => manifest,
        Err(error) => {
            report.alone(place_of(&error), format!("parse manifest: {error}"));
            return Parsed::of(None, report);
        }
    };
    report.unknown("", &unknown, ROOT_KEYS);
    if entries.len() > MAX_TOOLS {
        report.fatal(&too_many(entries.len()));
        return Parsed::of(None, report);
    }
    let absolute: Arc<Path> = Arc::from(from_root(path));
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    let mut cursor = Cursor::new(&text);
    let mut names = HashSet::new();
    let mut tools = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let origin =
            Origin { index: Some(index), text: Some(text.clone()), ..Origin::of(Format::ToolsJson, absolute.clone()) };
        let other = called.and_then(|called| OtherTool::read(entry, called, folder));
        if let Some(other) = other.filter(|other| names.insert(other.name().to_owned())) {
            tools.push(other.left_out(origin));
            continue;
        }
        let mark = report.mark();
        let tool = tool(&mut report, origin.clone(), index, entry, &mut names, folder, &mut cursor);
        tools.extend(match report.confine(mark) {
            None => tool,
            Some(unusable) => {
                // The schema of a faulty entry is checked too.
                let Partial { name, schema } = Partial::of(entry);
                name.map(|name| Tool { parameters: schema, ..Tool::broken(name, unusable, origin) })
            }
        });
    }
    if tools.is_empty() && report.problems.is_empty() {
        report.warn("`tools` is empty");
    }
    Parsed::of(tools, report)
}

/// Valid fields of a faulty entry.
#[derive(Default)]
struct Partial {
    name: Option<String>,
    schema: Option<Value>,
}

impl Partial {
    fn of(entry: &RawValue) -> Self {
        #[derive(Deserialize)]
        struct Fields {
            name: Option<Value>,
            schema: Option<Value>,
        }
        let Ok(Fields { name, schema }) = serde_json::from_str(entry.get()) else { return Self::default() };
        let name = name.as_ref().and_then(Value::as_str).map(str::to_owned).and_then(name::usable);
        Self { name, schema: schema.filter(Value::is_object) }
    }
}

/// Parses one entry. Checks run in the format's order: name, duplicate, command, environment, `command[0]`, then the fields
/// that extend the format. Every field is checked, so that the first error is the format's and each is reported.
fn tool(
    report: &mut Diagnostics,
    origin: Origin,
    index: usize,
    entry: &RawValue,
    names: &mut HashSet<String>,
    folder: &Path,
    cursor: &mut Cursor<'_>,
) -> Option<Tool> {
    report.enter(format!("tool[{index}]: "));
    report.within(pointer(index));
    let entry: Entry = match serde_json::from_str(entry.get()) {
        Ok(entry) => entry,
        Err(error) => {
            if let Some(name) = Partial::of(entry).name {
                report.enter(format!("tool[{index}] {name:?}: "));
                if !names.insert(name) {
                    report.fatal("duplicate name");
                }
            }
            report.error(&format!("parse manifest: {}", without_position(&error)));
            report.place_last(place_in(cursor, entry, &error));
            return None;
        }
    };
    let name = entry.name.unwrap_or_default();
    report.enter(match name.trim().is_empty() {
        true => format!("tool[{index}]: "),
        false => format!("tool[{index}] {:?}: ", name::shortened(&name)),
    });
    report.require(!name.trim().is_empty(), "name is required");
    if !name.trim().is_empty() && !names.insert(name.clone()) {
        report.fatal("duplicate name");
    }
    let argv = entry.command.unwrap_or_default();
    report.require(!argv.is_empty(), "command must have at least program name");
    let env = environment::normalise("envPassthrough", entry.env_passthrough.unwrap_or_default());
    let env = report.value(env).unwrap_or_default();
    let program = argv.first().and_then(|first| report.value(command::resolve(first, folder)));
    if let Some(schema) = entry.schema.as_ref().filter(|schema| !schema.is_object()) {
        report.error(&format!("schema must be an object, found {}", kind(schema)));
    }
    let fields = command_line::Fields {
        argv: entry.argv,
        stdin: entry.stdin,
        output: entry.output,
        success_codes: entry.success_codes,
    };
    let command_line = fields.read(report);
    let requested = report.values(capabilities::capabilities(entry.capabilities.map(StrictValue::value), env, folder));
    let limits = report.values(capabilities::limits(entry.limits.map(StrictValue::value)));
    let mut stated = Statement::default();
    if let Some(fields) = entry.interface.and_then(|fields| report.value(members("interface", fields.value()))) {
        stated.read("interface", fields, &RESERVED, report);
    }
    let seconds = entry.timeout_sec.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    let deadline = report.value(stated.deadline(seconds));
    let parameters = report.value(stated.parameters(entry.schema)).map(|stated| match (stated, &command_line) {
        (None, Some(line)) => line.schema(),
        (stated, line) => {
            line.iter().zip(&stated).for_each(|(line, schema)| command_line::check(line, schema, report));
            stated
        }
    });
    let output = command_line.as_ref().and_then(|line| line.output?.schema());
    if output.is_some() {
        stated.interface.schemas.output_schema.infer(output);
    }
    report.value(name::check_length(&name));

    if let Some(seconds @ ..=-1) = entry.timeout_sec {
        report.warn(&format!("timeoutSec {seconds} is negative and is ignored"));
    }
    if report.sound() {
        name::warn_of_servers(&name, None, report);
    }
    report.unknown("", &entry.unknown, ENTRY_KEYS);
    let mut unknown = entry.unknown;
    if !stated.unknown.is_empty() {
        unknown.insert("interface".into(), stated.unknown.into());
    }
    let (Some(program), Some(requested), Some(limits), true) = (program, requested, limits, report.sound()) else {
        return None;
    };
    let body = Body::Command {
        program: program::locate(&program),
        argv: command::guest_argv(argv),
        command_line: command_line.map(Arc::new),
    };
    Some(Tool {
        description: entry.description,
        parameters: parameters?,
        requested,
        limits: LimitRequest { deadline: deadline?, ..limits },
        interface: stated.interface,
        ..Tool::new(name, body, Origin { unknown, ..origin })
    })
}

/// Returns the position in the whole text of an error in an entry. Entries must be passed in the order of the text.
fn place_in(cursor: &mut Cursor<'_>, entry: &RawValue, error: &serde_json::Error) -> Option<Place> {
    let begins = (entry.get().as_ptr() as usize).checked_sub(cursor.text.as_ptr() as usize)?;
    let before: usize = entry.get().split_inclusive('\n').take(error.line().checked_sub(1)?).map(str::len).sum();
    cursor.place(begins + before + error.column().saturating_sub(1))
}

/// Returns the JSON pointer to an entry.
pub(super) fn pointer(index: usize) -> String {
    format!("/tools/{index}")
}

/// Returns the message of an error without its position, which is relative to one entry.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn as_many_entries_as_there_may_be_that_cannot_be_parsed_are_placed_in_one_pass() {
        let entry = format!("{:<254}}},", "{\"name\":1");
        let text = format!("{{\"tools\":[{}{{}}]}}", entry.repeat(MAX_TOOLS - 1));
        let start = Instant::now();
        let parsed = parse(Path::new("tools.json"), text.into(), None);
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
        let places = parsed.problems.iter().filter_map(|scoped| scoped.problem.place);
        let columns: Vec<_> = places.map(|place| (place.line, place.column)).collect();
        let (_, first) = columns[0];
        assert!((18..22).contains(&first), "{first}");
        let expected: Vec<_> = (0..MAX_TOOLS as u32 - 1).map(|n| (1, first + 256 * n)).collect();
        assert_eq!(columns, expected);
    }
}
