//! Tools of a remote MCP server: one file with the server's address and the definitions that it stated when somebody agreed to
//! them. Reading it connects to nothing. Words of the server about the behavior of its tools are kept, and prove nothing.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::schema;
use crate::tool::{
    Body, Capabilities, Format, NetworkRequest, Origin, Placement, Remote, RemoteAddress, RemoteServer, SecretRequest,
    Tool, is_secret_name,
};

use super::diagnostics::{Diagnostics, Parsed};
use super::dialect::Dialect;
use super::document::{Candidate, from_root, without_mark};
use super::name;
use super::shape::members;

/// End of a file name in this dialect.
const EXTENSION: &str = ".mcp.json";
/// Name of the dialect.
const DIALECT: &str = "mcp-server";
/// Fields of the file.
const FIELDS: [&str; 5] = ["url", "revision", "secret", "prefix", "tools"];
/// Maximum length of a revision, a secret's name or a prefix, in characters.
const MAX_WORD: usize = 128;

/// File of a remote MCP server, `NAME.mcp.json`.
pub(super) struct McpServer;

impl Dialect for McpServer {
    fn matches_path(&self, path: &Path) -> bool {
        is_definition(path)
    }

    fn read(&self, candidate: &Candidate<'_>) -> Parsed {
        match candidate.text() {
            Ok(text) => parse(candidate.path(), text),
            Err(error) => Parsed::failed(candidate.path(), &format!("read server: {error}")),
        }
    }

    fn matches_entry(&self, file: &Path) -> bool {
        is_definition(file)
    }

    fn entry_form(&self) -> Option<&'static str> {
        Some("remote MCP server (`NAME.mcp.json`)")
    }
}

/// Returns `true` for a file whose name ends in `.mcp.json` and has more than that.
fn is_definition(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.strip_suffix(EXTENSION)).is_some_and(|stem| !stem.is_empty())
}

fn parse(path: &Path, text: Arc<str>) -> Parsed {
    let mut report = Diagnostics::new(path);
    let fields = schema::parse(without_mark(&text)).map_err(|error| format!("parse server: {error}"));
    let Some(mut fields) = report.value(fields.and_then(|value| members("the file", value))) else {
        return Parsed::of(None, report);
    };
    let tools = fields.shift_remove("tools");
    let prefix = report.value(word(fields.shift_remove("prefix"), "prefix")).flatten().unwrap_or_default();
    let Some(server) = server(&mut fields, &mut report) else { return Parsed::of(None, report) };
    report.unknown("", &fields, &FIELDS);
    let Some(Value::Array(entries)) = tools else {
        report.fatal("tools must be an array of the server's tools");
        return Parsed::of(None, report);
    };
    let absolute = from_root(path);
    let (server, requested) = (Arc::new(server.0), server.1);
    let (mut names, mut tools) = (HashSet::new(), Vec::with_capacity(entries.len()));
    for (index, entry) in entries.into_iter().enumerate() {
        let origin = Origin {
            index: Some(index),
            text: Some(text.clone()),
            ..Origin::of(Format::Other(DIALECT), absolute.clone())
        };
        report.enter(format!("tool[{index}]: "));
        let mark = report.mark();
        let stated = entry.get("name").and_then(Value::as_str).map(|name| format!("{prefix}{name}"));
        let tool = tool(entry, &prefix, &server, origin.clone(), &mut names, &mut report);
        tools.extend(match report.confine(mark) {
            None => tool.map(|tool| Tool { requested: requested.clone(), ..tool }),
            Some(unusable) => stated.and_then(name::usable).map(|name| Tool::broken(name, unusable, origin)),
        });
    }
    report.enter(String::new());
    if tools.is_empty() && report.problems.is_empty() {
        report.warn("`tools` is empty");
    }
    Parsed::of(tools, report)
}

/// Reads the server, and what each of its tools requests: its host, and the secret that it gets.
fn server(fields: &mut Map<String, Value>, report: &mut Diagnostics) -> Option<(RemoteServer, Capabilities)> {
    let url = report.value(word(fields.shift_remove("url"), "url"));
    let revision = report.value(word(fields.shift_remove("revision"), "revision"));
    let secret = report.value(word(fields.shift_remove("secret"), "secret"));
    let (url, revision, secret) = (url?, revision?, secret?);
    report.require(url.is_some(), "url is required: the address of the server");
    report.require(revision.is_some(), "revision is required: the revision of the protocol");
    let address: RemoteAddress =
        report.value(url?.parse().map_err(|error: crate::tool::RemoteAddressError| error.to_string()))?;
    if let Some(name) = secret.as_ref().filter(|name| !is_secret_name(name)) {
        report.error(&format!("secret {name:?} is not the name of a secret (must match [a-z0-9][a-z0-9_-]*)"));
        return None;
    }
    let placement = Placement::header("authorization", "Bearer {}");
    let placement = report.value(placement.map_err(|error| error.to_string()))?;
    let host = address.host().clone();
    let request = |name: &String| SecretRequest { name: name.clone(), host, placement };
    let requested = Capabilities {
        network: NetworkRequest::Destinations(vec![address.destination().clone()]),
        secrets: secret.as_ref().map(request).into_iter().collect(),
        declared: true,
        ..Capabilities::default()
    };
    Some((RemoteServer { address, revision: revision?, secret }, requested))
}

