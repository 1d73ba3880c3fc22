//! Options without effect on a command: commands that make no calls accept the options of those that do, so that both can be
//! given the same, and do not show them.

use clap::{Arg, Command};

/// Commands that load tools and call none.
const QUIET: [&str; 4] = ["list", "schema", "export", "inspect"];
/// Options that act only on calls, by the beginnings of their names.
const OF_CALLS: [&str; 14] = [
    "max-",
    "fuel",
    "concurrency",
    "audit-dir",
    "no-log-arguments",
    "redact",
    "results-dir",
    "keyvalue-dir",
    "secrets-",
    "approvals",
    "pending",
    "dns",
    "net-ca",
    "otlp",
];
/// Options with such a beginning that also act without calls.
const OTHERS: [&str; 1] = ["max-cache"];

/// Hides the options without effect.
pub(super) fn hide(command: Command) -> Command {
    command.mut_subcommands(|command| match QUIET.contains(&command.get_name()) {
        true => command.mut_args(|option| if acts_on_calls(&option) { option.hide(true) } else { option }),
        false => command,
    })
}

fn acts_on_calls(option: &Arg) -> bool {
    let is_of_calls = |name: &str| OF_CALLS.iter().any(|start| name.starts_with(start)) && !OTHERS.contains(&name);
    option.get_long().is_some_and(is_of_calls)
}
