//! `toolcrib completions`: generates a shell completion script from the argument definitions.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;
use toolcrib_base::render;
use toolcrib_settings::config::without_hidden;

const EXAMPLES: &str = "\
Examples:
  toolcrib completions bash > ~/.toolcrib.bash
  toolcrib completions zsh > ~/.zfunc/_toolcrib
  toolcrib completions fish > ~/.config/fish/completions/toolcrib.fish";

/// Print a shell completion script.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Shell that will load the script
    shell: Shell,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut without_hidden(&crate::Cli::command()), "toolcrib", &mut script);
    render::print(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
