//! The list of tools as clients see it: names that both revisions accept, schemas, annotations from proven facts, and a
//! deterministic order. With many tools, a fixed pair searches and calls those that are not listed.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool as ListedTool};
use serde_json::{Value, json};
use toolcrib::tool::{Body, Visibility};
use toolcrib::{Availability, Runtime, Tool};
use toolcrib_base::render;
use toolcrib_sources::schemas::{Names, mcp};

/// Name of the tool that finds unlisted tools.
pub(super) const SEARCH: &str = "tool_search";
/// Name of the tool that calls unlisted tools.
pub(super) const CALL: &str = "tool_call";
/// The runtime's own tools for clients: the reader of stored results, those for background tasks, and those for programs.
const BUILTINS: [&str; 6] = ["read_result", "task_poll", "task_await", "run_code", "search_tools", "describe_tool"];
/// Names of the server's own tools. A tool of a source with such a name is listed under another. A source's own tool with the name
/// of one for programs keeps it, because the runtime then has none.
const RESERVED: [&str; 5] = [SEARCH, CALL, BUILTINS[0], BUILTINS[1], BUILTINS[2]];
/// Key in a tool's metadata: the maximum characters of its results' text.
const MAX_RESULT: &str = "anthropic/maxResultSizeChars";
/// Characters of a result that clients accept from every tool: at most about 25,000 tokens.
const DEFAULT_RESULT_CHARS: usize = 64 << 10;

/// List of tools for clients.
#[derive(Debug)]
pub(crate) struct Catalog {
    tools: Vec<ListedTool>,
    /// Tools that only the search finds.
    unlisted: Vec<ListedTool>,
    /// Schemas of arguments with composition at the root, by the position of their tools. The later revision allows it.
    composed: HashMap<usize, Arc<JsonObject>>,
    /// Further facts by names for clients; the pair has none.
    entries: HashMap<String, Entry>,
}

/// Facts of a tool that clients do not see.
#[derive(Debug)]
struct Entry {
    /// Name in the runtime.
    own: String,
    output: Output,
    /// Position in [`Catalog::tools`], or behind all of these in [`Catalog::unlisted`].
    position: usize,
}

/// Structured content of a tool's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// None: the tool has no schema of its results.
    None,
    /// The result itself, an object.
    Object,
    /// An object with the result as its only property.
    Wrapped,
}

impl Catalog {
    /// Lists the callable tools of a runtime that a model is shown, sorted by name. With more than `max_listed`, only the always loaded ones are
    /// listed beside the pair that finds and calls the others.
    pub(crate) fn new(runtime: &Runtime, max_listed: usize) -> Self {
        let callable: Vec<&Tool> = callable(runtime).filter(|tool| runtime.shows(tool)).collect();
        let names = names_for_clients(runtime);
        let mut described: Vec<(ListedTool, bool)> = Vec::with_capacity(callable.len());
        let mut entries = HashMap::with_capacity(callable.len());
        for tool in &callable {
            let discovery = &tool.interface.discovery;
            let is_deferred = discovery.should_defer.value || callable.len() > max_listed;
            let name = names.get(&tool.name);
            let Some(mut listed) = describe(tool, name) else { continue };
            state_size(&mut listed, runtime.max_inline(&tool.name));
            let output = match mcp::output_schema(tool) {
                Ok(Some(schema)) if schema.is_wrapped => Output::Wrapped,
                Ok(Some(_)) => Output::Object,
                _ => Output::None,
            };
            described.push((listed, is_deferred && !discovery.always_load.value));
            entries.insert(name.to_owned(), Entry { own: tool.name.clone(), output, position: 0 });
        }
        described.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        let (unlisted, listed): (Vec<_>, Vec<_>) = described.into_iter().partition(|(_, is_deferred)| *is_deferred);
        let bare = |tools: Vec<(ListedTool, bool)>| tools.into_iter().map(|(tool, _)| tool).collect::<Vec<_>>();
        let (mut tools, unlisted) = (bare(listed), bare(unlisted));
        let builtins = BUILTINS.iter().filter_map(|name| Some((name, runtime.tool(name)?)));
        for (name, builtin) in
            builtins.filter(|(_, tool)| matches!(tool.body, Body::Builtin(_)) && is_callable(runtime, tool))
        {
            let Some(listed) = describe(builtin, name) else { continue };
            let own = (*name).to_owned();
            entries.insert(own.clone(), Entry { own, output: Output::None, position: 0 });
            tools.push(listed);
        }
        if !unlisted.is_empty() {
            let [mut call, search] = pair();
            state_size(&mut call, unlisted.iter().filter_map(stated_size).max());
            tools.extend([call, search]);
        }
        for (position, tool) in tools.iter().chain(&unlisted).enumerate() {
            if let Some(entry) = entries.get_mut(&*tool.name) {
                entry.position = position;
            }
        }
        let composed = |(position, listed): (usize, &ListedTool)| {
            let tool = runtime.tool(&entries.get(&*listed.name)?.own)?;
            match mcp::composed_input(tool)? {
                Value::Object(schema) => Some((position, Arc::new(schema))),
                _ => None,
            }
        };
        let composed = tools.iter().enumerate().filter_map(composed).collect();
        Self { tools, unlisted, composed, entries }
    }

