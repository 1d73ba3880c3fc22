//! Facts of tools in words, for every command that shows tools: state, requests, grants, source, limits. All text of a tool is
//! made inert.

use serde_json::Value;
use toolcrib::policy::named_requests;
use toolcrib::tool::{Basis, Capabilities, FileRequest, Glob, Limits, NetworkRequest, Row, SecretRequest};
use toolcrib::{Availability, Runtime, Tool};
use toolcrib_base::parse::size_in_words;
use toolcrib_base::render;
use toolcrib_packages::builtin;
use toolcrib_settings::trust::ceilings;

/// Returns the reason if a tool cannot be called.
pub fn disabled<'r>(runtime: &'r Runtime, tool: &Tool) -> Option<&'r str> {
    match runtime.availability(&tool.name)? {
        Availability::Disabled { reason, .. } | Availability::Unusable { reason } => Some(reason),
        _ => None,
    }
}

/// Returns the capabilities that a tool requests, with and without names.
pub fn needs(tool: &Tool) -> Vec<String> {
    let requested = &tool.requested;
    let files = match &requested.files {
        FileRequest::Workspace(access) => Some(access.as_str().to_owned()),
        _ => None,
    };
    let network = (requested.network == NetworkRequest::Workspace).then(|| "net".to_owned());
    let services = [("exec", &requested.exec), ("call", &requested.tools)];
    let services = services.into_iter().filter(|(_, names)| names.iter().any(Glob::is_everything));
    let named = named_requests(tool).into_iter().filter(|request| !request.starts_with("limit:"));
    files.into_iter().chain(network).chain(services.map(|(name, _)| name.to_owned())).chain(named).collect()
}

/// Joins capabilities on one line.
pub fn permissions(granted: &[String]) -> String {
    if granted.is_empty() { "nothing".to_owned() } else { render::one_line(&granted.join(", ")) }
}

/// Names the source of a tool, briefly.
pub fn source(tool: &Tool) -> String {
    let path = &tool.origin.path;
    if builtin::holds(path) {
        return builtin::LABEL.to_owned();
    }
    // A stored bundle is named by its digest; the beginning is enough here.
    let stored = path.ancestors().find_map(|path| {
        let digest = path.file_name()?.to_str()?.strip_prefix("sha256-")?.strip_suffix(".tar")?;
        (digest.len() == 64 && digest.is_ascii()).then(|| format!("bundle {}…", &digest[..12]))
    });
    stored.unwrap_or_else(|| render::one_line(&render::from_here(path).to_string_lossy()))
}

/// Returns the first sentence of the description.
pub fn first_sentence(tool: &Tool) -> String {
    let description = render::one_line(tool.description.as_deref().unwrap_or_default());
    let first = description.split_inclusive(". ").next().unwrap_or_default();
    first.trim_end_matches(['.', ' ']).to_owned()
}

/// Returns the granted capabilities of a tool.
pub fn granted(runtime: &Runtime, tool: &Tool) -> Vec<String> {
    runtime.grant(&tool.name).map(|grant| grant.granted()).unwrap_or_default()
}

/// Returns `true` unless a fact is an empty default.
pub fn is_informative(row: &Row) -> bool {
    let empty = match &row.value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    row.basis != Basis::Default || !empty
}

/// Names a basis.
pub fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Declared => "declared",
        Basis::Inferred => "inferred",
        Basis::Default => "default",
    }
}

/// Formats the value of a fact on one line.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => render::one_line(text),
        other => render::one_line(&other.to_string()),
    }
}

/// Lists the requested capabilities.
pub fn requested(asked: &Capabilities) -> String {
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

/// Formats the limits of a tool.
pub fn limits(limits: &Limits) -> String {
    let fuel = limits.fuel.map(|fuel| format!(", {fuel} units of fuel")).unwrap_or_default();
    let [memory, output, disk] = [limits.memory, limits.stdout, limits.disk_bytes as usize].map(size_in_words);
    let (deadline, entries, handles) = (limits.deadline, limits.disk_entries, limits.handles);
    format!(
        "{deadline:?}, {memory} of memory, {output} of output, {disk} and {entries} entries to disk, {handles} handles{fuel}"
    )
}
