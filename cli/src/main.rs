//! The program `toolcrib`: parse what was asked, do it, say how it ended. Exit codes: 0 done, 1 the work failed, 2 wrong
//! use, 130 interrupted, 129 or 143 told to end. It knows the library's types and no dialect, no engine and no sandbox.

mod agent;
mod calls;
mod commands;
mod compiler;
mod component;
mod config;
mod http;
mod input;
mod interrupt;
mod media;
mod open_files;
mod options;
mod permission;
mod progress;
mod render;
mod rust;
mod secrets;
mod telemetry;
mod watch;

use std::io;
use std::panic;
use std::pin::pin;
use std::process::ExitCode;
use std::task::Poll;

use anyhow::Context;
use clap::Parser;
use tokio::runtime::{self, Runtime};
use tokio::task::JoinError;

use commands::Command;
use render::Advice;

const EXAMPLES: &str = "\
Examples:
  toolcrib list                                    tools of ./tools.json, with what each may use
  toolcrib call get_time '{\"timezone\":\"UTC\"}'      one call, in a sandbox of its own
  toolcrib run 'what changed in notes.md?' --model NAME --allow-read=.
  toolcrib call fs_read_file '{\"path\":\"notes.md\"}' --allow-read=./docs
  toolcrib validate ./tools.json                   every problem, before an agent meets it
  toolcrib new tool greet                          a tool of your own, in Rust
  toolcrib audit verify                            whether anybody changed the log of calls
  toolcrib doctor                                  what is missing on this machine, and the cure

Exit status: 0 done, 1 the work failed, 2 wrong use, 130 interrupted, 129 or 143 told to end
(SIGTERM).";

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
    if let Command::CompileWorker(args) = &cli.command {
        // Its limits stand before there is any thread.
        return commands::compile_worker::run(args).unwrap_or_else(|error| render::failure(&error));
    }
    open_files::allow_many();
    let code = perform(cli.command).unwrap_or_else(|error| render::failure(&error));
    secrets::prompt::restore();
    code
}

/// Runs a command to its end or to the person's. The command has threads of its own, so that nothing it is stuck in
/// keeps this one from hearing a signal.
fn perform(command: Command) -> anyhow::Result<ExitCode> {
    const NO_THREADS: &str = "cannot start the threads of the program";
    let threads = threads().context(NO_THREADS)?;
    let listening = runtime::Builder::new_current_thread().enable_all().build().context(NO_THREADS)?;
    let end = listening.block_on(async {
        interrupt::outlive_large_files();
        let mut interrupted = pin!(interrupt::requested());
        // Whoever interrupts is listened to before anything is done.
        if let Poll::Ready(code) = futures::poll!(&mut interrupted) {
            return Ok(code.into());
        }
        let mut task = threads.spawn(command.run());
        tokio::select! {
            biased;
            code = interrupted => {
                interrupt::leave(code, task).await;
                Ok(code.into())
            }
            end = &mut task => end.unwrap_or_else(|broken| Err(defect(broken))),
        }
    });
    // A thread may be stuck in a read of standard input: nobody waits for it.
    threads.shutdown_background();
    end
}

/// The threads on which a command runs. Where the system gives no thread, tokio panics, and says so in its own way.
fn threads() -> io::Result<Runtime> {
    let told = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let made = panic::catch_unwind(Runtime::new);
    panic::set_hook(told);
    made.unwrap_or_else(|_| Err(io::Error::other("the system gives no more threads or memory")))
}

/// What is said of a command that broke where it should have failed.
fn defect(broken: JoinError) -> anyhow::Error {
    let said = broken.try_into_panic().ok().and_then(|panic| match panic.downcast::<String>() {
        Ok(text) => Some(*text),
        Err(panic) => panic.downcast_ref::<&str>().map(|text| (*text).to_owned()),
    });
    let message = format!("toolcrib itself has failed: {}", said.as_deref().unwrap_or("its task broke off"));
    Advice::new(message, "this is a defect of the program and not of your use: please report it").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_command_is_told_as_an_error() {
        let threads = Runtime::new().expect("threads");
        for (task, said) in [
            (threads.spawn(async { panic!("one of {}", 2) }), "toolcrib itself has failed: one of 2"),
            (threads.spawn(async { panic!("plain") }), "toolcrib itself has failed: plain"),
        ] {
            let broken: Result<(), _> = threads.block_on(task);
            assert_eq!(defect(broken.expect_err("a panic")).to_string(), said);
        }
    }
}
