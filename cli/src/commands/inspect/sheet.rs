//! Text output of `inspect`: the tool, the capabilities of its program and its facts by partition. All text of the tool is
//! made inert.

use std::io::{self, IsTerminal};

use serde_json::Value;
use toolcrib::tool::{Basis, Capabilities, FileRequest, Limits, NetworkRequest, Row, SecretRequest};

use crate::builtin;
use crate::options::size_in_words;
use crate::render::{self, Tone};
use crate::trust::ceilings;

use super::component::Component;
use super::{Details, disabled, function, script};

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
    lines.extend(tool.description.as_deref().map(render::one_line));
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
        [partition.to_owned(), row.field.to_owned(), basis(row.basis).to_owned(), shown(&row.value)]
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

fn is_informative(row: &Row) -> bool {
    let empty = match &row.value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    row.basis != Basis::Default || !empty
}

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Declared => "declared",
        Basis::Inferred => "inferred",
        Basis::Default => "default",
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => render::one_line(text),
        other => render::one_line(&other.to_string()),
    }
}

fn requested(asked: &Capabilities) -> String {
    let mut words = ceilings(asked);
    if let FileRequest::Folders(folders) = &asked.files {
        words.extend(folders.iter().map(|it| format!("{}:{}", it.access.as_str(), it.path.display())));
    }
    words.extend(asked.env.iter().map(|name| format!("env:{name}")));
    words.extend(asked.secrets.iter().map(SecretRequest::capability));
    if let NetworkRequest::Destinations(destinations) = &asked.network {
        words.extend(destinations.iter().map(|destination| format!("net:{destination}")));
    }
    words.extend(asked.exec.iter().filter(|name| !name.is_everything()).map(|name| format!("exec:{name}")));
    words.extend(asked.delegate.then(|| "delegate".to_owned()));
    words.extend(asked.meta.then(|| "meta".to_owned()));
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

fn limits(limits: &Limits) -> String {
    let fuel = limits.fuel.map(|fuel| format!(", {fuel} units of fuel")).unwrap_or_default();
    let [memory, output, disk] = [limits.memory, limits.stdout, limits.disk_bytes as usize].map(size_in_words);
    let (deadline, entries, handles) = (limits.deadline, limits.disk_entries, limits.handles);
    format!(
        "{deadline:?}, {memory} of memory, {output} of output, {disk} and {entries} entries to disk, {handles} handles{fuel}"
    )
}
