//! `toolcrib schema`: the tools as a model's API wants them. The one mapping of a tool to such a definition stands here.

use std::borrow::Cow;
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::Tool;
use toolcrib::tool::Limits;

use crate::options::Sources;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  toolcrib schema | jq '{model: \"m\", tools: .}'
  toolcrib schema fs_read_file fs_search";

/// Print the tools as definitions for a model's API.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only these tools, in the order of their source
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Whose form the definitions take
    #[arg(long = "for", value_name = "TARGET", value_enum, default_value_t)]
    target: Target,
    #[command(flatten)]
    sources: Sources,
}

/// An API that takes definitions of tools.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Target {
    /// The chat completions API of OpenAI and of servers compatible with it.
    #[default]
    OpenaiChat,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let runtime = args.sources.runtime(Limits::default().deadline, [])?;
    let definition = match args.target {
        Target::OpenaiChat => openai_chat,
    };
    if let Some(unknown) = args.names.iter().find(|name| runtime.tool(name).is_none()) {
        // There is nothing to prepare: the library says which name is nearest.
        runtime.prepare(unknown).await?;
    }
    let chosen = runtime.tools().filter(|tool| args.names.is_empty() || args.names.contains(&tool.name));
    let definitions: Vec<Value> = chosen.map(definition).collect();
    render::print(&serde_json::to_string_pretty(&definitions)?)?;
    Ok(ExitCode::SUCCESS)
}

/// A tool as the chat completions API wants it: the schema as its source gave it, member for member, without what is
/// not for a model.
pub(crate) fn openai_chat(tool: &Tool) -> Value {
    let mut function = json!({ "name": tool.name });
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    let empty = || json!({ "type": "object", "properties": {} });
    function["parameters"] = tool.model_input_schema().map_or_else(empty, Cow::into_owned);
    json!({ "type": "function", "function": function })
}
