//! Tool or hook in any form: a file, a list entry, or a definition in JSON.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::source::diagnostics::Diagnostics;
use crate::source::{capabilities, name, program};
use crate::tool::{Basis, Body, Disabled, Fact, HookScope, LimitRequest, Origin, Place, ScriptedHook, Tool};

use super::node::{Fields, Node};
use super::script::Lines;
use super::{Placed, hook, parameters, script};

/// Fields of a tool.
const TOOL_FIELDS: [&str; 8] =
    ["parameters", "script", "component", "function", "timeout_ms", "async", "capabilities", "limits"];
/// Fields of a hook.
const HOOK_FIELDS: [&str; 7] = ["event", "priority", "when", "script", "timeout_ms", "capabilities", "limits"];
/// Fields of a tool or hook in a list. A file has its name and its body for them.
const NAME_FIELDS: [&str; 2] = ["name", "description"];

/// Tool or hook that is being read.
pub(super) struct Entry {
    /// Label in the format's words, such as `tools[0]`.
    label: String,
    name: String,
    description: String,
    place: Option<Place>,
    fields: Fields,
    /// Known fields, for suggestions.
    known: Vec<&'static str>,
    /// Origin, before its unknown fields are added.
    origin: Origin,
}

impl Entry {
    /// Creates the entry for a separate file.
    pub(super) fn of_file(label: &str, name: String, body: &str, fields: Fields, origin: Origin) -> Self {
        let place = Some(Place { line: 1, column: 1 });
        let description = body.trim().to_owned();
        Self { label: label.to_owned(), name, description, place, fields, known: Vec::new(), origin }
    }

    /// Creates the entry for a list item or a definition.
    pub(super) fn of_node(label: String, node: Node, origin: Origin, report: &mut Diagnostics) -> Option<Self> {
        let mut fields = report.parsed(node.fields(&label))?;
        let text = |node: Node, field: &str| node.text(&format!("{label}.{field}"));
        let name = report.parsed(fields.read("name", text));
        let description = report.parsed(fields.read("description", text))?.unwrap_or_default().trim().to_owned();
        let (place, name) = (fields.place, name?.unwrap_or_default());
        Some(Self { label, name, description, place, fields, known: NAME_FIELDS.to_vec(), origin })
    }

    /// Reads the entry as a tool.
    pub(super) fn tool(mut self, file: &Lines<'_>, report: &mut Diagnostics) -> Option<Placed<Tool>> {
        let owner = self.enter("tool", &TOOL_FIELDS, report);
        let stated = self.fields.take("parameters");
        let component = self.component(&owner, report);
        // The types of a component may supply the parameters that the file leaves out.
        let parameters = (component.is_none() || stated.is_some()).then(|| parameters::schema(stated, &owner, report));
        let is_undescribed = self.description.is_empty();
        let background = report.parsed(self.fields.read("async", Node::boolean)).flatten().unwrap_or_default();
        let place = self.place;
        let mut tool = self.finish(&owner, background, file, report)?;
        name::warn_of_servers(&tool.name, place, report);
        tool.parameters = parameters;
        if let Some(body) = component {
            if !matches!(tool.body, Body::Absent) {
                report
                    .invalid(place, format!("{owner}: script and component are both stated: a tool runs one of them"));
            }
            if background {
                report.invalid(place, format!("{owner}: async is for scripts, and this tool runs a component"));
            }
            (tool.body, tool.disabled) = (body, None);
            tool.description = tool.description.filter(|_| !is_undescribed);
        } else {
            if background {
                tool.interface.safety.is_concurrency_safe = Fact { value: true, basis: Basis::Declared };
            }
            if matches!(tool.body, Body::Absent) {
                report.warn_at(place, "it has neither `script` nor `component`, so no call can run it");
            }
        }
        Some(Placed { value: tool, place })
    }

    /// Reads the component beside the file that a tool runs, with the function in it, if one is stated.
    fn component(&mut self, owner: &str, report: &mut Diagnostics) -> Option<Body> {
        let text = |field: &str, fields: &mut Fields, report: &mut Diagnostics| {
            let node = fields.take(field)?;
            let place = node.place;
            let text = report.parsed(node.text(field))?;
            if text.trim().is_empty() {
                report.invalid(place, format!("{owner}: {field} is empty"));
            }
            Some((text, place))
        };
        let component = text("component", &mut self.fields, report);
        let function = text("function", &mut self.fields, report);
        let Some((component, place)) = component else {
            if let Some((_, place)) = function {
                report.invalid(place, format!("{owner}: function is one of a component: name its file in `component`"));
            }
            return None;
        };
        if !capabilities::beside(&component) {
            let message =
                format!("{owner}: component {component:?} is not beside this file; name a file in its folder or below");
            report.invalid(place, message);
        }
        let folder = self.origin.path.parent().unwrap_or(Path::new("/"));
        let program = program::locate(&folder.join(&component));
        let argv = std::iter::once(component).chain(function.map(|(function, _)| function)).collect();
        Some(Body::Command { program, argv, command_line: None })
    }