    /// Returns the listed tools.
    pub(super) fn tools(&self) -> &[ListedTool] {
        &self.tools
    }

    /// Returns a part of the listed tools, for a client of the later revision or of the earlier one.
    pub(super) fn page(&self, range: Range<usize>, is_later: bool) -> Vec<ListedTool> {
        let mut page = self.tools[range.clone()].to_vec();
        if is_later && !self.composed.is_empty() {
            for (position, tool) in range.zip(&mut page) {
                if let Some(schema) = self.composed.get(&position) {
                    tool.input_schema = schema.clone();
                }
            }
        }
        page
    }

    /// Lists the names of all tools for clients.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().chain(&self.unlisted).map(|tool| &*tool.name)
    }

    /// Returns the tools that only the search finds.
    pub(super) fn unlisted(&self) -> &[ListedTool] {
        &self.unlisted
    }

    /// Returns `true` if there are unlisted tools, which the pair finds and calls.
    pub(super) fn has_pair(&self) -> bool {
        !self.unlisted.is_empty()
    }

    /// Returns a tool by its name for clients.
    pub(super) fn tool(&self, name: &str) -> Option<&ListedTool> {
        let position = self.entries.get(name)?.position;
        self.tools.get(position).or_else(|| self.unlisted.get(position - self.tools.len()))
    }

    /// Returns the name in the runtime. A name that clients do not know stays, for an error that names it.
    pub(super) fn own_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.entries.get(name).map_or(name, |entry| entry.own.as_str())
    }

    /// Returns the name for clients of a tool in the runtime, if they see it.
    pub(super) fn name_of(&self, own: &str) -> Option<&str> {
        self.entries.iter().find(|(_, entry)| entry.own == own).map(|(name, _)| name.as_str())
    }

    /// Returns the structured content of a tool's results.
    pub(super) fn output(&self, name: &str) -> Output {
        self.entries.get(name).map_or(Output::None, |entry| entry.output)
    }

    /// Lists the tools that have another name for clients: that name, and the one in the runtime.
    pub(super) fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.entries.iter().map(|(name, entry)| (name.as_str(), entry.own.as_str()));
        all.filter(|(name, own)| name != own)
    }
}

/// Maps the names of the callable tools to those that clients see.
pub fn names_for_clients(runtime: &Runtime) -> Names {
    Names::beside(&RESERVED, callable(runtime).map(|tool| tool.name.as_str()), mcp::NAME_RULE)
}

fn callable(runtime: &Runtime) -> impl Iterator<Item = &Tool> {
    runtime.tools().filter(|tool| is_callable(runtime, tool))
}

/// Returns `true` if clients can call a tool.
pub(super) fn is_callable(runtime: &Runtime, tool: &Tool) -> bool {
    let is_open = !matches!(
        runtime.availability(&tool.name),
        None | Some(Availability::Disabled { .. } | Availability::Unusable { .. })
    );
    // With workers, only tools that only read are called.
    let is_refused = runtime.has_workers() && runtime.is_useless(&tool.name);
    is_open && !is_refused && tool.interface.discovery.schema_visibility.value != Visibility::Internal
}

/// Describes a tool for clients; `None`, with a warning, if its schema cannot be stated.
fn describe(tool: &Tool, name: &str) -> Option<ListedTool> {
    let reason = match mcp::definition(tool, name) {
        Ok(definition) => match serde_json::from_value(definition.value) {
            Ok(listed) => return Some(listed),
            Err(error) => error.to_string(),
        },
        Err(reason) => reason.to_string(),
    };
    render::warning(&format!("`{}` is not served: {reason}", render::one_line(&tool.name)));
    None
}

/// States the maximum characters of a tool's results, if they are more than clients accept from every tool.
fn state_size(listed: &mut ListedTool, max: Option<usize>) {
    if let Some(max) = max.filter(|max| *max > DEFAULT_RESULT_CHARS) {
        listed.meta.get_or_insert_default().insert(MAX_RESULT.to_owned(), json!(max));
    }
}

/// Returns the stated maximum characters of a tool's results.
fn stated_size(listed: &ListedTool) -> Option<usize> {
    usize::try_from(listed.meta.as_ref()?.get(MAX_RESULT)?.as_u64()?).ok()
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
        ListedTool::new(
            SEARCH,
            "Find tools that are not listed. Returns their names, descriptions and input schemas.",
            search,
        ),
    ]
}
