//! Options that `--set` replaces. They are hidden and still accepted; each that is given is reported with the line to write in
//! its place.

use clap::parser::ValueSource;
use clap::{Arg, ArgGroup, ArgMatches, Command, Id};
use serde_json::json;
use toolcrib_base::render::{inert, shell_word};

use super::assignments::{Assignment, SET};
use super::defaults::leaf_of;
use super::key::{KEYS, Key, OptionOf};
use super::kind::Kind;
use crate::selection::split;

/// Returns a command without the options that `--set` replaces and without other hidden parts, for the completion of a shell.
pub fn without_hidden(command: &Command) -> Command {
    // Names of commands live as long as the program.
    let visible = clap::Command::new(&*command.get_name().to_owned().leak());
    let visible = command.get_about().into_iter().fold(visible, |visible, about| visible.about(about.clone()));
    let options = command.get_arguments().filter(|option| !option.is_hide_set() && !is_deprecated(option, command));
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    let visible = visible.args(options.cloned());
    let is_kept = |id: &&Id| visible.get_arguments().any(|option| option.get_id() == *id);
    let groups = command.get_groups().map(|group| {
        ArgGroup::new(group.get_id().clone()).args(group.get_args().filter(is_kept).cloned()).multiple(true)
    });
    let groups: Vec<ArgGroup> = groups.collect();
    visible.groups(groups).subcommands(below.map(without_hidden))
}

/// Hides the options that `--set` replaces in the help of a command and of those below it.
pub fn hide_deprecated(command: Command) -> Command {
    let hidden: Vec<Id> = command
        .get_arguments()
        .filter(|option| is_deprecated(option, &command))
        .map(|option| option.get_id().clone())
        .collect();
    hidden
        .into_iter()
        .fold(command, |command, id| command.mut_arg(id, |option| option.hide(true)))
        .mut_subcommands(hide_deprecated)
}

fn is_deprecated(option: &Arg, command: &Command) -> bool {
    option.get_long().is_some_and(|long| replaced(long, command.get_name()).is_some())
}

/// Returns the key that replaces an option of a command.
fn replaced(option: &str, command: &str) -> Option<&'static Key> {
    let is_it = |key: &&Key| key.is_in_place_of_option && key.is_of(command) && key.options().contains(&option);
    KEYS.iter().find(is_it)
}

/// Returns a warning for each given option that `--set` replaces.
pub fn deprecations(given: &ArgMatches) -> Vec<String> {
    let (command, options) = leaf_of(given);
    let is_typed = |id: &&Id| options.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    let warning = |id: &Id| {
        let option = id.as_str().replace('_', "-");
        let key = replaced(&option, command)?;
        let values = options.get_raw(id.as_str()).into_iter().flatten().map(|value| value.to_string_lossy());
        let set = |value: &str| format!("{SET} {}", shell_word(&assignment(key, value)));
        let line = match key.option {
            OptionOf::Flags(flags) => flags.iter().find(|(_, flag)| *flag == option).map(|(value, _)| set(value))?,
            _ if key.is_sensitive => set("VALUE"),
            _ => values.flat_map(|value| items(key, &value)).map(|value| set(&value)).collect::<Vec<_>>().join(" "),
        };
        Some(format!("`--{option}` is deprecated: use `{line}`"))
    };
    options.ids().filter(is_typed).filter_map(warning).collect()
}

/// Returns the assignment of a value, or one with a placeholder if the value cannot be printed and pasted as it is.
fn assignment(key: &Key, value: &str) -> String {
    let is_exact = |line: &String| inert(line) == *line && !line.contains(char::is_control);
    let listed = json!([value]).to_string();
    let lines = [value, &listed].map(|value| format!("{key}={value}")).into_iter();
    let mut lines = lines.filter(is_exact).filter(|line| Assignment::parse(line).is_ok());
    lines.next().unwrap_or_else(|| format!("{key}=VALUE"))
}

/// Splits a value of an option into values of the key.
fn items(key: &Key, value: &str) -> Vec<String> {
    // A comma may also separate the methods of a destination, and be a part of the name of a certificate's file.
    if !matches!(key.kind, Kind::List(_)) || matches!(key.name, "net" | "ca") {
        return vec![value.to_owned()];
    }
    let (tools, values) = split(value);
    values.split(',').map(|value| format!("{tools}{value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::find;

    #[test]
    fn a_line_assigns_the_value_or_a_placeholder() {
        for (key, value, line) in [
            ("deny.read", "my  dir", "deny.read=my  dir"),
            ("deny.read", "[id]", "deny.read=[\"[id]\"]"),
            ("deny.net", "[::1]:443", "deny.net=[::1]:443"),
            ("deny.read", "a\u{1b}b", "deny.read=[\"a\\u001bb\"]"),
            ("limits.max_output", "\u{1b}", "limits.max_output=VALUE"),
            ("model.temperature", "0.5", "model.temperature=0.5"),
            ("model.temperature", ".5", "model.temperature=VALUE"),
            ("model.http_retry_backoff", "0", "model.http_retry_backoff=0"),
        ] {
            assert_eq!(assignment(find(key).unwrap(), value), line, "{key}");
        }
        let split = |key: &str, value| items(find(key).unwrap(), value);
        assert_eq!(split("network.ca", "a,b.pem"), ["a,b.pem"]);
        assert_eq!(split("deny.env", "fs_*:A,B"), ["fs_*:A", "fs_*:B"]);
    }
}
