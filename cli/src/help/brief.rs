//! `-h`: as many options as fit on a screen of 24 lines, those that most calls need first, each with a short text and without
//! headings.

use clap::builder::StyledStr;
use clap::{Arg, Command};

/// Lines of a screen.
const MAX_LINES: usize = 24;
/// Options that only `--help` shows if there is no room for all: those under these headings.
const LATE_HEADINGS: [&str; 9] = [
    "Limits",
    "HTTP limits",
    "Records",
    "Registries",
    "Rules for calls",
    "Timeouts and retries",
    "Print instead of running",
    "Budgets (the run pauses at each)",
    "General",
];
/// Beginnings of other such options' names.
const LATE: [&str; 11] = [
    "allow-exec",
    "allow-delegate",
    "allow-meta",
    "allow-call",
    "allow-model",
    "allow-hooks",
    "allow-secret",
    "allow-env",
    "api-key",
    "strict",
    "context",
];
/// Options that most calls need, by their names; permissions first, so that they are there at any width.
const EARLY: [&str; 15] = [
    "allow-read",
    "allow-write",
    "allow-net",
    "ask",
    "model",
    "base-url",
    "tools",
    "json",
    "continue",
    "resume",
    "attach",
    "quiet",
    "max-steps",
    "ask-tool",
    "trust",
];
/// Texts of options that are too long for one line.
const TEXTS: [(&str, &str); 19] = [
    ("text", "The prompt, or `-` for standard input"),
    ("attach", "Add a text file or an image to the prompt"),
    ("continue", "Resume the latest run in this directory"),
    ("resume", "Resume a run; `toolcrib runs list` lists all"),
    ("load-messages", "Continue the conversation in this file"),
    ("save-messages", "Save the conversation to this file"),
    ("base-url", "Base URL of the server"),
    ("model", "Name of the model [env: OAI_MODEL]"),
    ("max-steps", "Maximum requests to the model"),
    ("json", "Print JSON"),
    ("tools", "Source of tools [default: ./tools.json]"),
    ("trust", "Trust the source with this digest"),
    ("allow-read", "Let tools read these folders"),
    ("allow-write", "Let tools read and write them"),
    ("allow-net", "Let tools reach these hosts"),
    ("ask", "Ask: destructive, writes or never"),
    ("allow-tool", "Allow matching calls"),
    ("ask-tool", "Ask before matching calls"),
    ("deny-tool", "Deny matching calls"),
];
/// Ends of the part of a help text that `-h` shows.
const ENDS: [&str; 4] = ["; ", ". ", ", such as", " ("];
const MORE: &str = "More options, details and examples: --help";

/// Shortens the help of the command at `path` until it fits.
pub(super) fn fit(command: Command, path: &[String]) -> Command {
    let at = path.iter().try_fold(&command, |at, name| at.find_subcommand(name));
    let ranked = at.map(ranked).unwrap_or_default();
    let change = |shown: usize| change(command.clone(), path, &ranked[..shown], shown < ranked.len());
    // The number of lines grows with the number of options.
    let (mut fits, mut high) = (0, ranked.len());
    while fits < high {
        let middle = (fits + high).div_ceil(2);
        if lines(change(middle), path) <= MAX_LINES { fits = middle } else { high = middle - 1 }
    }
    change(fits)
}

/// Names of the options that may be shown, the most needed first.
fn ranked(command: &Command) -> Vec<String> {
    let options = command.get_arguments().filter(|option| !option.is_hide_set() && !option.is_positional());
    let mut ranked: Vec<(usize, String)> = options.map(|option| (rank(option), option.get_id().to_string())).collect();
    // Stable: options of one rank keep their order.
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, id)| id).collect()
}

fn rank(option: &Arg) -> usize {
    let name = option.get_long().unwrap_or_default();
    let heading = option.get_help_heading();
    if let Some(place) = EARLY.iter().position(|early| *early == name) {
        return place;
    }
    let is_late = heading.is_some_and(|heading| LATE_HEADINGS.contains(&heading))
        || LATE.iter().any(|late| name.starts_with(late));
    EARLY.len() + if is_late { 2 } else { usize::from(heading.is_some()) }
}

/// Shows only the options `shown` of the command at `path`, and a hint about the others if there are any.
fn change(command: Command, path: &[String], shown: &[String], has_more: bool) -> Command {
    let Some((first, rest)) = path.split_first() else {
        let reduce = |option: Arg| {
            let is_shown = option.is_positional() || shown.iter().any(|id| option.get_id() == id.as_str());
            if !is_shown {
                return option.hide_short_help(true);
            }
            let text = short(&option);
            option.help(text).hide_short_help(false).hide_possible_values(true).help_heading(None::<&'static str>)
        };
        let command = command.mut_args(reduce);
        return if has_more { command.after_help(MORE) } else { command };
    };
    let global = |option: Arg| if option.is_global_set() { option.hide_short_help(true) } else { option };
    let command = command.mut_args(global);
    command.mut_subcommand(first.clone(), |below| change(below, rest, shown, has_more))
}

/// The first part of an option's help.
fn short(option: &Arg) -> StyledStr {
    let id = option.get_long().unwrap_or(option.get_id().as_str());
    if let Some((_, text)) = TEXTS.iter().find(|(name, _)| *name == id) {
        return (*text).into();
    }
    let text = option.get_help().map(ToString::to_string).unwrap_or_default();
    let default = text.find(" [").map_or("", |at| &text[at..]);
    let start = &text[..text.len() - default.len()];
    let end = ENDS.iter().filter_map(|end| start.find(end)).min().unwrap_or(start.len());
    start[..end].to_owned().into()
}

/// Lines in the short help of the command at `path`.
fn lines(mut command: Command, path: &[String]) -> usize {
    command.build();
    let mut at = &mut command;
    for name in path {
        let Some(below) = at.find_subcommand_mut(name) else { return 0 };
        at = below;
    }
    at.render_help().to_string().trim_end().lines().count()
}
