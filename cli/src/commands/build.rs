//! `toolcrib build`: a tool in Rust becomes a component that says what it is at its top level. It runs cargo, and so the
//! package's build scripts, as `cargo build` would.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use toolcrib::Tool;
use toolcrib::source::descriptor;

use crate::options::{Compiling, size_in_words};
use crate::render::{self, Advice};
use crate::{component, rust};

const EXAMPLES: &str = "\
Examples:
  toolcrib new tool greet && toolcrib build greet    greet/greet.wasm
  toolcrib build                                     the package in this folder
  toolcrib build --debug                             faster to build, larger, and slower to run
  toolcrib build --json | jq -r '.[].path'

The component lies in the package's folder under the name of its crate, and is replaced only by one of which
every tool can be loaded. This runs cargo, which runs what the package brings: build what you trust.";

/// Build a tool in Rust.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The folder of the package
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Without optimization, as `cargo build` without --release
    #[arg(long)]
    debug: bool,
    /// Print a JSON array, one object a component
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    compiling: Compiling,
}

/// A component that was built.
struct Built {
    path: PathBuf,
    bytes: usize,
    tools: Vec<Tool>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let artifacts = rust::build(&args.dir, args.debug).await?;
    if artifacts.is_empty() {
        let hint =
            "a tool is a library with `crate-type = [\"cdylib\", \"rlib\"]` under `[lib]`, or a program with `fn main`";
        return Err(Advice::new(format!("the package in `{}` makes no component", args.dir.display()), hint).into());
    }
    let mut all = Vec::new();
    for artifact in &artifacts {
        all.push(built(artifact, &args).await?);
    }
    if args.json {
        render::print_json(&json!(all.iter().map(record).collect::<Vec<_>>()).to_string())?;
    } else {
        let sheets: Vec<String> = all.iter().map(sheet).collect();
        render::print(&sheets.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Puts what cargo made into the package's folder, with its descriptors where they are found without looking inside.
async fn built(artifact: &Path, args: &Args) -> anyhow::Result<Built> {
    let path = args.dir.join(artifact.file_name().context("an artifact of cargo has no name")?);
    let program = component::read(artifact)?;
    let component = descriptor::sections(&program)
        .and_then(|tools| descriptor::described(&program, &tools))
        .map_err(|wrong| anyhow::anyhow!("{}: {wrong}", path.display()))?;
    let tools = component::put(&path, &component, &args.compiling).await?;
    Ok(Built { path: render::from_here(&path).to_path_buf(), bytes: component.len(), tools })
}

fn sheet(built: &Built) -> String {
    let size = size_in_words(built.bytes.next_multiple_of(1 << 10));
    let mut lines = vec![format!("{} ({size})", built.path.display())];
    let line = |label: &str, text: &str| format!("  {label:8} {}", render::one_line(text));
    for Tool { name, description, .. } in &built.tools {
        lines.push(line("tool", description.as_ref().map_or(name.clone(), |said| format!("{name}: {said}")).as_str()));
    }
    // Of an import with types alone it uses nothing.
    for import in imports(&built.tools).filter(|import| !import.functions.is_empty()) {
        lines.push(line("imports", &format!("{}: {}", import.from, import.functions.join(", "))));
    }
    lines.join("\n")
}

fn record(built: &Built) -> serde_json::Value {
    let tools = built.tools.iter().map(|tool| json!({ "name": tool.name, "description": tool.description }));
    json!({
        "path": built.path.to_string_lossy(),
        "bytes": built.bytes,
        "tools": tools.collect::<Vec<_>>(),
        "imports": built.tools.first().and_then(|tool| tool.imports.as_deref()),
    })
}

/// What the component imports, which is the same for each of its tools.
fn imports(tools: &[Tool]) -> impl Iterator<Item = &toolcrib::tool::Import> {
    tools.first().and_then(|tool| tool.imports.as_deref()).into_iter().flatten()
}
