//! EventKind the host does itself when a model calls it: search for tools that were not shown, and open answers that were too
//! long. Both go the way of every call, under its rules and into its log.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Outcome, ToolError};
use crate::schema::step;
use crate::tool::{Body, Builtin, Capabilities, Format, Interface, Limits, Origin, Tool, Visibility};

use super::answer::FRAME;
use super::ready::aside;
use super::task::Ask;
use super::{Context, Memory, Pipeline, unless_cancelled};

/// How many tools a search finds at most.
const MAX_FOUND: usize = 20;
/// The most characters of a description, and the most bytes of all definitions, that a search tells.
const MAX_DESCRIPTION_LEN: usize = 2000;
const MAX_TOLD: usize = 64 << 10;
/// The most words that are looked for.
const MAX_WORDS: usize = 32;
/// The most bytes of an answer that are opened at once.
const MAX_OPENED: u64 = 32 << 10;

/// The record of a built-in tool.
pub(crate) fn tool(builtin: Builtin) -> Tool {
    let (name, description, parameters) = match builtin {
        Builtin::ToolSearch => (
            "tool_search",
            "Find tools that are not listed, and load them so that they can be called. `query` is `select:NAME,NAME` for \
             exact names, or a few words.",
            json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "Exact names or words"},
                    "max_results": {"type": "integer", "minimum": 1, "maximum": MAX_FOUND, "default": 5},
                },
                "required": ["query"],
                "additionalProperties": false,
            }),
        ),
        Builtin::ReadResult => (
            "read_result",
            "Read a part of an answer that was too long to show in full, by the reference in its preview.",
            json!({
                "type": "object",
                "properties": {
                    "reference": {"type": "string", "maxLength": 100, "description": "The reference, `res_…`"},
                    "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Byte to start at"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_OPENED, "default": MAX_OPENED, "description": "Maximum bytes to read"},
                },
                "required": ["reference"],
                "additionalProperties": false,
            }),
        ),
        Builtin::TaskPoll => (
            "task_poll",
            "Return the state of a task: `running`, `done` with its result, or `failed` with its error.",
            json!({
                "type": "object",
                "properties": {"task_id": {"type": "string", "maxLength": 100, "description": "The task, `task_…`"}},
                "required": ["task_id"],
                "additionalProperties": false,
            }),
        ),
        Builtin::TaskAwait => (
            "task_await",
            "Wait for a task to end and return its state; it is still `running` if the wait times out first.",
            json!({
                "type": "object",
                "properties": {
                    "task_id": {"type": "string", "maxLength": 100, "description": "The task, `task_…`"},
                    "timeout_ms": {"type": "integer", "minimum": 0, "maximum": 300_000, "default": 20_000, "description": "Maximum wait in milliseconds"},
                },
                "required": ["task_id"],
                "additionalProperties": false,
            }),
        ),
    };
    let mut interface = Interface::default();
    // The names that the tasks' own documentation uses, which model servers would not take.
    interface.identity.aliases.value = match builtin {
        Builtin::TaskPoll => vec!["task.poll".to_owned()],
        Builtin::TaskAwait => vec!["task.await".to_owned()],
        Builtin::ToolSearch | Builtin::ReadResult => Vec::new(),
    };
    interface.discovery.always_load.prove(true);
    interface.safety.is_read_only.prove(true);
    interface.safety.is_open_world.prove(false);
    interface.safety.is_concurrency_safe.prove(true);
    let origin = Origin::of(Format::Builtin, Path::new("toolcrib"));
    Tool {
        description: Some(description.to_owned()),
        parameters: Some(parameters),
        requested: Capabilities { stated: true, ..Capabilities::default() },
        interface,
        ..Tool::new(name, Body::Builtin(builtin), origin)
    }
}

#[derive(Deserialize)]
struct Search {
    query: String,
    max_results: Option<usize>,
}

#[derive(Deserialize)]
struct Open {
    reference: String,
    #[serde(default)]
    offset: u64,
    limit: Option<u64>,
}

impl Pipeline {
    pub(super) async fn perform(
        self: &Arc<Self>,
        builtin: Builtin,
        arguments: &Value,
        context: &Context<'_>,
    ) -> Result<String, ToolError> {
        let memory = context.memory;
        let no_tasks = || ToolError::new(Outcome::Failed, "calls outside a conversation cannot start tasks");
        let wrong = |error: serde_json::Error| ToolError::new(Outcome::BadArguments, error.to_string());
        match builtin {
            Builtin::ToolSearch => {
                let (pipeline, memory) = (self.clone(), memory.clone());
                let search = Search::deserialize(arguments).map_err(wrong)?;
                let until = Instant::now() + Limits::default().deadline;
                let late = || ToolError::new(Outcome::Deadline, "the search took too long; search for fewer words");
                aside(until, move || pipeline.search(search, &memory)).await.ok_or_else(late)
            }
            Builtin::ReadResult => self.open(Open::deserialize(arguments).map_err(wrong)?).await,
            Builtin::TaskPoll => context.tasks.ok_or_else(no_tasks)?.poll(&Ask::deserialize(arguments).map_err(wrong)?),
            Builtin::TaskAwait => {
                let ask = Ask::deserialize(arguments).map_err(wrong)?;
                unless_cancelled(context.turn, context.tasks.ok_or_else(no_tasks)?.wait(&ask)).await?
            }
        }
    }

