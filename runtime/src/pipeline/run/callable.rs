//! Finds and describes the tools that a program of a model can call.

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_foundation::text::prefix;

use crate::error::{Outcome, ToolError};
use crate::pipeline::stage::FRAME;
use crate::pipeline::state::builtin::MAX_DESCRIBED;
use crate::pipeline::state::{MAX_EXTRA_BYTES, Pipeline};
use crate::source::nearest;
use crate::stub::{self, StubLanguage, StubTool};
use crate::tool::Tool;

use super::host::ranked;

/// Maximum characters of a description in a list of found tools.
const MAX_SUMMARY: usize = 200;
/// Default number of tools that a search returns.
const DEFAULT_FOUND: usize = 10;

/// Arguments of `search_tools`.
#[derive(Deserialize)]
pub(super) struct SearchTools {
    query: String,
    max_results: Option<usize>,
}

/// Arguments of `describe_tool`.
#[derive(Deserialize)]
pub(super) struct DescribeTool {
    names: Vec<String>,
    language: Option<String>,
}

/// Lists the names and first lines of the tools that match a query.
pub(super) fn search(pipeline: &Pipeline, request: &SearchTools) -> String {
    let mut names = vec![None; pipeline.registry.tools().len()];
    for (name, index) in pipeline.names_in_programs().iter() {
        names[index] = Some(name);
    }
    let found = ranked(pipeline, &request.query, |index| names[index].is_some() && is_useful(pipeline, index));
    let found = found.unwrap_or_default();
    let listed = found.iter().take(request.max_results.unwrap_or(DEFAULT_FOUND)).map(|index| {
        let description = pipeline.registry.tools()[*index].description.as_deref().unwrap_or_default();
        let summary = description.lines().next().unwrap_or_default();
        json!({"name": names[*index], "description": prefix(summary, MAX_SUMMARY)})
    });
    let listed: Vec<Value> = listed.collect();
    json!({ FRAME: {"kind": "tools", "shown": listed.len(), "found": found.len()}, "tools": listed }).to_string()
}

/// Describes tools by their signatures in a language.
///
/// # Errors
///
/// [`Outcome::BadArguments`] if a program can call none of the tools.
pub(super) fn describe(pipeline: &Pipeline, request: &DescribeTool) -> Result<String, ToolError> {
    let language = request.language.as_deref().unwrap_or(pipeline.code.default_language());
    let (mut signatures, mut unknown, mut left_out) = (String::new(), Vec::new(), Vec::new());
    for name in request.names.iter().take(MAX_DESCRIBED) {
        let own = name.strip_prefix("tools.").unwrap_or(name);
        let known = pipeline.names_in_programs().find(own);
        if known.is_some_and(|(_, index)| !is_useful(pipeline, index)) {
            unknown.push(format!("`{name}` (it was granted nothing that it needs, or is denied)"));
            continue;
        }
        let Some((_, index)) = known else {
            let meant = nearest(own, pipeline.names_in_programs().iter().map(|(name, _)| name));
            unknown
                .push(meant.map_or_else(|| format!("`{name}`"), |meant| format!("`{name}` (did you mean `{meant}`?)")));
            continue;
        };
        let signature = signature(language, own, &pipeline.registry.tools()[index]);
        if !signatures.is_empty() && signatures.len() + signature.len() > MAX_EXTRA_BYTES {
            left_out.push(own);
            continue;
        }
        signatures += if signatures.is_empty() { "" } else { "\n\n" };
        signatures += &signature;
    }
    if signatures.is_empty() {
        let message = format!("no program can call {}: find tools with `search_tools`", unknown.join(", "));
        return Err(ToolError::new(Outcome::BadArguments, message));
    }
    let mut answer = json!({ FRAME: {"kind": "signatures"}, "signatures": signatures });
    for (field, names) in [("unknown", json!(unknown)), ("left_out", json!(left_out))] {
        if names != json!([]) {
            answer[field] = names;
        }
    }
    Ok(answer.to_string())
}

/// Returns `true` if calls of a tool can succeed.
fn is_useful(pipeline: &Pipeline, index: usize) -> bool {
    pipeline.prepared[index].is_useful(&pipeline.registry.tools()[index])
}

/// Returns the signature of a tool in a language, with its description.
fn signature(language: &str, name: &str, tool: &Tool) -> String {
    let input = tool.model_input_schema();
    stub::signature(stub_language(language), &StubTool::of(name, tool, input.as_deref()))
}

/// Returns the language of stubs for programs in a language.
pub(crate) fn stub_language(language: &str) -> StubLanguage {
    if language == "python" { StubLanguage::Python } else { StubLanguage::Typescript }
}
