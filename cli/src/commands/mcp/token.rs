//! `toolcrib mcp token`: creates, lists and revokes the tokens of clients over HTTP.

use std::process::ExitCode;

use serde_json::json;
use toolcrib_base::render::{self, Advice, one_line, shell_word};
use toolcrib_mcp::{TokenRecord, Tokens};
use toolcrib_sources::options::ClientOptions;

const EXAMPLES: &str = "\
Examples:
  toolcrib mcp token new ada
  toolcrib mcp token new bob -- --allow-read=./docs --deny-tool=fs_rm
  toolcrib mcp token list
  toolcrib mcp token revoke ada

A token is shown once. A running server notices a new and a revoked one.
Permissions and rules after `--` apply to this client, in addition to the server's own; relative folders start at \
the server's directory.";
const HEADINGS: [&str; 3] = ["TOKEN", "CREATED", "OPTIONS"];

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
        /// Client name in the records of its calls and approvals
        name: String,
        /// Permissions and rules of this client, such as `--allow-read=./docs` or `--deny-tool=fs_rm`, and `--code`
        #[arg(last = true, value_name = "OPTION")]
        options: Vec<String>,
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
    let tokens = Tokens::of_user()?;
    match args.action {
        Action::New { name, options } => {
            ClientOptions::parse(&options)?;
            render::print(&tokens.create(&name, options)?)?;
        }
        Action::List { json } => list(&tokens.list()?, json)?,
        Action::Revoke { name } => revoke(&tokens, &name)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(tokens: &[TokenRecord], json: bool) -> anyhow::Result<()> {
    if json {
        let one =
            |token: &TokenRecord| json!({ "name": token.name, "created": token.created, "options": token.options });
        let all: Vec<_> = tokens.iter().map(one).collect();
        return render::print_json(&serde_json::to_string(&all)?);
    }
    let words = |options: &[String]| options.iter().map(|option| shell_word(option)).collect::<Vec<_>>().join(" ");
    let options = |options: &[String]| if options.is_empty() { "-".to_owned() } else { one_line(&words(options)) };
    let row = |token: &TokenRecord| [one_line(&token.name), format!("{:.0}", token.created), options(&token.options)];
    render::print(&render::table(HEADINGS, tokens.iter().map(row)))
}

fn revoke(tokens: &Tokens, name: &str) -> anyhow::Result<()> {
    if !tokens.revoke(name)? {
        let hint = "`toolcrib mcp token list` lists the tokens";
        return Err(Advice::new(format!("no token `{}`", one_line(name)), hint).into());
    }
    render::aside(&format!("revoked `{}`", one_line(name)));
    Ok(())
}
