//! `toolcrib describe`: what a component says of its tools, read or written, whatever language it is made in. Nothing is run.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use toolcrib::source::{self, descriptor};

use crate::options::Compiling;
use crate::render::{self, Advice};
use crate::{component, input};

const EXAMPLES: &str = "\
Examples:
  toolcrib describe greet.wasm                                 what it says of its tools
  toolcrib describe greet.wasm --write greet.json              say something else
  toolcrib describe greet.wasm --write greet.json --out new.wasm
  echo '{\"name\":\"greet\",\"description\":\"Greet someone by name\"}' | toolcrib describe greet.wasm --write -
  toolcrib describe old.wasm | toolcrib describe new.wasm --write -
  toolcrib describe words.wasm --wit wit/                      put the comments of its WIT into it

A descriptor is one JSON object a tool, with the keys of an entry in a `tools.json`: `name`, `description`,
`schema`, `capabilities`, `timeoutSec`, `limits`, `interface`. It only asks: what a tool may use, flags decide.";

/// Read or write what a component says of its tools.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The component
    #[arg(value_name = "COMPONENT")]
    component: PathBuf,
    /// Write the descriptors of this file into it, or of `-` for standard input: a JSON object, several, or an array of
    /// them. They stand in the place of those at its top level
    #[arg(long, value_name = "FILE", group = "written")]
    write: Option<String>,
    /// Put what the comments of this WIT, a file or a folder, say of its functions and types into it: compilers leave
    /// them out
    #[arg(long, value_name = "PATH", group = "written")]
    wit: Option<PathBuf>,
    /// Where the described component is written [default: in the place of COMPONENT]
    #[arg(long, value_name = "PATH", requires = "written")]
    out: Option<PathBuf>,
    /// Print the descriptors as one JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    compiling: Compiling,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let program = component::read(&args.component)?;
    let name = args.component.display().to_string();
    let out = args.out.as_ref().unwrap_or(&args.component);
    if let Some(wit) = &args.wit {
        // The fault may be in either.
        let both = format!("{name} with {}", wit.display());
        let documented = source::documented(&program, wit).map_err(|wrong| faulty(&both, &wrong))?;
        component::put(out, &documented, &args.compiling).await?;
        return render::print_path(out).map(|()| ExitCode::SUCCESS);
    }
    let tools = match &args.write {
        None => descriptor::sections(&program).map_err(|wrong| faulty(&name, &wrong))?,
        Some(from) => stated(from).await?,
    };
    if args.write.is_some() {
        let described = descriptor::described(&program, &tools).map_err(|wrong| faulty(&name, &wrong))?;
        component::put(out, &described, &args.compiling).await?;
    }
    if args.json {
        render::print_json(&serde_json::to_string(&tools)?)?;
    } else if args.write.is_some() {
        render::print_path(out)?;
    } else if tools.is_empty() {
        render::aside(&format!("info: `{name}` says nothing of its tools; `--write FILE` makes it"));
    }
    for tool in tools.iter().filter(|_| !args.json && args.write.is_none()) {
        render::print_json(&serde_json::to_string_pretty(tool)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The descriptors of a file or of standard input.
async fn stated(from: &str) -> anyhow::Result<Vec<serde_json::Value>> {
    let (text, name) = match from {
        "-" => (input::stdin().await, "standard input".to_owned()),
        file => (input::file(file), format!("`{file}`")),
    };
    let text = text.with_context(|| format!("cannot read descriptors from {name}"))?;
    let tools = descriptor::parse(&text).map_err(|wrong| faulty(&name, &wrong))?;
    if tools.is_empty() {
        let hint = "a descriptor is one JSON object a tool, such as `{\"name\": \"greet\"}`";
        return Err(Advice::new(format!("{name} has no descriptor"), hint).into());
    }
    Ok(tools)
}

fn faulty(what: &str, wrong: &impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("{what}: {wrong}")
}
