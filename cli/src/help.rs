//! Length of the help: `-h` shows the options that most calls need, `--help` shows all of them with details and examples.
//! Also the advice about an unknown command.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, Error};

/// Headings of options that only `--help` shows.
const LONG_ONLY: [&str; 7] = [
    "Limits",
    "HTTP limits",
    "Records",
    "Registries",
    "Rules for calls",
    "Timeouts and retries",
    "Print instead of running",
];
/// Beginnings of the names of other options that only `--help` shows.
const RARE: [&str; 18] = [
    "deny-",
    "allow-exec",
    "allow-delegate",
    "allow-meta",
    "allow-call",
    "allow-model",
    "allow-hooks",
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

/// Adds the command for a call to an error about an unknown command, which may be the name of a tool. `first` is the first
/// argument of the program: an unknown command below another is no tool.
pub(crate) fn advise(mut error: Error, first: Option<&str>) -> Error {
    let has_suggestion = error.get(ContextKind::SuggestedSubcommand).is_some();
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && !has_suggestion
        && first == Some(name)
    {
        let tip = StyledStr::from(format!("to call a tool of this name, use 'toolcrib call {name}'"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

fn is_rare(option: &Arg) -> bool {
    option.get_help_heading().is_some_and(|heading| LONG_ONLY.contains(&heading))
        || option.get_long().is_some_and(|name| RARE.iter().any(|rare| name.starts_with(rare)))
}
