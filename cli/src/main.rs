//! The program `toolcrib`: parses the command line, runs the command and reports its result. Exit codes: 0 success,
//! 1 failure, 2 usage error, 3 not verified, 4 stopped at a budget, 130 interrupted, 129 or 143 terminated. It uses only the library's public types.

mod allocator;
mod commands;
mod help;
mod open_files;
#[cfg(test)]
mod visible;

use std::ffi::OsString;
use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::task::Poll;

use anyhow::Context;
use clap::builder::FalseyValueParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use tokio::runtime::{self, Runtime};
use tokio::task::JoinError;
use toolcrib_agent::runs::{continued, use_given};
use toolcrib_base::render::{self, Advice};
use toolcrib_base::{async_runtime, folders, interrupt};
use toolcrib_settings::{config, secrets};

use commands::Command;

const EXAMPLES: &str = "\
Examples:
  toolcrib list                           tools and their permissions
  toolcrib init                           create a project with them
  toolcrib call get_time '{\"timezone\":\"UTC\"}'
  toolcrib run 'what changed in notes.md?' --model NAME --allow-read=.
  toolcrib call fs_read_file '{\"path\":\"notes.md\"}' --allow-read=./docs
  toolcrib chat --model NAME --allow-read=.
  toolcrib runs list                      saved runs that you can resume
  toolcrib console                        pages for looking and deciding
  toolcrib validate ./tools.json          check tool sources for problems
  toolcrib new tool greet                 create a tool in Rust
  toolcrib audit verify                   verify the audit log
  toolcrib doctor                         check the installation

Exit status: 0 success, 1 failure, 2 usage error, 3 no trusted signature,
4 at a budget, 130 interrupted, 129 or 143 terminated (SIGHUP, SIGTERM).";

/// Name of the program.
const PROGRAM: &str = "toolcrib";
/// Maximum width of the help.
const MAX_HELP_WIDTH: usize = 100;

/// Run tools that nobody has to trust.
///
/// Every tool is a WebAssembly component. Every call runs in a fresh sandbox without access to files, environment
/// variables or the network unless you grant it, has a deadline, and is recorded in the audit log.
#[derive(Parser)]
#[command(name = PROGRAM, bin_name = PROGRAM, version, after_help = EXAMPLES, max_term_width = MAX_HELP_WIDTH)]
struct Cli {
    #[command(flatten)]
    options: GlobalOptions,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(clap::Args)]
struct GlobalOptions {
    /// Use of colors; `auto` means on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t, help_heading = "General")]
    color: render::Color,
    /// Set a key of the settings for this command, such as `limits.max_memory=64MiB`; repeatable. `toolcrib config keys` lists all
    #[arg(long, global = true, value_name = "NAME=VALUE")]
    #[arg(help_heading = "General", hide_short_help = true)]
    set: Vec<String>,
    /// Add the settings of this profile of your settings file
    #[arg(long, global = true, value_name = "NAME", env = PROFILE_VARIABLE, hide_env_values = true)]
    #[arg(help_heading = "General", hide_short_help = true)]
    profile: Option<String>,
    /// Print plain lines for screen readers, without progress bars and symbols
    #[arg(long, global = true, env = "TOOLCRIB_PLAIN", hide_env_values = true, value_parser = FalseyValueParser::new())]
    #[arg(help_heading = "General", hide_short_help = true)]
    plain: bool,
}

/// Variable with the name of the profile.
const PROFILE_VARIABLE: &str = "TOOLCRIB_PROFILE";

