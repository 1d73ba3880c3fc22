//! `toolcrib schema`: tool definitions for a model API. This is the only mapping of a tool to such a definition.

use std::collections::HashSet;
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use toolcrib::tool::{Grammar, Limits, TextInput};
use toolcrib::{Availability, Tool};

use crate::options::Sources;
use crate::render;
use crate::schemas::{Definition, NameRule, Names, Unsupported, anthropic, gemini, mcp, openai};

const EXAMPLES: &str = "\
Examples:
  toolcrib schema | jq '{model: \"m\", tools: .}'
  toolcrib schema fs_read_file fs_search
  toolcrib schema --for openai-strict fs_search
  toolcrib schema --for gemini | jq '{tools: [{functionDeclarations: .}]}'
  toolcrib schema --for mcp --notes | jq '.[] | {tool, notes}'

Some targets accept only a part of JSON Schema, or fewer names. Each difference \
from the tool's own definition is a warning on standard error. A tool that a \
target cannot state at all is left out with an error, and the command exits \
with 1. Calls are always checked against the tool's own schema.";

/// Print tool definitions for a model API.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only these tools, by name or alias, in the order of their source
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Target API
    #[arg(long = "for", value_name = "TARGET", value_enum, default_value_t)]
    target: Target,
    /// Print tools that take text as functions with one field, even if the API has custom tools
    #[arg(long)]
    no_custom_tools: bool,
    /// Print one object per tool: its name, its definition or the error, and the differences from its own definition
    #[arg(long)]
    notes: bool,
    #[command(flatten)]
    sources: Sources,
}

/// API for tool definitions.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Target {
    /// Chat completions API of OpenAI and compatible servers.
    #[default]
    OpenaiChat,
    /// Responses API of OpenAI and compatible servers.
    OpenaiResponses,
    /// Chat completions API of OpenAI with strict functions.
    OpenaiStrict,
    /// Messages API of Anthropic.
    Anthropic,
    /// Messages API of Anthropic with strict tools.
    AnthropicStrict,
    /// Function declarations of the Gemini API.
    Gemini,
    /// Model Context Protocol: tools as a server lists them.
    Mcp,
}

impl Target {
    /// Returns the rule for names.
    fn name_rule(self) -> NameRule {
        match self {
            Target::OpenaiChat | Target::OpenaiResponses | Target::OpenaiStrict => openai::NAME_RULE,
            Target::Anthropic | Target::AnthropicStrict => anthropic::NAME_RULE,
            Target::Gemini => gemini::NAME_RULE,
            Target::Mcp => mcp::NAME_RULE,
        }
    }

    /// Returns the definition of a tool under its name for the target.
    fn definition(self, tool: &Tool, name: &str, custom_tools: bool) -> Result<Definition, Unsupported> {
        let unchanged = |value| Ok(Definition { value, notes: Vec::new() });
        match self {
            Target::OpenaiChat => unchanged(openai_chat(tool, name)),
            Target::OpenaiResponses => unchanged(openai_responses(tool, name, custom_tools)),
            Target::OpenaiStrict => openai::strict_function(tool, name),
            Target::Anthropic => anthropic::tool(tool, name),
            Target::AnthropicStrict => anthropic::strict_tool(tool, name),
            Target::Gemini => gemini::function_declaration(tool, name),
            Target::Mcp => mcp::definition(tool, name),
        }
    }
}

