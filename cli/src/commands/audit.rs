//! `toolcrib audit`: the log of calls, read and verified. What a log is, the library knows.

mod show;
mod verify;

use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  toolcrib audit show --last 20                       the latest calls
  toolcrib audit show --day today --outcome denied    what was refused today
  toolcrib audit verify                               whether the log is still what was written";

/// Read the log of calls, and verify that nobody changed it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Verify(verify::Args),
    Show(show::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Verify(args) => verify::run(args),
        Command::Show(args) => show::run(args),
    }
}
