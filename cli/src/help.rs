//! Length of the help: `-h` shows the options that most calls need, `--help` shows all of them with details and examples.
//! Also the advice about an unknown command.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, Error};

/// Headings of options that only `--help` shows.
const LONG_ONLY: [&str; 8] = [
    "Limits",
    "HTTP limits",
    "Records",
    "Registries",
    "Rules for calls",
    "Timeouts and retries",
    "Print instead of running",
    "Budgets of a run, at which it pauses",
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
/// Options of `run -h` and `chat -h`, each with a text of one line: the help of a command with so many options fits a small
/// terminal only as a short list.
const BRIEF: [(&str, &str); 14] = [
    ("text", "The prompt, or `-` for standard input"),
    ("attach", "Add a text file or an image to the prompt"),
    ("latest", "Go on with the latest run of this folder"),
    ("resume", "Go on with a run; `toolcrib runs list` lists all"),
    ("base_url", "Base URL of the server [env: OAI_BASE_URL]"),
    ("model", "Name of the model [env: OAI_MODEL]"),
    ("max_steps", "Maximum requests to the model"),
    ("json", "Print one JSON event per line"),
    ("quiet", "Print the answer alone"),
    ("tools", "Source of tools [default: ./tools.json]"),
    ("allow_read", "Allow tools to read these folders"),
    ("allow_write", "Allow tools to read and write these folders"),
    ("allow_net", "Allow requests to these hosts"),
    ("ask_tool", "Ask before matching calls, such as `@destructive`"),
];
/// Commands with a brief `-h`.
const WITH_BRIEF: [&str; 2] = ["run", "chat"];
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

/// Reduces `run -h` and `chat -h` to [`BRIEF`], without headings, if `arguments` ask for it. The headings of `--help` stay.
pub(crate) fn brief(command: Command, arguments: impl IntoIterator<Item = OsString>) -> Command {
    let mut arguments = arguments.into_iter().skip(1);
    let name = arguments.next().unwrap_or_default();
    let Some(name) = WITH_BRIEF.into_iter().find(|brief| name == *brief) else { return command };
    if !arguments.any(|argument| argument == "-h") {
        return command;
    }
    let reduce = |option: Arg| match BRIEF.iter().find(|(id, _)| option.get_id() == *id) {
        Some((_, text)) => option.help(*text).help_heading(None::<&'static str>).hide_short_help(false),
        None => option.hide_short_help(true),
    };
    let command = command.mut_args(|option| option.hide_short_help(true));
    command.mut_subcommand(name, |command| command.mut_args(reduce))
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