pub(crate) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    args.sources.fetch().await?;
    let runtime = args.sources.runtime(Limits::default().deadline, [])?;
    if let Some(unknown) = args.names.iter().find(|name| runtime.tool(name).is_none()) {
        // Preparing an unknown tool fails with the nearest name.
        runtime.prepare(unknown).await?;
    }
    // Tools that cannot be called are printed only by name.
    let is_callable = |tool: &Tool| {
        !matches!(runtime.availability(&tool.name), Some(Availability::Disabled { .. } | Availability::Unusable { .. }))
    };
    let named: HashSet<&str> =
        args.names.iter().filter_map(|name| runtime.tool(name)).map(|tool| tool.name.as_str()).collect();
    for tool in named.iter().filter_map(|name| runtime.tool(name)) {
        if let Some(unusable) = &tool.unusable {
            return Err(unusable.fault.clone().into());
        }
    }
    let chosen = runtime
        .tools()
        .filter(|tool| if args.names.is_empty() { is_callable(tool) } else { named.contains(tool.name.as_str()) });
    // Every name counts, so that a tool has the same one wherever it is printed.
    let names = Names::of(runtime.tools().map(|tool| tool.name.as_str()), args.target.name_rule());
    let mut printed = Vec::new();
    let mut exit = ExitCode::SUCCESS;
    for tool in chosen {
        let name = names.get(&tool.name);
        match args.target.definition(tool, name, !args.no_custom_tools) {
            Ok(mut definition) => {
                if name != tool.name {
                    definition.notes.insert(0, format!("the name is `{name}` for this target"));
                }
                report(&tool.name, &definition.notes);
                printed.push(match args.notes {
                    true => json!({ "tool": tool.name, "definition": definition.value, "notes": definition.notes }),
                    false => definition.value,
                });
            }
            Err(reason) => {
                exit = ExitCode::FAILURE;
                let message = format!("`{}` cannot be stated for this target: {reason}", render::one_line(&tool.name));
                render::explain(&anyhow::Error::msg(message));
                if args.notes {
                    printed.push(json!({ "tool": tool.name, "error": reason.to_string(), "notes": [] }));
                }
            }
        }
    }
    if let Target::AnthropicStrict = args.target {
        let definitions: Vec<&Value> =
            printed.iter().filter_map(|one| if args.notes { one.get("definition") } else { Some(one) }).collect();
        anthropic::exceeded_together(&definitions).iter().for_each(|sentence| render::warning(sentence));
    }
    render::print_json(&serde_json::to_string_pretty(&printed)?)?;
    Ok(exit)
}

/// Writes a warning for each difference between a tool and its definition.
fn report(name: &str, notes: &[String]) {
    for note in notes {
        render::warning(&format!("`{}`: {}", render::one_line(name), render::one_line(note)));
    }
}

/// Returns the definition of a tool for the chat completions API, with the schema of its source, without the parts that are
/// not for models.
pub(crate) fn openai_chat(tool: &Tool, name: &str) -> Value {
    let mut function = described(tool, name);
    function.insert("parameters".to_owned(), parameters(tool));
    json!({ "type": "function", "function": function })
}

/// Returns the definition of a tool for the responses API. With `custom_tools`, a tool that takes text is a custom tool.
pub(crate) fn openai_responses(tool: &Tool, name: &str, custom_tools: bool) -> Value {
    let of_type =
        |kind: &str| Map::from_iter([("type".to_owned(), json!(kind))].into_iter().chain(described(tool, name)));
    let definition = match tool.text.as_ref().filter(|_| custom_tools) {
        Some(text) => {
            let mut custom = of_type("custom");
            custom.insert("format".to_owned(), format(text));
            custom
        }
        None => {
            let mut function = of_type("function");
            function.insert("parameters".to_owned(), parameters(tool));
            // Strict mode supports only a part of JSON Schema; the runtime validates arguments by the whole of it.
            function.insert("strict".to_owned(), json!(false));
            function
        }
    };
    Value::Object(definition)
}

/// Returns the name and the description of a tool.
fn described(tool: &Tool, name: &str) -> Map<String, Value> {
    let description = tool.description.as_ref().map(|text| ("description".to_owned(), json!(text)));
    [("name".to_owned(), json!(name))].into_iter().chain(description).collect()
}

/// Returns the schema for models, which is empty for a tool without one.
fn parameters(tool: &Tool) -> Value {
    let empty = || json!({ "type": "object", "properties": {} });
    tool.model_input_schema().map_or_else(empty, |schema| openai::with_object_root(&schema))
}

/// Returns the format of the text that a custom tool takes.
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

    /// Creates a tool that takes text.
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
            openai_responses(&tool(Some(grammar.clone())), "patch", true),
            custom(json!({ "type": "grammar", "syntax": "lark", "definition": "start: /a+/" }))
        );
        assert_eq!(openai_responses(&tool(None), "patch", true), custom(json!({ "type": "text" })));
        let parameters = json!({
            "type": "object",
            "properties": { "patch": { "type": "string", "description": "the patch" } },
            "required": ["patch"],
            "additionalProperties": false,
        });
        let described = json!({ "name": "patch", "description": "change files", "parameters": parameters });
        assert_eq!(openai_chat(&tool(Some(grammar)), "patch"), json!({ "type": "function", "function": described }));
        let mut flat = described;
        (flat["type"], flat["strict"]) = (json!("function"), json!(false));
        assert_eq!(openai_responses(&tool(None), "patch", false), flat);
    }
}
