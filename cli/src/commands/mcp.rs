//! `toolcrib mcp`: serves the tools to other agents, over standard streams or HTTP.

mod config;
mod limits;
mod serve;
mod token;

use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  toolcrib mcp                          serve ./tools.json to one client
  toolcrib mcp --tools ./tools.json --allow-read=./docs
  toolcrib mcp --http 127.0.0.1:8931    serve many clients with tokens
  toolcrib mcp token new ada
  toolcrib mcp token revoke ada
  toolcrib mcp config claude-code       print the entry for a client

An agent starts the first form itself and talks to it over standard streams. Permissions are those \
of the command line, of trusted sources and of rules: the agent cannot change them. A call that a \
rule asks about is put to the user by the client; a client that cannot ask gets an identifier, \
which the user answers with `toolcrib approvals allow ID`.";

/// Serve the tools to other agents through the Model Context Protocol.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    serve: Box<serve::Args>,
}

#[derive(clap::Subcommand)]
enum Action {
    Config(config::Args),
    /// Create, list or revoke tokens of clients over HTTP
    Token(token::Args),
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Some(Action::Config(args)) => config::run(&args),
        Some(Action::Token(args)) => token::run(args),
        None => serve::run(*args.serve).await,
    }
}
