//! `toolcrib mcp token`: creates, lists and revokes the tokens of clients over HTTP.

use std::process::ExitCode;

use serde_json::json;

use crate::mcp::{TokenRecord, Tokens};
use crate::options::mcp_tokens;
use crate::render::{self, Advice, one_line};

const EXAMPLES: &str = "\
Examples:
  toolcrib mcp token new ada
  toolcrib mcp token list
  toolcrib mcp token revoke ada

A token is shown once. A running server notices a new and a revoked one.";
const HEADINGS: [&str; 2] = ["TOKEN", "CREATED"];

/// Create, list or revoke tokens.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Create a token and print it
    New {
        /// Name of the client, which records of its calls and approvals state
        name: String,
    },
    /// List the tokens, oldest first
    List {
        /// Print a JSON array, one object per token
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token: the next request with it is refused
    Revoke {
        /// Name of the token
        name: String,
    },
}

pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let tokens = mcp_tokens()?;
    match args.action {
        Action::New { name } => render::print(&tokens.create(&name)?)?,
        Action::List { json } => list(&tokens.list()?, json)?,
        Action::Revoke { name } => revoke(&tokens, &name)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(tokens: &[TokenRecord], json: bool) -> anyhow::Result<()> {
    if json {
        let all: Vec<_> = tokens.iter().map(|token| json!({ "name": token.name, "created": token.created })).collect();
        return render::print_json(&serde_json::to_string(&all)?);
    }
    let row = |token: &TokenRecord| [one_line(&token.name), format!("{:.0}", token.created)];
    render::print(&render::table(HEADINGS, tokens.iter().map(row)))
}

fn revoke(tokens: &Tokens, name: &str) -> anyhow::Result<()> {
    if !tokens.revoke(name)? {
        let hint = "`toolcrib mcp token list` lists the tokens";
        return Err(Advice::new(format!("there is no token `{}`", one_line(name)), hint).into());
    }
    render::aside(&format!("revoked `{}`", one_line(name)));
    Ok(())
}
