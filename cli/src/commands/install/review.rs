//! Text and JSON of a release: its requests, the most far-reaching first, with the imports that prove them, and the
//! differences from the installed one. All text of a bundle is printed inert.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcrib_base::render::{inert, listed, one_line, shortened};
use toolcrib_packages::builtin;
use toolcrib_packages::install::{Case, Change, LockedBundle, Release, ReleasedTool, Verdict, difference, signer_name};
use toolcrib_settings::trust::ranked;

/// Maximum number of tools that are listed with their descriptions.
const MAX_TOOLS: usize = 100;
/// Maximum characters of a description in the tool list.
const MAX_DESCRIPTION: usize = 200;
/// Maximum lines of one tool on a server, whose whole definition is pinned.
const MAX_LINES: usize = 40;
/// Interfaces that prove a request, by the kind of the request.
const PROOFS: [(&str, &[&str]); 9] = [
    ("programs", &["toolcrib:code/"]),
    ("secret", &["wasi:http/", "toolcrib:tool/secrets"]),
    ("net", &["wasi:http/"]),
    ("read", &["wasi:filesystem/"]),
    ("write", &["wasi:filesystem/"]),
    ("env", &["wasi:cli/environment"]),
    ("model", &["toolcrib:tool/model"]),
    ("call", &["toolcrib:tool/tools"]),
    ("cache", &["toolcrib:tool/cache", "wasi:keyvalue/"]),
];

/// Prefix of requests for higher limits.
const LIMIT: &str = "limit:";

/// Release with its comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Review<'a> {
    pub(super) release: &'a Release,
    pub(super) case: &'a Case<'a>,
    pub(super) verdict: &'a Verdict,
    /// Release that is replaced, if its file is stored.
    pub(super) before: Option<&'a Release>,
    /// Requests that the user decides about.
    pub(super) undecided: &'a [String],
}

