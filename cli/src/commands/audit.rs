//! `toolcrib audit`: shows, verifies, forwards and prunes the audit log.

mod forward;
mod heads;
mod prune;
mod show;
mod verify;

use std::process::ExitCode;

use toolcrib_base::render;

pub(crate) use heads::AuditHeads;

const EXAMPLES: &str = "\
Examples:
  toolcrib audit show --last 20                     the latest calls
  toolcrib audit show --day today --outcome denied  today's denied calls
  toolcrib audit verify                             check the log for changes
  toolcrib audit forward https://otel.example.com   send it to another machine";

/// Show logged calls, verify that the log was not changed, forward and prune it.
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
    Forward(forward::Args),
    Prune(prune::Args),
}

/// Reports on standard error that the log does not exist yet.
fn note_beginning() {
    render::aside("no call has been logged yet: the first call creates the log");
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Verify(args) => verify::run(args).await,
        Command::Show(args) => show::run(args),
        Command::Forward(args) => forward::run(args).await,
        Command::Prune(args) => prune::run(args),
    }
}