impl Cli {
    /// Reads the command line, and returns it with the warnings about it. Ends the program after help, and after a usage error
    /// with code 2.
    ///
    /// # Errors
    ///
    /// The exit code after a mistake in the settings.
    fn read() -> Result<(Self, Vec<String>), ExitCode> {
        let mut arguments = arguments();
        let first = arguments.get(1).and_then(|name| name.to_str()).map(str::to_owned);
        let parse = |command: clap::Command, arguments: &[OsString]| {
            let arguments = folders::with_home(arguments.iter().cloned());
            let found = command.try_get_matches_from(arguments);
            found.unwrap_or_else(|error| leave(&help::advise(error, first.as_deref())))
        };
        let define = |arguments: &[OsString]| help::prepare(Self::define(first.as_deref()), arguments.iter().cloned());
        let mut given = parse(define(&arguments), &arguments);
        config::use_profile(given.get_one::<String>("profile").cloned());
        let assignments: Vec<String> = given.get_many("set").into_iter().flatten().cloned().collect();
        let assigned = config::use_assignments(&assignments, arguments.iter().cloned());
        if assigned.is_ok()
            && let Some(extended) = continued(&given, &arguments)
        {
            arguments = extended;
            given = parse(define(&arguments), &arguments);
        }
        use_given(&given);
        let warnings = config::deprecations(&given);
        let matches = match assigned.and_then(|()| config::with_defaults(|| define(&arguments), &given)) {
            Ok(Some(command)) => parse(command, &arguments),
            Ok(None) => given,
            Err(error) => {
                let cli = Self::from_arg_matches(&given).unwrap_or_else(|error| leave(&error));
                return Err(cli.command.refuse(&error));
            }
        };
        let cli = Self::from_arg_matches(&matches).unwrap_or_else(|error| leave(&error));
        Ok((cli, warnings))
    }

    /// Reads the command line again, with the settings as their files are now.
    ///
    /// # Errors
    ///
    /// A mistake in a settings file.
    fn read_again() -> anyhow::Result<Self> {
        let arguments = arguments();
        let first = arguments.get(1).and_then(|name| name.to_str());
        let define = || help::prepare(Self::define(first), arguments.iter().cloned());
        let parse =
            |command: clap::Command| command.try_get_matches_from(folders::with_home(arguments.iter().cloned()));
        let given = parse(define())?;
        let matches = match config::with_defaults(define, &given)? {
            Some(command) => parse(command)?,
            None => given,
        };
        Ok(Self::from_arg_matches(&matches)?)
    }

    /// Returns the definition of the command line for its first argument: with the command of this name alone, because the
    /// definition of all commands takes longer than most of them need to start.
    fn define(first: Option<&str>) -> clap::Command {
        let program = || {
            let program = clap::Command::new(PROGRAM).bin_name(PROGRAM).max_term_width(MAX_HELP_WIDTH);
            GlobalOptions::augment_args(program)
        };
        if let Some("--version" | "-V") = first {
            return program().version(env!("CARGO_PKG_VERSION"));
        }
        match first.and_then(Command::define) {
            Some(command) => program().subcommand_required(true).subcommand(command),
            None => Self::command(),
        }
    }
}

/// Ends the program after help, or after a usage error.
fn leave(usage: &clap::Error) -> ! {
    render::print_usage(usage);
    std::process::exit(usage.exit_code())
}

/// Returns the arguments of the program. `help settings` lists the keys of the settings.
fn arguments() -> Vec<OsString> {
    let given: Vec<OsString> = std::env::args_os().collect();
    match given.as_slice() {
        [program, help, settings] if help == "help" && settings == "settings" => {
            vec![program.clone(), "config".into(), "keys".into()]
        }
        _ => given,
    }
}

fn main() -> ExitCode {
    let (cli, warnings) = match Cli::read() {
        Ok(read) => read,
        Err(code) => return code,
    };
    render::use_color(cli.options.color);
    render::use_plain(cli.options.plain);
    warnings.iter().for_each(|warning| render::warning(warning));
    if let Command::CompileWorker(args) = &cli.command {
        // The worker sets its limits before any thread starts.
        return commands::compile_worker::run(args).unwrap_or_else(|error| render::failure(&error));
    }
    open_files::allow_many();
    let code = perform(cli.command).unwrap_or_else(|error| render::failure(&error));
    secrets::prompt::restore();
    code
}