impl Review<'_> {
    /// Formats the review for a person.
    pub(super) fn text(&self) -> String {
        let LockedBundle { name, source, version, digest, signers, .. } = &self.case.candidate.bundle;
        let mut text = String::new();
        let mut line = |line: &str| {
            text += line;
            text.push('\n');
        };
        let version = version.as_deref().map(one_line);
        let before = self.case.pinned.and_then(|pinned| pinned.version.as_deref()).map(one_line);
        let is_same = self.case.pinned.is_some_and(|pinned| pinned.digest == *digest);
        let heading = match (is_same, self.verdict.is_new, before) {
            (true, ..) => "is installed".to_owned(),
            (_, true, _) => "is not installed".to_owned(),
            (.., before) => format!("would replace {}", before.as_deref().unwrap_or("the installed release")),
        };
        let version = version.map_or_else(String::new, |version| format!(" {version}"));
        line(&format!("{}{version} {heading}.", one_line(name)));
        line("");
        line(&format!("source  {}", one_line(source)));
        if self.release.name != *name {
            line(&format!("name    {}, as it names itself", one_line(&self.release.name)));
        }
        line(&format!("digest  {digest}"));
        if let Some(package) = &self.release.package {
            line(&format!("package {}", one_line(package)));
        }
        if let Some(licenses) = &self.release.licenses {
            line(&format!("licence {}", one_line(licenses)));
        }
        line(&match signers.as_slice() {
            [] => "signer  none verified".to_owned(),
            some => format!("signer  {}", one_line(&names_of(some))),
        });
        self.requests().iter().for_each(|text| line(text));
        self.tools().iter().for_each(|text| line(text));
        self.changes().iter().for_each(|text| line(text));
        text.trim_end().to_owned()
    }

    /// Describes the release for machines.
    pub(super) fn json(&self) -> Value {
        let Case { candidate, pinned, operation, .. } = self.case;
        let entry = |bundle: &LockedBundle| {
            json!({
                "version": bundle.version,
                "digest": bundle.digest,
                "signers": bundle.signers,
            })
        };
        let mut release = entry(&candidate.bundle);
        release["package"] = json!(self.release.package);
        release["licenses"] = json!(self.release.licenses);
        let requests = ranked(self.undecided).into_iter().map(|(request, phrase)| {
            let tools: Vec<&str> = self.asking(request).map(|tool| tool.name.as_str()).collect();
            json!({ "request": request, "phrase": phrase, "tools": tools, "imports": self.imports(request) })
        });
        let changes = self.verdict.changes.iter().map(|change| {
            let mut object = json!(change);
            if let Some(lines) = self.lines(change) {
                object["difference"] = json!(lines);
            }
            object
        });
        let on_server = self.release.tools.iter().filter(|tool| tool.is_remote).map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "schema": tool.schema,
                "definition": tool.definition,
            })
        });
        json!({
            "name": candidate.bundle.name,
            "operation": operation.as_str(),
            "serverTools": on_server.collect::<Vec<_>>(),
            "source": candidate.bundle.source,
            "installed": pinned.map(entry),
            "release": release,
            "verdict": self.verdict.as_str(),
            "requests": requests.collect::<Vec<_>>(),
            "changes": changes.collect::<Vec<_>>(),
            "refusals": self.verdict.refusals,
            "overridden": self.verdict.overridden,
        })
    }

    fn requests(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let ceilings = self.ceilings();
        let heading = match (self.undecided.is_empty() && ceilings.is_empty(), self.verdict.is_new) {
            (true, true) => "\nIt asks for no permissions.",
            (true, false) => return lines,
            (false, _) if self.undecided.is_empty() => "\nWith your flags it can also:",
            (false, false) if self.verdict.changes.iter().any(Change::is_new_capability) => "\nNew: it asks to",
            (false, _) => "\nIt asks to:",
        };
        lines.push(heading.to_owned());
        for (request, phrase) in ranked(self.undecided) {
            lines.push(format!("  {phrase}"));
            let tools: Vec<String> = self.asking(request).map(|tool| one_line(&tool.name)).collect();
            let proof = match self.imports(request) {
                Some(imports) if imports.is_empty() => "no import of its program can do this".to_owned(),
                Some(imports) => format!("imports {}", one_line(&listed(&imports))),
                None if request.starts_with(LIMIT) => "needs no import".to_owned(),
                None if self.asking(request).all(|tool| tool.is_remote) => "runs on its server".to_owned(),
                None => "a script, which has no imports".to_owned(),
            };
            lines.push(format!("      {request}: {}; {proof}", listed(&tools), request = one_line(request)));
        }
        if !ceilings.is_empty() && !self.undecided.is_empty() {
            lines.push("\nWith your flags it can also:".to_owned());
        }
        for (phrase, tools) in ceilings {
            lines.push(format!("  {phrase}"));
            lines.push(format!("      {}", listed(&tools)));
        }
        lines
    }

    /// Lists the requests without a name, with the tools that have them: all tools of a new bundle, and the new ones of another.
    fn ceilings(&self) -> BTreeMap<&str, Vec<String>> {
        let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for tool in self.release.tools.iter().filter(|tool| self.is_new(&tool.name)) {
            tool.ceilings.iter().for_each(|phrase| all.entry(phrase).or_default().push(one_line(&tool.name)));
        }
        all
    }

    /// Returns `true` if the bundle had no tool of this name before.
    fn is_new(&self, name: &str) -> bool {
        self.verdict.is_new
            || self.verdict.changes.iter().any(|change| match change {
                Change::NewTool { tool } | Change::RenamedTool { tool, .. } => tool == name,
                _ => false,
            })
    }

    /// Lists the tools of a bundle that is not installed, and the built-in ones that new tools replace.
    fn tools(&self) -> Vec<String> {
        let mut lines = if self.verdict.is_new { self.listed_tools() } else { Vec::new() };
        let new = self.release.tools.iter().map(|tool| tool.name.as_str()).filter(|name| self.is_new(name));
        let replaced = builtin::names_like(new);
        if !replaced.is_empty() {
            lines.push(format!("\nIn a directory without a project, they replace the built-in {}.", listed(&replaced)));
        }
        lines
    }

    fn listed_tools(&self) -> Vec<String> {
        let tools = &self.release.tools;
        let mut lines = vec!["\nTools:".to_owned()];
        for tool in tools.iter().take(MAX_TOOLS) {
            match tool.is_remote {
                true => lines.extend(pinned_lines(tool)),
                false => {
                    let description = one_line(&tool.description);
                    let description = shortened(&description, MAX_DESCRIPTION);
                    lines.push(format!("  {}  {description}", one_line(&tool.name)).trim_end().to_owned());
                }
            }
        }
        if let Some(more @ 1..) = tools.len().checked_sub(MAX_TOOLS) {
            lines.push(format!("  … and {more} more"));
        }
        lines
    }

    fn changes(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.verdict.is_new {
            return lines;
        }
        for change in &self.verdict.changes {
            let sentence = match change {
                Change::Version { .. } | Change::NewCapability { .. } => continue,
                Change::DroppedCapability { capability } => format!("no longer asked for: {}", one_line(capability)),
                Change::NewUse { tool, capability } => {
                    let phrase = ranked(std::slice::from_ref(capability)).into_iter().map(|(_, phrase)| phrase);
                    format!("`{}` can now {}, as granted before", one_line(tool), phrase.collect::<String>())
                }
                Change::NewTool { tool } => format!("tool `{}` is new", one_line(tool)),
                Change::RemovedTool { tool } => format!("tool `{}` was removed", one_line(tool)),
                Change::RenamedTool { from, tool } => {
                    let from = one_line(from);
                    format!(
                        "tool `{from}` is now `{}`: rules and approvals for `{from}` no longer apply",
                        one_line(tool)
                    )
                }
                Change::DescriptionChanged { tool } => format!("the description of `{}` changed", one_line(tool)),
                Change::SchemaChanged { tool } => format!("the schema of `{}` changed", one_line(tool)),
                Change::DefinitionChanged { tool } => {
                    format!("the definition of `{}` changed", one_line(tool))
                }
                Change::AddedSigner { signer } => {
                    format!("another signer, not pinned: {}", one_line(signer_name(signer)))
                }
            };
            if lines.is_empty() {
                lines.push("\nChanges:".to_owned());
            }
            lines.push(format!("  {sentence}"));
            let difference = self.lines(change).into_iter().flatten();
            lines.extend(difference.map(|line| format!("    {}", inert(&line))));
        }
        if lines.is_empty() && !self.verdict.is_installed && self.undecided.is_empty() {
            lines.push("\nDescriptions, schemas and permissions are the same.".to_owned());
        }
        lines
    }

    /// Lines of the difference that a change describes.
    fn lines(&self, change: &Change) -> Option<Vec<String>> {
        let (name, part): (&str, fn(&ReleasedTool) -> &str) = match change {
            Change::DescriptionChanged { tool } => (tool, |tool| &tool.description),
            Change::SchemaChanged { tool } => (tool, |tool| &tool.schema),
            Change::DefinitionChanged { tool } => (tool, |tool| &tool.definition),
            Change::NewTool { tool } if !self.verdict.is_new => (tool, |tool| &tool.description),
            _ => return None,
        };
        let after = self.release.tool(name).map(part)?;
        let before = self.before.and_then(|before| before.tool(name)).map(part).unwrap_or_default();
        Some(difference(before, after))
    }

    /// Tools that have a request.
    fn asking<'r>(&'r self, request: &'r str) -> impl Iterator<Item = &'r ReleasedTool> {
        self.release.tools.iter().filter(move |tool| tool.requests.iter().any(|one| one == request))
    }

    /// Imports that prove a request; `None` if no program has it.
    fn imports(&self, request: &str) -> Option<Vec<String>> {
        let kind = request.split(':').next().unwrap_or_default();
        let proofs = PROOFS.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, proofs)| proofs);
        let programs: Vec<&Vec<String>> = self.asking(request).filter_map(|tool| tool.imports.as_ref()).collect();
        if programs.is_empty() || request.starts_with(LIMIT) {
            return None;
        }
        let proves = |import: &&String| proofs.iter().any(|proof| import.starts_with(proof));
        let mut found: Vec<String> = programs.into_iter().flatten().filter(proves).cloned().collect();
        found.sort();
        found.dedup();
        Some(found)
    }
}

