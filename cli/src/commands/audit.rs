//! `toolcrib audit`: shows and verifies the audit log.

mod show;
mod verify;

use std::process::ExitCode;

use toolcrib_base::render;

const EXAMPLES: &str = "\
Examples:
  toolcrib audit show --last 20                     the latest calls
  toolcrib audit show --day today --outcome denied  today's denied calls
  toolcrib audit verify                             check the log for changes";

/// Show logged calls, and verify that the log was not changed.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Verify(verify::Args),
    Show(show::Args),
}

/// Reports on standard error that the log does not exist yet.
fn note_beginning() {
    render::aside("no call has been logged yet: the first call creates the log");
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Verify(args) => verify::run(args),
        Command::Show(args) => show::run(args),
    }
}
