//! `toolcrib mcp`: serves the tools to other agents, over standard streams or HTTP.

mod config;
mod endpoint;
mod limits;
mod live;
mod noted_log;
mod quotas;
mod serve;
mod sign_in;
mod store;
mod token;

use std::iter::once;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{Error, ErrorKind};

use toolcrib_settings::config::{Assignment, SET};

use super::Command;

pub(crate) use config::settings_file;
pub(crate) use store::connect as connect_store;

const EXAMPLES: &str = "\
Examples:
  toolcrib mcp                          serve ./tools.json to one client
  toolcrib mcp --tools ./tools.json --allow-read=./docs
  toolcrib mcp --http 127.0.0.1:8931    serve many clients with tokens
  toolcrib mcp token new ada
  toolcrib mcp token revoke ada
  toolcrib mcp config claude-code       print the entry for a client

An agent starts the first form itself and talks to it over standard streams. Permissions come from the command \
line, trusted sources and rules: the agent cannot change them. A call that a \
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

impl Args {
    /// Returns `true` for a server over standard streams.
    pub(crate) fn is_for_one_client(&self) -> bool {
        self.action.is_none() && !self.serve.is_http()
    }
}

/// Reads the options of this server again, with the settings as their files are now.
///
/// # Errors
///
/// A mistake in a settings file.
fn read_again() -> anyhow::Result<serve::Args> {
    match crate::Cli::read_again()?.command {
        Command::Mcp(Args { action: None, serve }) => Ok(*serve),
        _ => anyhow::bail!("the command line is not one of a server"),
    }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Some(Action::Config(args)) => config::run(&args),
        Some(Action::Token(args)) => token::run(args).await,
        None => serve::run(*args.serve).await,
    }
}

/// Checks the arguments that a client starts this program with: they must start a server over standard streams.
///
/// # Errors
///
/// A usage error.
pub(crate) fn check_arguments(arguments: &[String]) -> Result<(), Error> {
    let wrong = |message: &str| Error::raw(ErrorKind::ValueValidation, format!("{message}\n"));
    let no_server = || wrong("these arguments start no server: expected `mcp` and its options");
    let line = once("toolcrib").chain(arguments.iter().map(String::as_str));
    let given = crate::Cli::try_parse_from(line).and_then(|cli| {
        let mut assigned = cli.options.set.iter().map(|text| Assignment::parse(text).map(drop));
        assigned.try_for_each(|checked| checked.map_err(|error| wrong(&format!("{SET}: {error}"))))?;
        Ok(cli.command)
    });
    match given {
        Ok(Command::Mcp(Args { action: None, serve })) => match serve.is_http() {
            false => Ok(()),
            true => Err(wrong("`--http` starts no server for a client: it talks over standard streams")),
        },
        Ok(_) => Err(no_server()),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp => Err(wrong("`--help` starts no server")),
            ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Err(no_server()),
            _ => Err(error),
        },
    }
}