/// Runs a command until it ends or a signal arrives. The command runs on its own threads, so a blocked command cannot
/// delay signal handling.
fn perform(command: Command) -> anyhow::Result<ExitCode> {
    const NO_THREADS: &str = "cannot start threads";
    let threads = threads(&command).context(NO_THREADS)?;
    let signals = runtime::Builder::new_current_thread().enable_all().build().context(NO_THREADS)?;
    let end = signals.block_on(async {
        interrupt::ignore_file_size_signal();
        let mut interrupted = pin!(interrupt::signal());
        // Registers the signal handlers before the command starts.
        if let Poll::Ready(code) = futures::poll!(&mut interrupted) {
            return Ok(code.into());
        }
        let mut task = threads.spawn(command.run());
        tokio::select! {
            biased;
            code = interrupted => {
                interrupt::shut_down(code, task).await;
                Ok(code.into())
            }
            end = &mut task => end.unwrap_or_else(|panicked| Err(internal_error(panicked))),
        }
    });
    // A thread may be blocked on standard input; it is not awaited.
    threads.shutdown_background();
    end
}

/// Creates the threads for a command; a single call needs one, and so does a server for one client, whose calls have
/// threads of their own.
fn threads(command: &Command) -> io::Result<Runtime> {
    let mut threads = runtime::Builder::new_multi_thread();
    let is_single = match command {
        Command::Call(_) => true,
        Command::Mcp(args) => args.is_for_one_client(),
        _ => false,
    };
    if is_single {
        threads.worker_threads(1);
    }
    async_runtime::build(threads.enable_all())
}

/// Converts a panic of a command into an error.
fn internal_error(panicked: JoinError) -> anyhow::Error {
    let text = panicked.try_into_panic().ok().and_then(|panic| match panic.downcast::<String>() {
        Ok(text) => Some(*text),
        Err(panic) => panic.downcast_ref::<&str>().map(|text| (*text).to_owned()),
    });
    let message = format!("internal error: {}", text.as_deref().unwrap_or("its task was cancelled"));
    Advice::new(message, "this is a bug in toolcrib; please report it").into()
}

#[cfg(test)]
mod tests {
    use toolcrib_settings::config::Key;

    use super::*;

    #[test]
    fn the_definition_of_one_command_is_that_of_all_commands() {
        fn described(command: &mut clap::Command) -> (String, String, Vec<String>) {
            let arguments = command.get_arguments().map(|argument| format!("{argument:?}")).collect();
            (command.render_long_help().to_string(), command.render_usage().to_string(), arguments)
        }
        let mut all = Cli::command();
        all.build();
        assert!(all.get_subcommands().count() > 30);
        for expected in all.get_subcommands_mut().filter(|command| command.get_name() != "help") {
            let mut alone = Cli::define(Some(expected.get_name()));
            alone.build();
            let names: Vec<&str> = alone.get_subcommands().map(clap::Command::get_name).collect();
            assert_eq!(names, [expected.get_name(), "help"]);
            let found = alone.find_subcommand_mut(expected.get_name()).expect("a command");
            assert_eq!(described(found), described(expected), "{}", expected.get_name());
        }
        assert_eq!(Cli::define(Some("--version")).render_version(), Cli::command().render_version());
    }

    #[test]
    fn a_panic_of_a_command_becomes_an_error() {
        let threads = Runtime::new().expect("threads");
        for (task, message) in [
            (threads.spawn(async { panic!("one of {}", 2) }), "internal error: one of 2"),
            (threads.spawn(async { panic!("plain") }), "internal error: plain"),
        ] {
            let end: Result<(), _> = threads.block_on(task);
            assert_eq!(internal_error(end.expect_err("a panic")).to_string(), message);
        }
    }

    #[test]
    fn each_option_of_the_table_exists_and_has_the_variables_of_the_table() {
        let command = Cli::command();
        let mut options: Vec<clap::Arg> = command.get_arguments().cloned().collect();
        let mut open: Vec<clap::Command> = command.get_subcommands().cloned().collect();
        while let Some(command) = open.pop() {
            options.extend(command.get_arguments().cloned());
            open.extend(command.get_subcommands().cloned());
        }
        for key in Key::all_keys() {
            for flag in key.options() {
                let named: Vec<_> = options.iter().filter(|option| option.get_long() == Some(flag)).collect();
                assert!(!named.is_empty(), "{key}: --{flag}");
                for variable in named.iter().filter_map(|option| option.get_env()) {
                    assert!(key.variables.iter().any(|known| variable == *known), "{key}: {variable:?}");
                }
            }
        }
    }
}