    /// Finds deferred tools, and loads what it found.
    fn search(&self, search: Search, memory: &Memory) -> String {
        let most = search.max_results.unwrap_or(5);
        let query = search.query.trim();
        let exact = query.strip_prefix("select:").map(|names| names.split(',').map(str::trim).collect::<Vec<_>>());
        let mut found: Vec<(u32, usize)> = Vec::new();
        for (index, tool) in self.registry.tools().iter().enumerate() {
            if !step(1 + cost(tool)) {
                // Whoever searched has stopped waiting.
                return String::new();
            }
            if !self.is_findable(index) {
                continue;
            }
            let score = match &exact {
                Some(names) => u32::from(names.iter().any(|name| is_named(tool, name))),
                None => score(tool, query),
            };
            if score > 0 {
                found.push((score, index));
            }
        }
        found.sort_by_key(|(score, index)| (std::cmp::Reverse(*score), *index));
        found.truncate(if exact.is_some() { MAX_FOUND } else { most });
        let mut tools = Vec::new();
        let mut bytes = 0;
        for (_, index) in found {
            let tool = &self.registry.tools()[index];
            let description: Option<String> =
                tool.description.as_ref().map(|text| text.chars().take(MAX_DESCRIPTION_LEN).collect());
            let told = json!({"name": tool.name, "description": description, "parameters": tool.model_input_schema()});
            bytes += told.to_string().len();
            // EventKind is not told is not loaded. One tool is always told: it was shown like this without a search, too.
            if !tools.is_empty() && bytes > MAX_TOLD {
                break;
            }
            memory.load(index);
            tools.push(told);
        }
        let hidden = (0..self.ready.len()).filter(|index| self.is_findable(*index) && !memory.has_loaded(*index));
        json!({ FRAME: {"kind": "tools", "loaded": tools.len(), "stillHidden": hidden.count()}, "tools": tools })
            .to_string()
    }

    /// Whether a search may find a tool: it is hidden, but not for good.
    fn is_findable(&self, index: usize) -> bool {
        let visibility = self.registry.tools()[index].interface.discovery.schema_visibility.value;
        self.ready[index].deferred && self.ready[index].is_open() && visibility != Visibility::Internal
    }

    async fn open(&self, open: Open) -> Result<String, ToolError> {
        let Open { reference, offset, limit } = open;
        let Some(results) = self.results.clone() else {
            return Err(ToolError::new(Outcome::Failed, "no result store is configured"));
        };
        let end = offset.saturating_add(limit.unwrap_or(MAX_OPENED));
        let opened = tokio::task::spawn_blocking(move || results.open(&reference, offset..end));
        let broken = |_| ToolError::new(Outcome::Failed, "the answer could not be opened");
        let part = opened.await.map_err(broken)?.map_err(|fault| ToolError::of_fault(&fault))?;
        let words = json!({
            "kind": "part",
            "reference": part.kept.reference,
            "bytes": part.kept.bytes,
            "offset": part.offset,
            "nextOffset": part.next,
        });
        Ok(json!({ FRAME: words, "text": part.text() }).to_string())
    }
}

fn is_named(tool: &Tool, name: &str) -> bool {
    tool.name == name || tool.interface.identity.aliases.value.iter().any(|alias| alias == name)
}

/// The steps that it takes to hold a tool against all words of a search.
fn cost(tool: &Tool) -> usize {
    let hint = tool.interface.discovery.search_hint.value.as_ref().map_or(0, String::len);
    (hint + tool.description.as_ref().map_or(0, String::len)) * MAX_WORDS / 64
}

/// How well a tool fits words: its name counts most, then what its record says for searches, then its description.
fn score(tool: &Tool, query: &str) -> u32 {
    if is_named(tool, query) {
        return u32::MAX;
    }
    let words = query.to_lowercase();
    let lower = |text: Option<&str>| text.unwrap_or_default().to_lowercase();
    let name = format!("{} {}", tool.name, tool.interface.identity.aliases.value.join(" ")).to_lowercase();
    let hint = lower(tool.interface.discovery.search_hint.value.as_deref());
    let description = lower(tool.description.as_deref());
    words
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(MAX_WORDS)
        .map(|word| {
            4 * u32::from(name.contains(word))
                + 3 * u32::from(hint.contains(word))
                + u32::from(description.contains(word))
        })
        .sum()
}
