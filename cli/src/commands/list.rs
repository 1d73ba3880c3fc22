//! `toolcrib list`: the tools there are and what each may use, without running any.

use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::tool::Limits;
use toolcrib::{Runtime, Tool};

use crate::options::Sources;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  toolcrib list --tools ./tools.json --allow-read=./docs
  toolcrib list --json | jq -r '.[].name'";
const HEADINGS: [&str; 4] = ["NAME", "MAY USE", "SOURCE", "DESCRIPTION"];

/// List the tools and what each may use.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print a JSON array, one object a tool
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sources: Sources,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let runtime = args.sources.runtime(Limits::default().deadline, [])?;
    if args.json {
        let tools: Vec<Value> = runtime.tools().map(|tool| record(&runtime, tool)).collect();
        render::print_json(&serde_json::to_string(&tools)?)?;
    } else {
        render::print(&render::table(HEADINGS, runtime.tools().map(|tool| row(&runtime, tool))))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn record(runtime: &Runtime, tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "source": { "format": tool.origin.format, "path": tool.origin.path.to_string_lossy(), "index": tool.origin.index },
        "program": tool.body.program().map(|program| program.to_string_lossy()),
        "granted": granted(runtime, tool),
    })
}

fn row(runtime: &Runtime, tool: &Tool) -> [String; 4] {
    let granted = granted(runtime, tool);
    let description = render::one_line(tool.description.as_deref().unwrap_or_default());
    let first_sentence = description.split_inclusive(". ").next().unwrap_or_default();
    [
        render::one_line(&tool.name),
        if granted.is_empty() { "nothing".to_owned() } else { render::one_line(&granted.join(", ")) },
        render::one_line(&render::from_here(&tool.origin.path).to_string_lossy()),
        first_sentence.trim_end_matches(['.', ' ']).to_owned(),
    ]
}

fn granted(runtime: &Runtime, tool: &Tool) -> Vec<String> {
    runtime.grant(&tool.name).map(|grant| grant.granted()).unwrap_or_default()
}
