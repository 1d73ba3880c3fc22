//! Runs the host's own tools: searches, reader of stored answers, and background tasks. They pass the same stages as
//! every other tool.

use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_foundation::text::{MAX_MESSAGE, prefix};

use crate::call::{Behavior, Decision, Reason};
use crate::error::{Outcome, ToolError};
use crate::flow::Label;
use crate::pipeline::prepared::compute::aside;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::stage::FRAME;
use crate::pipeline::state::builtin::{MAX_FOUND, MAX_OPENED};
use crate::pipeline::state::{CallScope, MAX_EXTRA_BYTES, Memory, Pipeline, TaskRequest, unless_cancelled};
use crate::schema::step;
use crate::tool::{Builtin, Limits, Tool, Visibility};

use super::callable::{self, DescribeTool, SearchTools};

/// Maximum number of words in a search.
const MAX_WORDS: usize = 32;

/// Arguments of `tool_search`.
#[derive(Deserialize)]
struct Search {
    query: String,
    max_results: Option<usize>,
}

/// Arguments of `read_result`.
#[derive(Deserialize)]
struct Open {
    reference: String,
    #[serde(default)]
    offset: u64,
    limit: Option<u64>,
}

/// Runs a tool of the host.
pub(super) async fn run(
    pipeline: &Arc<Pipeline>,
    builtin: Builtin,
    arguments: &Value,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<String, ToolError> {
    let no_tasks = || ToolError::new(Outcome::Failed, "calls outside a conversation cannot start tasks");
    let bad = |error: serde_json::Error| ToolError::new(Outcome::BadArguments, error.to_string());
    match builtin {
        Builtin::ToolSearch => {
            let (pipeline, memory) = (pipeline.clone(), scope.memory.clone());
            let request = Search::deserialize(arguments).map_err(bad)?;
            in_time(move || search(&pipeline, request, &memory)).await
        }
        Builtin::ReadResult => {
            let request = Open::deserialize(arguments).map_err(bad)?;
            open(pipeline, request, scope, recorder).await
        }
        Builtin::TaskPoll => scope.tasks.ok_or_else(no_tasks)?.poll(&TaskRequest::deserialize(arguments).map_err(bad)?),
        Builtin::TaskAwait => {
            let request = TaskRequest::deserialize(arguments).map_err(bad)?;
            unless_cancelled(scope.turn, scope.tasks.ok_or_else(no_tasks)?.wait(&request)).await?
        }
        Builtin::RunCode => Err(ToolError::new(Outcome::Trap, "a program is run by its interpreter")),
        Builtin::SearchTools => {
            let (pipeline, request) = (pipeline.clone(), SearchTools::deserialize(arguments).map_err(bad)?);
            in_time(move || callable::search(&pipeline, &request)).await
        }
        Builtin::DescribeTool => {
            let (pipeline, request) = (pipeline.clone(), DescribeTool::deserialize(arguments).map_err(bad)?);
            in_time(move || callable::describe(&pipeline, &request)).await?
        }
    }
}

/// Searches on a blocking thread, within the default deadline of a call.
async fn in_time<T: Send + 'static>(search: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    let late = || ToolError::new(Outcome::Deadline, "the search took too long; search for fewer words");
    aside(Instant::now() + Limits::default().deadline, search).await.ok_or_else(late)
}

