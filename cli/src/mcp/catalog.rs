//! The list of tools as clients see it: names that both revisions accept, schemas, annotations from proven facts, and a
//! deterministic order. With many tools, a fixed pair searches and calls those that are not listed.

use std::collections::HashMap;

use rmcp::model::Tool as ListedTool;
use serde_json::{Value, json};
use toolcrib::tool::Visibility;
use toolcrib::{Availability, Runtime, Tool};

use crate::schemas::mcp;

/// Name of the tool that finds unlisted tools.
pub(super) const SEARCH: &str = "tool_search";
/// Name of the tool that calls unlisted tools.
pub(super) const CALL: &str = "tool_call";
/// Name of the tool that reads stored results.
const READ_RESULT: &str = "read_result";

/// List of tools for clients.
#[derive(Debug)]
pub(crate) struct Catalog {
    tools: Vec<ListedTool>,
    /// Names in the runtime by names for clients.
    names: HashMap<String, String>,
    /// Tools that only the search finds.
    unlisted: Vec<ListedTool>,
}

impl Catalog {
    /// Lists the callable tools of a runtime, sorted by name. With more than `max_listed`, only the always loaded ones are
    /// listed beside the pair that finds and calls the others.
    pub(crate) fn new(runtime: &Runtime, max_listed: usize) -> Self {
        let callable: Vec<&Tool> = runtime.tools().filter(|tool| is_callable(runtime, tool)).collect();
        let names = mcp::names(callable.iter().map(|tool| tool.name.as_str()));
        let mut described: Vec<(ListedTool, bool)> = Vec::with_capacity(callable.len());
        let mut by_name = HashMap::with_capacity(callable.len());
        for (tool, name) in callable.iter().zip(names) {
            let discovery = &tool.interface.discovery;
            let is_deferred = discovery.should_defer.value || callable.len() > max_listed;
            let Some(listed) = describe(tool, &name) else { continue };
            described.push((listed, is_deferred && !discovery.always_load.value));
            by_name.insert(name, tool.name.clone());
        }
        described.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        let (unlisted, listed): (Vec<_>, Vec<_>) = described.into_iter().partition(|(_, is_deferred)| *is_deferred);
        let bare = |tools: Vec<(ListedTool, bool)>| tools.into_iter().map(|(tool, _)| tool).collect::<Vec<_>>();
        let (mut tools, unlisted) = (bare(listed), bare(unlisted));
        let reader = runtime.tool(READ_RESULT).filter(|_| !by_name.contains_key(READ_RESULT));
        if let Some(reader) = reader.and_then(|tool| describe(tool, READ_RESULT)) {
            by_name.insert(READ_RESULT.to_owned(), READ_RESULT.to_owned());
            tools.push(reader);
        }
        if !unlisted.is_empty() {
            tools.extend(pair());
        }
        Self { tools, names: by_name, unlisted }
    }

    /// Returns the listed tools.
    pub(super) fn tools(&self) -> &[ListedTool] {
        &self.tools
    }

    /// Returns the tools that only the search finds.
    pub(super) fn unlisted(&self) -> &[ListedTool] {
        &self.unlisted
    }

    /// Returns a tool by its name for clients.
    pub(super) fn tool(&self, name: &str) -> Option<&ListedTool> {
        self.tools.iter().chain(&self.unlisted).find(|tool| tool.name == name)
    }

    /// Returns the name in the runtime. A name that clients do not know stays, for an error that names it.
    pub(super) fn own_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.get(name).map_or(name, String::as_str)
    }

    /// Lists the tools that have another name for clients: that name, and the one in the runtime.
    pub(super) fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.names.iter().map(|(name, own)| (name.as_str(), own.as_str()));
        all.filter(|(name, own)| name != own)
    }
}

fn is_callable(runtime: &Runtime, tool: &Tool) -> bool {
    let is_open = !matches!(
        runtime.availability(&tool.name),
        None | Some(Availability::Disabled { .. } | Availability::Unusable { .. })
    );
    is_open && tool.interface.discovery.schema_visibility.value != Visibility::Internal
}

/// Describes a tool for clients; `None` if its schema cannot be expressed.
fn describe(tool: &Tool, name: &str) -> Option<ListedTool> {
    serde_json::from_value(mcp::tool(tool, name)).ok()
}

/// The tools that find and call unlisted tools.
fn pair() -> [ListedTool; 2] {
    let object = |properties: Value, required: &[&str]| match json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    }) {
        Value::Object(schema) => schema,
        _ => serde_json::Map::new(),
    };
    let search = object(
        json!({
            "query": {"type": "string", "minLength": 1, "maxLength": super::search::MAX_QUERY_LEN, "description": "Exact name or words"},
            "max_results": {"type": "integer", "minimum": 1, "maximum": super::search::MAX_FOUND, "default": 5},
        }),
        &["query"],
    );
    let call = object(
        json!({
            "name": {"type": "string", "description": "Name of the tool, as found by tool_search"},
            "arguments": {"type": "object", "description": "Arguments of the tool, by its input schema"},
        }),
        &["name"],
    );
    [
        ListedTool::new(CALL, "Call a tool that tool_search found.", call),
        ListedTool::new(SEARCH, "Find tools that are not listed. Returns their names, descriptions and input schemas.", search),
    ]
}
