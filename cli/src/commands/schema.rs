//! `toolcrib schema`: tool definitions for a model API.

mod stubs;

use std::collections::HashSet;
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::stub::StubLanguage;
use toolcrib::tool::Limits;
use toolcrib::{Availability, Tool};
use toolcrib_base::render;
use toolcrib_sources::options::{CODE_TOOLS, Sources, code_tools};
use toolcrib_sources::schemas::{Definition, NameRule, Names, Unsupported, anthropic, gemini, mcp, openai};

const EXAMPLES: &str = "\
Examples:
  toolcrib schema | jq '{model: \"m\", tools: .}'
  toolcrib schema fs_read_file fs_search
  toolcrib schema --for openai-strict fs_search
  toolcrib schema --for gemini | jq '{tools: [{functionDeclarations: .}]}'
  toolcrib schema --for mcp --notes | jq '.[] | {tool, notes}'
  toolcrib schema --for python > tools.pyi

Some targets accept only a part of JSON Schema, or fewer names. Each difference \
from the tool's own definition is a warning on standard error. A tool that a target cannot express at all is left \
out with an error, and the command exits \
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
    /// Typed functions for Python programs of `run_code`: a `.pyi`.
    Python,
    /// Typed functions for JavaScript programs of `run_code`: a `.d.ts`.
    Typescript,
}

impl Target {
    /// Returns the rule for names.
    fn name_rule(self) -> NameRule {
        match self {
            Target::OpenaiChat | Target::OpenaiResponses | Target::OpenaiStrict => openai::NAME_RULE,
            Target::Anthropic | Target::AnthropicStrict => anthropic::NAME_RULE,
            Target::Gemini => gemini::NAME_RULE,
            Target::Mcp | Target::Python | Target::Typescript => mcp::NAME_RULE,
        }
    }

    /// Returns the language of a target for programs.
    fn stub_language(self) -> Option<StubLanguage> {
        match self {
            Target::Python => Some(StubLanguage::Python),
            Target::Typescript => Some(StubLanguage::Typescript),
            _ => None,
        }
    }

    /// Returns the definition of a tool under its name for the target.
    fn definition(self, tool: &Tool, name: &str, custom_tools: bool) -> Result<Definition, Unsupported> {
        let unchanged = |value| Ok(Definition { value, notes: Vec::new() });
        match self {
            Target::OpenaiChat => unchanged(openai::function(tool, name)),
            Target::OpenaiResponses => unchanged(openai::responses_tool(tool, name, custom_tools)),
            Target::OpenaiStrict => openai::strict_function(tool, name),
            Target::Anthropic => anthropic::tool(tool, name),
            Target::AnthropicStrict => anthropic::strict_tool(tool, name),
            Target::Gemini => gemini::function_declaration(tool, name),
            Target::Mcp | Target::Python | Target::Typescript => mcp::definition(tool, name),
        }
    }
}

pub(crate) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    args.sources.fetch().await?;
    args.sources = args.sources.offering_code(args.names.iter().any(|name| CODE_TOOLS.contains(&name.as_str())));
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
        .chain(code_tools(&runtime))
        .filter(|tool| if args.names.is_empty() { is_callable(tool) } else { named.contains(tool.name.as_str()) });
    if let Some(language) = args.target.stub_language() {
        return stubs::print(&runtime, chosen, language, args.notes);
    }
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
