//! `toolcrib bundle`: packs tool sources into one file, and shows the content of such a file. Nothing is compiled or
//! run.

mod bill;
mod contents;
mod inspect;
mod output;
mod pack;

use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  toolcrib bundle pack ./tools.json -o weather.tar --version 1.2.0
  toolcrib bundle inspect weather.tar
  toolcrib call weather '{\"city\":\"Oslo\"}' --tools weather.tar

A bundle is an OCI image layout in a tar file, with the definitions of tools, the programs that they \
name, licences and a bill of materials. It runs on every system, and is read without unpacking. \
Equal content gives an equal file.";

/// Pack tools into one file, or show what such a file contains.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Pack(pack::Args),
    Inspect(Box<inspect::Args>),
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Pack(args) => pack::run(args).await,
        Action::Inspect(args) => inspect::run(*args).await,
    }
}
