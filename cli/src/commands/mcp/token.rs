//! `toolcrib mcp token`: creates, lists and revokes the tokens of clients over HTTP.

use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use toolcrib_base::parse::lifetime;
use toolcrib_base::render::{self, Advice, one_line, shell_word};
use toolcrib_mcp::{DeclaredTokens, TokenRecord, TokenRights, TokenScope, Tokens};
use toolcrib_sources::options::ClientOptions;

const EXAMPLES: &str = "\
Examples:
  toolcrib mcp token new ada
  toolcrib mcp token new grafana --scope=metrics --for=90d
  toolcrib mcp token new bob -- --allow-read=./docs --deny-tool=fs_rm
  toolcrib mcp token list
  toolcrib mcp token revoke ada

A token is shown once. A running server notices a new and a revoked one.
Permissions and rules after `--` apply to this client, in addition to the server's own; relative folders start at \
the server's directory.";
const HEADINGS: [&str; 5] = ["TOKEN", "CREATED", "ENDS", "SCOPES", "OPTIONS"];

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
        /// Time after which the token is refused, such as `12h`, `90d` or `4w`; without it, never
        #[arg(long = "for", value_name = "TIME", value_parser = lifetime)]
        lifetime: Option<Duration>,
        /// Parts of the server that the token is for, separated by commas
        #[arg(long = "scope", value_name = "SCOPES", value_delimiter = ',', value_enum, default_value = "calls")]
        scopes: Vec<TokenScope>,
        /// Print the token and its entry for the file of `server.tokens`, instead of storing it
        #[arg(long)]
        declare: bool,
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
        Action::New { name, lifetime, scopes, declare: true, options } => {
            ClientOptions::parse(&options)?;
            let (token, entry) = DeclaredTokens::entry(&name, &TokenRights { options, scopes, lifetime })?;
            render::print(&format!("{token}\n\n{entry}"))?;
        }
        Action::New { name, lifetime, scopes, declare: false, options } => {
            ClientOptions::parse(&options)?;
            render::print(&tokens.create(&name, TokenRights { options, scopes, lifetime })?)?;
        }
        Action::List { json } => list(&tokens.list()?, json)?,
        Action::Revoke { name } => revoke(&tokens, &name)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(tokens: &[TokenRecord], json: bool) -> anyhow::Result<()> {
    if json {
        let one = |token: &TokenRecord| {
            json!({
                "name": token.name,
                "created": token.created,
                "expires": token.expires,
                "scopes": token.scopes,
                "options": token.options,
            })
        };
        let all: Vec<_> = tokens.iter().map(one).collect();
        return render::print_json(&serde_json::to_string(&all)?);
    }
    let words = |options: &[String]| options.iter().map(|option| shell_word(option)).collect::<Vec<_>>().join(" ");
    let options = |options: &[String]| if options.is_empty() { "-".to_owned() } else { one_line(&words(options)) };
    let now = Timestamp::now();
    let end = |token: &TokenRecord| match token.expires {
        Some(end) if end <= now => "ended".to_owned(),
        Some(end) => format!("{end:.0}"),
        None => "-".to_owned(),
    };
    let scopes = |token: &TokenRecord| token.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ");
    let row = |token: &TokenRecord| {
        let created = format!("{:.0}", token.created);
        [one_line(&token.name), created, end(token), scopes(token), options(&token.options)]
    };
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