    /// Reads the entry as a hook.
    pub(super) fn hook(mut self, file: &Lines<'_>, report: &mut Diagnostics) -> Option<Placed<ScriptedHook>> {
        let owner = self.enter("hook", &HOOK_FIELDS, report);
        let event = hook::event(&mut self.fields, &self.label, &owner, report);
        let priority = report.parsed(self.fields.read("priority", hook::priority)).flatten().unwrap_or_default();
        let when = report.parsed(self.fields.read("when", hook::when)).map(Option::unwrap_or_default);
        let place = self.place;
        let tool = self.finish(&owner, false, file, report)?;
        if matches!(tool.body, Body::Absent) {
            report.invalid(place, format!("{owner}: script is required"));
        }
        let tool = Tool { disabled: None, ..tool };
        let value = ScriptedHook { tool, event: event?, priority, when: when?, scope: HookScope::default() };
        report.sound().then_some(Placed { value, place })
    }

    /// Starts to read the entry, checks its name, and returns the prefix of its messages.
    fn enter(&mut self, noun: &str, known: &[&'static str], report: &mut Diagnostics) -> String {
        self.known.extend(known);
        let owner = format!("{noun} {:?}", name::shortened(&self.name));
        report.enter(format!("{owner}: "));
        if self.name.trim().is_empty() {
            report.invalid(self.place, format!("{}.name cannot be empty", self.label));
        } else if let Err(wrong) = name::check_length(&self.name) {
            report.invalid(self.place, format!("{owner}: {wrong}"));
        }
        owner
    }

    /// Reads the fields that tools and hooks share. Every field is read, so that each fault is reported.
    fn finish(self, owner: &str, background: bool, file: &Lines<'_>, report: &mut Diagnostics) -> Option<Tool> {
        let Self { name, description, mut fields, known, mut origin, .. } = self;
        let script = fields.take("script");
        let place_of_script = script.as_ref().and_then(|node| node.place);
        let source = report.parsed(script.map(|node| node.text("script")).transpose()).flatten();
        let timeout = fields.take("timeout_ms");
        let place_of_timeout = timeout.as_ref().and_then(|node| node.place);
        let timeout = report.parsed(timeout.map(|node| node.integer("timeout_ms")).transpose()).flatten();
        let deadline = match timeout.map(u64::try_from) {
            None | Some(Ok(0)) => None,
            Some(Ok(millis)) => Some(Duration::from_millis(millis)),
            Some(Err(_)) => {
                report.invalid(place_of_timeout, format!("{owner} timeout_ms must be >= 0"));
                None
            }
        };
        let folder = origin.path.parent().unwrap_or(Path::new("/"));
        let stated = fields.take("capabilities");
        let requested = read_part(stated, owner, |stated| capabilities::scripts(stated, folder), report);
        let limits = read_part(fields.take("limits"), owner, capabilities::limits, report);
        for (key, node) in fields.rest() {
            report.unknown_at(key.place, "", &key.name, &known);
            origin.unknown.insert(key.name, node.json());
        }
        let (Some(requested), Some(limits), true) = (requested, limits, report.sound()) else { return None };
        let script = source.filter(|source| !source.trim().is_empty());
        let (body, disabled) = match script {
            Some(source) => (Body::Script(Arc::new(script::read(source, place_of_script, file, background))), None),
            None => {
                let why = format!("{owner} is configured but no handler has been registered");
                (Body::Absent, Some(Disabled { field: "script", reason: why }))
            }
        };
        Some(Tool {
            description: Some(if description.is_empty() { name.clone() } else { description }),
            requested,
            limits: LimitRequest { deadline, ..limits },
            disabled,
            ..Tool::new(name, body, origin)
        })
    }
}

/// Reads a field that is the same in every format, and adds each fault at the part of the field that it is about.
fn read_part<T>(
    node: Option<Node>,
    owner: &str,
    read: impl FnOnce(Option<Value>) -> Result<T, Vec<String>>,
    report: &mut Diagnostics,
) -> Option<T> {
    let add = |fault: String| {
        let place = node.as_ref().and_then(|node| node.place_of(&fault));
        report.invalid(place, format!("{owner}: {fault}"));
    };
    read(node.clone().map(Node::json)).map_err(|faults| faults.into_iter().for_each(add)).ok()
}