/// Shows the definition of a tool on a server, which a model gets as it is.
fn pinned_lines(tool: &ReleasedTool) -> Vec<String> {
    let claims = tool.definition.lines().filter(|line| line.contains("as the server claims"));
    let parameters = parameters(&tool.schema);
    let all = tool.description.lines().chain(parameters.iter().map(String::as_str)).chain(claims);
    let mut lines: Vec<String> = std::iter::once(format!("  {}", one_line(&tool.name)))
        .chain(all.map(|line| format!("    {}", inert(line).trim_end())))
        .collect();
    if let Some(more @ 1..) = lines.len().checked_sub(MAX_LINES) {
        lines.truncate(MAX_LINES);
        lines.push(format!("    … and {more} more lines, which `--json` shows"));
    }
    lines
}

/// Shows each parameter of a schema on a line; a schema with other parts than usual is shown as it is.
fn parameters(schema: &str) -> Vec<String> {
    let as_it_is = || schema.lines().map(str::to_owned).collect();
    let Ok(Value::Object(parts)) = serde_json::from_str(schema) else { return as_it_is() };
    let Some(Value::Object(properties)) = parts.get("properties") else { return as_it_is() };
    let is_named = |value: &Value| value.as_str().is_some_and(|name| properties.contains_key(name));
    // A model reads every other part too.
    let is_usual = |(part, value): (&String, &Value)| match part.as_str() {
        "type" => value == "object",
        "properties" => true,
        "required" => value.as_array().is_some_and(|names| names.iter().all(is_named)),
        "additionalProperties" => value.is_boolean(),
        _ => false,
    };
    if !parts.iter().all(is_usual) {
        return as_it_is();
    }
    let required = parts.get("required").and_then(Value::as_array);
    let line = |(name, property): (&String, &Value)| {
        let is_required = required.is_some_and(|required| required.iter().any(|one| one == name));
        let required = if is_required { "required, " } else { "" };
        let text = |part: &str| property.get(part).and_then(Value::as_str);
        let has_words_alone =
            property.as_object().is_some_and(|parts| parts.keys().all(|part| part == "type" || part == "description"));
        match (text("type"), text("description")) {
            (Some(kind), Some(description)) if has_words_alone => format!("- {name} ({required}{kind}): {description}"),
            (Some(kind), None) if has_words_alone => format!("- {name} ({required}{kind})"),
            _ => format!("- {name}{}: {property}", if is_required { " (required)" } else { "" }),
        }
    };
    // A name or a description with a line break makes no line of its own.
    properties.iter().map(line).map(|line| one_line(&line)).collect()
}

/// Names signers.
fn names_of(signers: &[String]) -> String {
    signers.iter().map(|signer| signer_name(signer)).collect::<Vec<_>>().join(", ")
}
