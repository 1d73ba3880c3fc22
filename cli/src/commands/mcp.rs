//! `toolcrib mcp`: settings of MCP clients.

mod config;

use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  toolcrib mcp config claude-code            print the entry and its file
  toolcrib mcp config cursor --project --write --tools ./tools.json";

/// Add the tools to an MCP client.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Config(config::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Config(args) => config::run(&args),
    }
}
