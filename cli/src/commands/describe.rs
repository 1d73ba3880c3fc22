//! `toolcrib describe`: reads or writes the tool metadata embedded in a component, whatever its language. Nothing is
//! executed.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use toolcrib::source::{self, descriptor};
use toolcrib_authoring::component;
use toolcrib_base::input;
use toolcrib_base::render::{self, Advice};
use toolcrib_sources::options::Compiling;

const EXAMPLES: &str = "\
Examples:
  toolcrib describe greet.wasm                     show its tool metadata
  toolcrib describe greet.wasm --write greet.json  replace the metadata
  toolcrib describe greet.wasm --write greet.json --out new.wasm
  toolcrib describe old.wasm | toolcrib describe new.wasm --write -
  toolcrib describe words.wasm --wit wit/         embed the comments in WIT
  toolcrib describe words.wasm --wit wit/ --write words.json

A descriptor is one JSON object per tool, with the keys of an entry in a `tools.json`: `name`, \
`description`, `schema`, `capabilities`, `timeoutSec`, `limits`, `interface`. It only requests \
permissions; flags grant them.";

/// Read or write a component's embedded tool metadata.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("written").args(["write", "wit"]).multiple(true))]
pub(crate) struct Args {
    /// Path of the component
    #[arg(value_name = "COMPONENT")]
    component: PathBuf,
    /// Embed the descriptors from this file, or from standard input with `-`: one or more JSON objects, or an array of
    /// them. They replace the existing top-level descriptors
    #[arg(long, value_name = "FILE")]
    write: Option<String>,
    /// Embed the comments on functions and types from this WIT file or folder; compilers omit them
    #[arg(long, value_name = "PATH")]
    wit: Option<PathBuf>,
    /// Output path [default: COMPONENT is replaced]
    #[arg(long, value_name = "PATH", requires = "written")]
    out: Option<PathBuf>,
    /// Print the descriptors as one JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    compiling: Compiling,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut program = component::read(&args.component)?;
    let name = args.component.display().to_string();
    let out = args.out.as_ref().unwrap_or(&args.component);
    let written = args.wit.is_some() || args.write.is_some();
    if let Some(wit) = &args.wit {
        // The error may be in either file.
        let both = format!("{name} with {}", wit.display());
        program = source::documented(&program, wit).map_err(|reason| invalid(&both, &reason))?;
    }
    if let Some(from) = &args.write {
        let tools = read_descriptors(from).await?;
        program = descriptor::described(&program, &tools).map_err(|reason| invalid(&name, &reason))?;
    }
    let tools = descriptor::sections(&program).map_err(|reason| invalid(&name, &reason))?;
    if written {
        component::put(out, &program, &args.compiling).await?;
    }
    if args.json {
        render::print_json(&serde_json::to_string(&tools)?)?;
    } else if written {
        render::print_path(out)?;
    } else if tools.is_empty() {
        render::aside(&format!("info: `{name}` has no tool metadata; add it with `--write FILE`"));
    }
    for tool in tools.iter().filter(|_| !args.json && !written) {
        render::print_json(&serde_json::to_string_pretty(tool)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads descriptors from a file or standard input.
async fn read_descriptors(from: &str) -> anyhow::Result<Vec<serde_json::Value>> {
    let (text, name) = match from {
        "-" => (input::stdin().await, "standard input".to_owned()),
        file => (input::file(file), format!("`{file}`")),
    };
    let text = text.with_context(|| format!("cannot read descriptors from {name}"))?;
    let tools = descriptor::parse(&text).map_err(|reason| invalid(&name, &reason))?;
    if tools.is_empty() {
        let hint = "a descriptor is one JSON object per tool, such as `{\"name\": \"greet\"}`";
        return Err(Advice::new(format!("{name} contains no descriptor"), hint).into());
    }
    Ok(tools)
}

fn invalid(file: &str, reason: &impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("{file}: {reason}")
}
