//! Options without effect on a command: commands that make no calls accept the options of those that do, so that both can be
//! given the same, and do not show them.

use clap::{Arg, Command};

/// Commands with the beginnings of the names of options that have no effect on them.
const INERT: [(&str, &[&str]); 6] = [
    ("list", OF_CALLS),
    ("schema", OF_CALLS),
    ("export", OF_CALLS),
    ("inspect", OF_CALLS),
    ("console", OF_CALLS),
    ("doctor", &["max-", "allow-", "ask-", "deny-", "strict"]),
];
/// Beginnings of options that act only on calls.
const OF_CALLS: &[&str] = &["max-"];

/// Hides the options without effect.
pub(super) fn hide(command: Command) -> Command {
    command.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        let Some((_, starts)) = INERT.iter().find(|(of, _)| *of == name) else { return command };
        let is_inert =
            |option: &Arg| option.get_long().is_some_and(|long| starts.iter().any(|it| long.starts_with(it)));
        command.mut_args(|option| if is_inert(&option) { option.hide(true) } else { option })
    })
}
