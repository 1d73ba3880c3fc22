//! `toolcrib schema`: the tools as a model's API wants them. The one mapping of a tool to such a definition stands here.

use std::borrow::Cow;
use std::collections::HashSet;
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use toolcrib::tool::{Grammar, Limits, TextInput};
use toolcrib::{Availability, Tool};

use crate::options::Sources;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  toolcrib schema | jq '{model: \"m\", tools: .}'
  toolcrib schema fs_read_file fs_search
  toolcrib schema --for openai-responses";

/// Print the tools as definitions for a model's API.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only these tools, by their names or aliases, in the order of their source
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Whose form the definitions take
    #[arg(long = "for", value_name = "TARGET", value_enum, default_value_t)]
    target: Target,
    /// Print a tool that takes text as a function with one field where the API has custom tools, too
    #[arg(long)]
    no_custom_tools: bool,
    #[command(flatten)]
    sources: Sources,
}

/// An API that takes definitions of tools.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Target {
    /// The chat completions API of OpenAI and of servers compatible with it.
    #[default]
    OpenaiChat,
    /// The responses API of OpenAI and of servers compatible with it.
    OpenaiResponses,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let runtime = args.sources.runtime(Limits::default().deadline, [])?;
    let definition = |tool: &Tool| match args.target {
        Target::OpenaiChat => openai_chat(tool),
        Target::OpenaiResponses => openai_responses(tool, !args.no_custom_tools),
    };
    if let Some(unknown) = args.names.iter().find(|name| runtime.tool(name).is_none()) {
        // There is nothing to prepare: the library says which name is nearest.
        runtime.prepare(unknown).await?;
    }
    // What cannot be called is offered to nobody, unless somebody wants to see it.
    let is_open = |tool: &Tool| {
        !matches!(runtime.availability(&tool.name), Some(Availability::Disabled { .. } | Availability::Unusable { .. }))
    };
    // An alias means its tool.
    let named: HashSet<&str> =
        args.names.iter().filter_map(|name| runtime.tool(name)).map(|tool| tool.name.as_str()).collect();
    for tool in named.iter().filter_map(|name| runtime.tool(name)) {
        if let Some(unusable) = &tool.unusable {
            return Err(unusable.fault.clone().into());
        }
    }
    let chosen = runtime
        .tools()
        .filter(|tool| if args.names.is_empty() { is_open(tool) } else { named.contains(tool.name.as_str()) });
    let definitions: Vec<Value> = chosen.map(definition).collect();
    render::print_json(&serde_json::to_string_pretty(&definitions)?)?;
    Ok(ExitCode::SUCCESS)
}

/// A tool as the chat completions API wants it: the schema as its source gave it, member for member, without what is
/// not for a model.
pub(crate) fn openai_chat(tool: &Tool) -> Value {
    let mut function = described(tool);
    function.insert("parameters".to_owned(), parameters(tool));
    json!({ "type": "function", "function": function })
}

/// A tool as the responses API wants it: the same, or, with `custom_tools`, a tool that takes text as one that does.
pub(crate) fn openai_responses(tool: &Tool, custom_tools: bool) -> Value {
    let of_type = |kind: &str| Map::from_iter([("type".to_owned(), json!(kind))].into_iter().chain(described(tool)));
    let definition = match tool.text.as_ref().filter(|_| custom_tools) {
        Some(text) => {
            let mut custom = of_type("custom");
            custom.insert("format".to_owned(), format(text));
            custom
        }
        None => {
            let mut function = of_type("function");
            function.insert("parameters".to_owned(), parameters(tool));
            // The strict kind takes a part of JSON Schema only; arguments are checked by the whole of it when they come.
            function.insert("strict".to_owned(), json!(false));
            function
        }
    };
    Value::Object(definition)
}

fn described(tool: &Tool) -> Map<String, Value> {
    let description = tool.description.as_ref().map(|text| ("description".to_owned(), json!(text)));
    [("name".to_owned(), json!(tool.name))].into_iter().chain(description).collect()
}

fn parameters(tool: &Tool) -> Value {
    let empty = || json!({ "type": "object", "properties": {} });
    tool.model_input_schema().map_or_else(empty, Cow::into_owned)
}

fn format(text: &TextInput) -> Value {
    match &text.grammar {
        Some(Grammar { syntax, definition, .. }) => {
            json!({ "type": "grammar", "syntax": syntax, "definition": definition })
        }
        None => json!({ "type": "text" }),
    }
}

#[cfg(test)]
mod tests {
    use toolcrib::Runtime;
    use toolcrib::tool::Syntax;

    use super::*;

    /// A tool that takes text.
    fn tool(grammar: Option<Grammar>) -> Tool {
        let folder = tempfile::tempdir().expect("a folder");
        let wasm = folder.path().join("tools/bin/patch.wasm");
        std::fs::create_dir_all(wasm.parent().expect("a folder")).expect("a folder");
        std::fs::write(&wasm, b"\0asm\x01\0\0\0").expect("a module");
        let manifest = folder.path().join("tools.json");
        let listed = json!({ "name": "patch", "description": "change files", "command": ["./tools/bin/patch"] });
        std::fs::write(&manifest, json!({ "tools": [listed] }).to_string()).expect("a manifest");
        let runtime = Runtime::builder(toolcrib::Audit::off()).source(&manifest).build().expect("a runtime");
        let mut tool = runtime.tool("patch").expect("the tool").clone();
        let mut text = TextInput::new("patch");
        text.grammar = grammar;
        text.description = Some("the patch".to_owned());
        tool.parameters = Some(text.schema());
        tool.text = Some(text);
        tool
    }

    #[test]
    fn a_tool_that_takes_text_is_offered_as_one_where_that_can_be_said() {
        let grammar = Grammar::new(Syntax::Lark, "start: /a+/");
        let custom =
            |format| json!({ "type": "custom", "name": "patch", "description": "change files", "format": format });
        assert_eq!(
            openai_responses(&tool(Some(grammar.clone())), true),
            custom(json!({ "type": "grammar", "syntax": "lark", "definition": "start: /a+/" }))
        );
        assert_eq!(openai_responses(&tool(None), true), custom(json!({ "type": "text" })));
        let parameters = json!({
            "type": "object",
            "properties": { "patch": { "type": "string", "description": "the patch" } },
            "required": ["patch"],
            "additionalProperties": false,
        });
        let described = json!({ "name": "patch", "description": "change files", "parameters": parameters });
        assert_eq!(openai_chat(&tool(Some(grammar))), json!({ "type": "function", "function": described }));
        let mut flat = described;
        (flat["type"], flat["strict"]) = (json!("function"), json!(false));
        assert_eq!(openai_responses(&tool(None), false), flat);
    }
}