/// Finds tools by `select:NAME,NAME` or by words, the best first. The caller has stopped waiting if the result is `None`.
pub(super) fn ranked(pipeline: &Pipeline, query: &str, is_findable: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
    let query = query.trim();
    let exact = query.strip_prefix("select:").map(|names| names.split(',').map(str::trim).collect::<Vec<_>>());
    let mut found: Vec<(u32, usize)> = Vec::new();
    for (index, tool) in pipeline.registry.tools().iter().enumerate() {
        if !step(1 + cost(tool)) {
            return None;
        }
        if !is_findable(index) {
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
    Some(found.into_iter().map(|(_, index)| index).collect())
}

/// Finds deferred tools and loads them.
fn search(pipeline: &Pipeline, search: Search, memory: &Memory) -> String {
    let is_exact = search.query.trim_start().starts_with("select:");
    let max = if is_exact { MAX_FOUND } else { search.max_results.unwrap_or(5) };
    let Some(found) = ranked(pipeline, &search.query, |index| is_findable(pipeline, index)) else {
        return String::new();
    };
    let mut tools = Vec::new();
    let mut bytes = 0;
    for index in found.into_iter().take(max) {
        let tool = &pipeline.registry.tools()[index];
        let description: Option<String> = tool.description.as_ref().map(|text| prefix(text, MAX_MESSAGE));
        let definition =
            json!({"name": tool.name, "description": description, "parameters": tool.model_input_schema()});
        bytes += definition.to_string().len();
        // A tool that is left out is not loaded. The first tool is always included, whatever its size.
        if !tools.is_empty() && bytes > MAX_EXTRA_BYTES {
            break;
        }
        memory.load(index);
        tools.push(definition);
    }
    let hidden =
        (0..pipeline.prepared.len()).filter(|index| is_findable(pipeline, *index) && !memory.has_loaded(*index));
    json!({ FRAME: {"kind": "tools", "loaded": tools.len(), "stillHidden": hidden.count()}, "tools": tools })
        .to_string()
}

/// Returns `true` if a search can find a tool: it is deferred and can be called.
fn is_findable(pipeline: &Pipeline, index: usize) -> bool {
    let visibility = pipeline.registry.tools()[index].interface.discovery.schema_visibility.value;
    pipeline.prepared[index].deferred && pipeline.prepared[index].is_callable() && visibility != Visibility::Internal
}

/// Opens a part of a stored answer, unless a rule withholds it from the model.
async fn open(
    pipeline: &Pipeline,
    open: Open,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<String, ToolError> {
    let Open { reference, offset, limit } = open;
    let Some(results) = scope.results(pipeline) else {
        return Err(ToolError::new(Outcome::Failed, "no result store is configured"));
    };
    let end = offset.saturating_add(limit.unwrap_or(MAX_OPENED));
    let opened = tokio::task::spawn_blocking(move || results.open(&reference, offset..end));
    let broken = |_| ToolError::new(Outcome::Failed, "the answer could not be opened");
    let part = opened.await.map_err(broken)?.map_err(|fault| ToolError::of_fault(&fault))?;
    let flow = &recorder.usage.flow;
    match scope.memory.label_of_stored(&part.stored.reference) {
        Some(label) => flow.join(&label),
        None => flow.join(&Label::of_stored(&part.stored)),
    }
    if let Some(rule) = flow.withholding().filter(|_| !scope.is_of_program()) {
        recorder.decide(Decision::new(Behavior::Deny, Reason::Rule, rule.to_string()));
        let pattern = rule.pattern().as_str();
        let message = format!(
            "`{pattern}` withholds this answer from the model; pass it to another call as an argument: {{\"$result\": {:?}}}",
            part.stored.reference
        );
        return Err(ToolError::new(Outcome::Denied, message));
    }
    let words = json!({
        "kind": "part",
        "reference": part.stored.reference,
        "bytes": part.stored.bytes,
        "offset": part.offset,
        "nextOffset": part.next,
    });
    Ok(json!({ FRAME: words, "text": part.text() }).to_string())
}

fn is_named(tool: &Tool, name: &str) -> bool {
    tool.name == name || tool.interface.identity.aliases.value.iter().any(|alias| alias == name)
}

/// Returns the step cost of matching a tool with all words in a search.
fn cost(tool: &Tool) -> usize {
    let hint = tool.interface.discovery.search_hint.value.as_ref().map_or(0, String::len);
    (hint + tool.description.as_ref().map_or(0, String::len)) * MAX_WORDS / 64
}

/// Scores a tool by the words of a search: its name counts most, then its search hint, then its description.
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
