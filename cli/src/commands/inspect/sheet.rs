//! Text output of `inspect`: the tool, its program's capabilities and its facts by partition. All text of the tool is
//! made inert.

use std::io::{self, IsTerminal};

use serde_json::Value;
use toolcrib::tool::{Basis, Body, Builtin, Row};
use toolcrib_base::render::{self, Tone};
use toolcrib_packages::builtin;
use toolcrib_sources::tool_facts::{basis, disabled, is_informative, limits, requested, shown};

use super::component::Component;
use super::{Details, function, script};

const FACTS: [&str; 4] = ["PARTITION", "FIELD", "BASIS", "VALUE"];

/// Formats the details of a tool; `all` includes empty defaults.
pub(super) fn of(details: &Details<'_>, all: bool) -> String {
    let tables = details.program.iter().flat_map(Component::tables);
    std::iter::once(head(details)).chain(tables).chain([facts(details, all)]).collect::<Vec<_>>().join("\n\n")
}

fn head(details: &Details<'_>) -> String {
    let Details { runtime, tool, program } = details;
    let place = |path| render::one_line(&render::from_here(path).to_string_lossy());
    let mut lines = vec![render::one_line(&tool.name)];
    lines.extend(tool.description.as_deref().map(render::inert).map(|text| text.trim_end().to_owned()));
    let mut add = |label: &str, text: String| lines.push(format!("  {label:10}{text}"));
    let index = tool.origin.index.map(|index| format!(" (tool[{index}])")).unwrap_or_default();
    let source = match builtin::holds(&tool.origin.path) {
        true => format!("{}, as trusted as this program", builtin::LABEL),
        false => place(&tool.origin.path),
    };
    add("source", source + &index);
    for (label, text) in program.iter().flat_map(Component::lines) {
        add(label, text);
    }
    if let Some(function) = function(tool) {
        add("function", render::one_line(&function.to_string()));
    }
    if let Some(script) = script(tool) {
        let place = script.place.map(|place| format!(", from line {} on", place.line)).unwrap_or_default();
        let background = if script.background { ", runs in the background" } else { "" };
        add("script", format!("{}{place}{background}", render::counted(script.source.len(), "byte")));
        add("digest", script.digest.clone());
    }
    if let Body::Remote(remote) = &tool.body {
        add("server", format!("{}, tool `{}`", remote.server.address, render::one_line(&remote.name)));
        add("digest", remote.digest.clone());
    }
    if let Some(skill) = tool.body.skill() {
        let scripts = skill.scripts().count();
        let bytes = skill.files.iter().map(|file| file.bytes).sum::<u64>();
        let (files, scripts) = (render::counted(skill.files.len(), "file"), render::counted(scripts, "script"));
        add("skill", format!("{files} of {bytes} bytes, {scripts} for the sandbox"));
        if let Some(stated) = skill.front_matter.get("allowed-tools") {
            add("allowed", format!("{}, which grants nothing", render::one_line(&stated.to_string())));
        }
        add("digest", skill.digest.clone());
    }
    if let Body::Command { command_line, .. } = &tool.body {
        let arguments = tool.body.arguments();
        if !arguments.is_empty() {
            add("argv", render::one_line(&Value::from(arguments).to_string()));
        }
        if let Some(stdin) = command_line.as_ref().and_then(|line| line.stdin.as_ref()) {
            add("stdin", render::one_line(&stdin.to_string()));
        }
        if let Some(form) = command_line.as_ref().and_then(|line| line.output) {
            add("output", form.as_str().to_owned());
        }
    }
    if let Body::Builtin(Builtin::RunCode) = &tool.body {
        let interpreters = runtime.interpreters().map(|(language, file)| {
            format!("{}: {}", render::one_line(language), file.map_or_else(|| builtin::LABEL.to_owned(), place))
        });
        add("programs", interpreters.collect::<Vec<_>>().join(", "));
    }
    let hooks: Vec<_> =
        super::hooks(runtime, tool).map(|hook| format!("{} ({})", hook.tool.name, hook.event)).collect();
    if !hooks.is_empty() {
        add("hooks", render::one_line(&hooks.join(", ")));
    }
    add("requests", render::one_line(&requested(&tool.requested)));
    if let Some(grant) = runtime.grant(&tool.name) {
        let granted = grant.granted();
        add("granted", if granted.is_empty() { "nothing".into() } else { render::one_line(&granted.join(", ")) });
        let denied: Vec<_> = grant.denied().iter().map(|denial| denial.capability.as_str()).collect();
        if !denied.is_empty() {
            add("denied", render::one_line(&denied.join(", ")));
        }
    }
    if let Some(limited) = runtime.limits(&tool.name) {
        add("limits", limits(limited));
    }
    if let Some(why) = disabled(runtime, tool) {
        add("disabled", render::one_line(why));
    }
    lines.join("\n")
}

/// Formats the table of facts, with defaults dimmed.
fn facts(details: &Details<'_>, all: bool) -> String {
    let rows: Vec<Row> = details.tool.rows().into_iter().filter(|row| all || is_informative(row)).collect();
    let mut last = "";
    let cells = rows.iter().map(|row| {
        let partition = if row.partition == last { "" } else { row.partition };
        last = row.partition;
        let is_above = row.field == "description" && row.value.as_str() == details.tool.description.as_deref();
        let value = if is_above { "as above".to_owned() } else { shown(&row.value) };
        [partition.to_owned(), row.field.to_owned(), basis(row.basis).to_owned(), value]
    });
    let table = render::table(FACTS, cells);
    let terminal = io::stdout().is_terminal();
    let quiet = std::iter::once(false).chain(rows.iter().map(|row| row.basis == Basis::Default));
    let lines = table.lines().zip(quiet).map(|(line, quiet)| match quiet {
        true => render::paint(Tone::Quiet, line, terminal).into_owned(),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
