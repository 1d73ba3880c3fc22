//! The program `toolcrib`: parse what was asked, do it, say how it ended. Exit codes: 0 done, 1 the work failed, 2 wrong
//! use, 130 interrupted. It knows the library's types and no dialect, no engine and no sandbox.

mod agent;
mod commands;
mod interrupt;
mod options;
mod render;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use commands::Command;

const EXAMPLES: &str = "\
Examples:
  toolcrib list                                    tools of ./tools.json, with what each may use
  toolcrib call get_time '{\"timezone\":\"UTC\"}'      one call, in a sandbox of its own
  toolcrib run 'what changed in notes.md?' --model NAME --allow-read=.
  toolcrib call fs_read_file '{\"path\":\"notes.md\"}' --allow-read=./docs
  toolcrib validate ./tools.json                   every problem, before an agent meets it
  toolcrib doctor                                  what is missing on this machine, and the cure

Exit status: 0 done, 1 the work failed, 2 wrong use, 130 interrupted.";

/// Run tools that nobody has to trust.
///
/// Every tool is a WebAssembly component. Every call of one runs in a fresh sandbox that sees no file, no variable and
/// no network unless you allow it, ends at its deadline, and leaves one record in the audit log.
#[derive(Parser)]
#[command(name = "toolcrib", version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    /// When to colour messages: `auto` means on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t, help_heading = "General")]
    color: render::Color,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    render::use_color(cli.color);
    perform(cli.command).unwrap_or_else(|error| render::failure(&error))
}

/// Runs a command to its end or to the person's. An interrupted command is dropped, which stops its guests and records
/// the calls that were under way.
fn perform(command: Command) -> anyhow::Result<ExitCode> {
    let threads = tokio::runtime::Runtime::new().context("cannot start the threads of the program")?;
    let end = threads.block_on(async {
        tokio::select! {
            // Whoever interrupts is listened to before anything is done.
            biased;
            code = interrupt::requested() => Ok(code),
            end = command.run() => end,
        }
    });
    // A thread may be stuck in a read of standard input: nobody waits for it.
    threads.shutdown_background();
    end
}
