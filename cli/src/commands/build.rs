//! `toolcrib build`: compiles a tool in Rust to a component with embedded tool metadata. It runs cargo, and therefore the
//! package's build scripts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use toolcrib::Tool;
use toolcrib::source::descriptor;
use toolcrib_authoring::build_folder::BuildFolder;
use toolcrib_authoring::changes::Changes;
use toolcrib_authoring::{component, rust};
use toolcrib_base::parse::size_in_words;
use toolcrib_base::render::{self, Advice};
use toolcrib_settings::unrequested::{Unrequested, unrequested};
use toolcrib_sources::options::Compiling;

const EXAMPLES: &str = "\
Examples:
  toolcrib new tool greet && toolcrib build greet  creates greet/greet.wasm
  toolcrib build                                   the package in this folder
  toolcrib build --debug                           builds faster, runs slower
  toolcrib build greet --watch                     builds after each change
  toolcrib build --json | jq -r '.[].path'

The component is written to the package's folder under the name of its crate, and replaced only if \
every tool of the new one can be loaded. This runs cargo and the package's build scripts: build \
only packages you trust.

All tools are compiled in one folder of the cache, so that a second tool builds in seconds; \
CARGO_TARGET_DIR names another.

If the Rust target wasm32-wasip2 is missing, `rustup` installs it first.";

/// Build a Rust tool into a component.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Folder of the package
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Build without optimization, like `cargo build` without --release
    #[arg(long)]
    debug: bool,
    /// Print a JSON array, one object per component
    #[arg(long)]
    json: bool,
    /// Build again after each change of the sources, until interrupted
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    compiling: Compiling,
}

/// A built component.
struct BuiltComponent {
    path: PathBuf,
    bytes: usize,
    tools: Vec<Tool>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !args.watch {
        return build(&args).await;
    }
    let mut changes = Changes::below(&args.dir, false);
    loop {
        if let Err(error) = build(&args).await {
            render::explain(&error);
        }
        render::aside(&format!("watching {}; Ctrl-C ends", render::one_line(&args.dir.to_string_lossy())));
        let changed = changes.next().await;
        render::aside(&format!("{} changed", render::one_line(&changed.to_string_lossy())));
    }
}

async fn build(args: &Args) -> anyhow::Result<ExitCode> {
    // Locked until the components are installed: packages of one name share their file in the folder.
    let shared = match args.compiling.folder() {
        Some(cache) => Some(tokio::task::spawn_blocking(move || BuildFolder::open(&cache)).await??),
        None => None,
    };
    let artifacts = rust::build(&args.dir, args.debug, shared.as_ref()).await?;
    if artifacts.is_empty() {
        let hint =
            "a tool is a library with `crate-type = [\"cdylib\", \"rlib\"]` under `[lib]`, or a program with `fn main`";
        return Err(Advice::new(format!("the package in `{}` builds no component", args.dir.display()), hint).into());
    }
    let mut all = Vec::new();
    for artifact in &artifacts {
        all.push(install(artifact, args).await?);
    }
    if args.json {
        render::print_json(&json!(all.iter().map(record).collect::<Vec<_>>()).to_string())?;
    } else {
        let sheets: Vec<String> = all.iter().map(sheet).collect();
        render::print(&sheets.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Installs a cargo artifact in the package's folder, with its descriptors at the top level.
async fn install(artifact: &Path, args: &Args) -> anyhow::Result<BuiltComponent> {
    let path = args.dir.join(artifact.file_name().context("a cargo artifact has no file name")?);
    let program = component::read(artifact)?;
    let component = descriptor::sections(&program)
        .and_then(|tools| descriptor::described(&program, &tools))
        .map_err(|reason| anyhow::anyhow!("{}: {reason}", path.display()))?;
    let tools = component::put(&path, &component, &args.compiling).await?;
    for missing in unrequested(&tools) {
        let Unrequested { import, capability, .. } = &missing;
        let shown = render::one_line(import);
        render::warning(&format!(
            "the program imports `{shown}`, but no tool requests `{capability}`: every use is refused"
        ));
        render::hint(&missing.advice());
    }
    Ok(BuiltComponent { path: render::from_here(&path).to_path_buf(), bytes: component.len(), tools })
}

fn sheet(built: &BuiltComponent) -> String {
    let size = size_in_words(built.bytes.next_multiple_of(1 << 10));
    let mut lines = vec![format!("{} ({size})", built.path.display())];
    let line = |label: &str, text: &str| format!("  {label:8} {}", render::one_line(text));
    for Tool { name, description, .. } in &built.tools {
        lines.push(line("tool", description.as_ref().map_or(name.clone(), |text| format!("{name}: {text}")).as_str()));
    }
    // Imports of type definitions only are not used at run time.
    for import in imports(&built.tools).filter(|import| !import.functions.is_empty()) {
        lines.push(line("imports", &format!("{}: {}", import.from, import.functions.join(", "))));
    }
    lines.join("\n")
}

fn record(built: &BuiltComponent) -> serde_json::Value {
    let tools = built.tools.iter().map(|tool| json!({ "name": tool.name, "description": tool.description }));
    json!({
        "path": built.path.to_string_lossy(),
        "bytes": built.bytes,
        "tools": tools.collect::<Vec<_>>(),
        "imports": built.tools.first().and_then(|tool| tool.imports.as_deref()),
    })
}

/// Returns the imports of the component, shared by all its tools.
fn imports(tools: &[Tool]) -> impl Iterator<Item = &toolcrib::tool::Import> {
    tools.first().and_then(|tool| tool.imports.as_deref()).into_iter().flatten()
}
