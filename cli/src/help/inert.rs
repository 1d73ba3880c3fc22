//! Options without effect on a command: commands that make no calls accept the options of those that do, so that both can be
//! given the same, and do not show them.

use clap::{Arg, Command};

/// Commands that load tools and call none.
const QUIET: [&str; 5] = ["list", "schema", "export", "inspect", CONSOLE];
/// Command that shows the records of calls.
const CONSOLE: &str = "console";
/// Options of calls that also place these records.
const OF_RECORDS: [&str; 3] = ["audit-dir", "approvals", "pending"];
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
        true => {
            let shows_records = command.get_name() == CONSOLE;
            let is_shown = |option: &Arg| shows_records && option.get_long().is_some_and(|it| OF_RECORDS.contains(&it));
            let has_effect = |option: &Arg| is_shown(option) || !acts_on_calls(option);
            command.mut_args(|option| if has_effect(&option) { option } else { option.hide(true) })
        }
        false => command,
    })
}

fn acts_on_calls(option: &Arg) -> bool {
    let is_of_calls = |name: &str| OF_CALLS.iter().any(|start| name.starts_with(start)) && !OTHERS.contains(&name);
    option.get_long().is_some_and(is_of_calls)
}
