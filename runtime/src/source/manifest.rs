//! Dialect A: a `tools.json` of programs. Its checks keep the order and the words of the format's own reference; what
//! the format has no word for stands in three objects, `capabilities`, `limits` and `interface`.

mod command;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::schema::Strict;
use crate::tool::{Body, Format, LimitRequest, Origin, Tool};

use super::document::without_mark;
use super::interface::Statement;
use super::reading::Reading;
use super::report::Report;
use super::shape::{kind, members};
use super::{environment, extension, name, program};

const ROOT_KEYS: &[&str] = &["tools"];
const ENTRY_KEYS: &[&str] = &[
    "name",
    "description",
    "schema",
    "command",
    "timeoutSec",
    "envPassthrough",
    "capabilities",
    "limits",
    "interface",
];
/// What an entry says of its tool in its own words, and not a second time in `interface`.
const ENTRYS_OWN: [&str; 2] = ["name", "description"];

#[derive(Deserialize)]
#[serde(expecting = "an object with `tools`")]
struct Manifest {
    tools: Option<Vec<Entry>>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object for a tool")]
struct Entry {
    name: Option<String>,
    description: Option<String>,
    schema: Option<Value>,
    command: Option<Vec<String>>,
    timeout_sec: Option<i64>,
    env_passthrough: Option<Vec<String>>,
    capabilities: Option<Strict>,
    limits: Option<Strict>,
    interface: Option<Strict>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// The tools of a manifest and every problem in it. `path` is what was asked for, `place` the same from the root.
pub(super) fn read(path: &Path, place: &Path, text: Arc<str>) -> Reading {
    let mut report = Report::new(path);
    let manifest: Manifest = match serde_json::from_str(without_mark(&text)) {
        Ok(manifest) => manifest,
        Err(error) => {
            report.error(&format!("parse manifest: {error}"));
            return Reading::of(None, report);
        }
    };
    report.unknown("", &manifest.unknown, ROOT_KEYS);
    let folder = place.parent().unwrap_or(Path::new("/"));
    let mut names = HashSet::new();
    let mut tools = Vec::new();
    for (index, entry) in manifest.tools.unwrap_or_default().into_iter().enumerate() {
        let origin = Origin {
            format: Format::Manifest,
            path: Arc::from(place),
            index: Some(index),
            text: Some(text.clone()),
            unknown: Map::new(),
        };
        tools.extend(tool(&mut report, origin, index, entry, &mut names, folder));
    }
    if tools.is_empty() && report.problems.is_empty() {
        report.warn("`tools` is empty: there is nothing to call");
    }
    Reading::of(tools, report)
}

/// One entry, checked in the format's order: name, duplicate, command, environment, `command[0]`, then what is ours.
/// Every field is checked, so that the first error is the format's and none stays untold.
fn tool(
    report: &mut Report,
    origin: Origin,
    index: usize,
    entry: Entry,
    names: &mut HashSet<String>,
    folder: &Path,
) -> Option<Tool> {
    let name = entry.name.unwrap_or_default();
    report.enter(match name.trim().is_empty() {
        true => format!("tool[{index}]: "),
        false => format!("tool[{index}] {:?}: ", name::shortened(&name)),
    });
    report.that(!name.trim().is_empty(), "name is required");
    report.that(name.trim().is_empty() || names.insert(name.clone()), "duplicate name");
    let argv = entry.command.unwrap_or_default();
    report.that(!argv.is_empty(), "command must have at least program name");
    let env = environment::normalise("envPassthrough", entry.env_passthrough.unwrap_or_default());
    let env = report.value(env).unwrap_or_default();
    let program = argv.first().and_then(|first| report.value(command::resolve(first, folder)));
    if let Some(schema) = entry.schema.as_ref().filter(|schema| !schema.is_object()) {
        report.error(&format!("schema must be an object, found {}", kind(schema)));
    }
    let requested = report.value(extension::capabilities(entry.capabilities.map(Strict::value), env, folder));
    let limits = report.value(extension::limits(entry.limits.map(Strict::value)));
    let mut stated = Statement::default();
    if let Some(fields) = entry.interface.and_then(|fields| report.value(members("interface", fields.value()))) {
        stated.read("interface", fields, &ENTRYS_OWN, report);
    }
    let seconds = entry.timeout_sec.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    let deadline = report.value(stated.deadline(seconds));
    let parameters = report.value(stated.parameters(entry.schema));
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
    let body = Body::Command { program: program::locate(&program), argv: command::guest_argv(argv) };
    Some(Tool {
        description: entry.description,
        parameters: parameters?,
        requested,
        limits: LimitRequest { deadline: deadline?, ..limits },
        interface: stated.interface,
        ..Tool::new(name, body, Origin { unknown, ..origin })
    })
}
