//! Length of the help: `-h` shows the options that most calls need, `--help` shows all of them with details and examples.

use clap::{Arg, Command};

/// Headings of options that only `--help` shows.
const LONG_ONLY: [&str; 5] =
    ["Limits", "Records", "Rules for calls", "Timeouts and retries", "Print instead of running"];
/// Beginnings of the names of other options that only `--help` shows.
const RARE: [&str; 17] = [
    "deny-",
    "allow-exec",
    "allow-delegate",
    "allow-meta",
    "allow-call",
    "allow-model",
    "dns",
    "net-ca",
    "strict",
    "tag",
    "developer",
    "top-p",
    "no-custom-tools",
    "media",
    "debug",
    "print-messages",
    "context",
];
/// Number of options above which `-h` is shortened.
const MAX_OPTIONS: usize = 20;
const MORE: &str = "This is a selection. All options, their details and examples: --help";

/// Shortens `-h` of every command with many options.
pub(crate) fn shorten(command: Command) -> Command {
    command.mut_subcommands(|command| {
        let command = shorten(command);
        if command.get_arguments().count() <= MAX_OPTIONS {
            return command;
        }
        command.mut_args(|option| if is_rare(&option) { option.hide_short_help(true) } else { option }).after_help(MORE)
    })
}

fn is_rare(option: &Arg) -> bool {
    option.get_help_heading().is_some_and(|heading| LONG_ONLY.contains(&heading))
        || option.get_long().is_some_and(|name| RARE.iter().any(|rare| name.starts_with(rare)))
}