/// Reads a short text; `None` if it is absent.
fn word(value: Option<Value>, field: &str) -> Result<Option<String>, String> {
    let max = if field == "url" { usize::MAX } else { MAX_WORD };
    match value {
        None => Ok(None),
        Some(Value::String(text)) if text.chars().any(char::is_control) => {
            Err(format!("{field} has a control character"))
        }
        Some(Value::String(text)) if text.chars().count() <= max => Ok(Some(text)),
        Some(Value::String(_)) => Err(format!("{field} is longer than {max} characters")),
        Some(other) => Err(format!("{field} must be a string, found {}", toolcrib_foundation::json::kind(&other))),
    }
}

/// Reads one tool. The whole entry is pinned, with fields that mean nothing here.
fn tool(
    entry: Value,
    prefix: &str,
    server: &Arc<RemoteServer>,
    origin: Origin,
    names: &mut HashSet<String>,
    report: &mut Diagnostics,
) -> Option<Tool> {
    let fields = report.value(members("the entry", entry.clone()))?;
    let text = |field: &str| match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{field} must be a string")),
    };
    let (name, description) = (report.value(text("name"))?, report.value(text("description"))?);
    let Some(name) = name.filter(|name| !name.trim().is_empty()) else {
        report.error("name is required");
        return None;
    };
    let local = format!("{prefix}{name}");
    report.value(name::check_length(&local));
    if !names.insert(local.clone()) {
        report.fatal("duplicate name");
        return None;
    }
    let schema = |field: &str| match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(schema @ Value::Object(_)) => Ok(Some(schema.clone())),
        Some(_) => Err(format!("{field} must be an object")),
    };
    let (input, output) = (report.value(schema("inputSchema"))?, report.value(schema("outputSchema"))?);
    if !report.sound() {
        return None;
    }
    let unknown = ["title", "annotations"].iter().filter_map(|field| {
        let value = fields.get(*field)?;
        Some(((*field).to_owned(), value.clone()))
    });
    let origin = Origin { unknown: unknown.collect(), ..origin };
    let body = Body::Remote(Arc::new(Remote::new(server, name, entry)));
    let mut tool = Tool { description, parameters: input, ..Tool::new(local, body, origin) };
    tool.interface.schemas.output_schema.prove(output);
    let safety = &mut tool.interface.safety;
    // Nothing restrains what a server does with a call, whatever it states.
    safety.is_destructive.prove(true);
    safety.is_open_world.prove(true);
    safety.sandbox_profile.prove("remote".to_owned());
    Some(tool)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::source::{load, load_usable};

    fn written(content: &Value) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mcp.json");
        std::fs::write(&path, content.to_string()).unwrap();
        (folder, path)
    }

    fn file(tools: Value) -> Value {
        json!({ "url": "https://a.example/mcp", "revision": "2025-11-25", "secret": "a", "tools": tools })
    }

    #[test]
    fn a_server_states_no_fact_and_its_tools_request_its_host_alone() {
        let claims = json!({"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false});
        let entry = json!({"name": "x", "description": "d", "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"}, "annotations": claims, "more": 1});
        let mut content = file(json!([entry]));
        content["prefix"] = json!("a_");
        let (_folder, path) = written(&content);
        let tool = load(&path).unwrap().tools.remove(0);
        let safety = &tool.interface.safety;
        assert!(!safety.is_read_only.value && safety.is_destructive.value && safety.is_open_world.value);
        assert_eq!((tool.name.as_str(), &tool.origin.unknown["annotations"]), ("a_x", &claims));
        let NetworkRequest::Destinations(hosts) = &tool.requested.network else { panic!("{:?}", tool.requested) };
        let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
        let secrets: Vec<_> = tool.requested.secrets.iter().map(crate::tool::SecretRequest::capability).collect();
        assert_eq!(hosts, ["https://a.example:443"]);
        assert_eq!(secrets, ["secret:a@a.example#header:authorization"]);
        let Body::Remote(remote) = &tool.body else { panic!("{:?}", tool.body) };
        assert_eq!((remote.name.as_str(), &remote.pinned["more"]), ("x", &json!(1)));
        assert!(tool.interface.schemas.output_schema.value.is_some());
    }

    #[test]
    fn a_faulty_file_is_refused_and_a_faulty_tool_alone_is_unusable() {
        let good = json!({"name": "x", "inputSchema": {"type": "object"}});
        for (change, reason) in [
            (json!({"url": "http://a.example/"}), "without TLS"),
            (json!({"url": null}), "url must be a string"),
            (json!({"revision": 1}), "revision must be a string"),
            (json!({"secret": "A"}), "not the name of a secret"),
            (json!({"revision": "a\u{1b}[2J"}), "control character"),
            (json!({"tools": {}}), "tools must be an array"),
            (json!({"tools": [good, good]}), "duplicate name"),
        ] {
            let mut content = file(json!([good]));
            change.as_object().unwrap().iter().for_each(|(key, value)| content[key] = value.clone());
            let (_folder, path) = written(&content);
            let error = load_usable(&path).map(|loaded| loaded.tools.len()).unwrap_err().to_string();
            assert!(error.contains(reason), "{change}: {error}");
        }
        for bad in [json!({"name": "y", "inputSchema": []}), json!({"name": "y", "description": 7}), json!(7)] {
            let (_folder, path) = written(&file(json!([bad, good])));
            let loaded = load_usable(&path).unwrap();
            let usable: Vec<_> = loaded.tools.iter().filter(|tool| tool.unusable.is_none()).collect();
            assert_eq!((usable.len(), usable[0].name.as_str(), loaded.warnings.len()), (1, "x", 1), "{bad}");
        }
    }
}
