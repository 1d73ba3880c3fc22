//! `--help` of a command: every option with its whole text, in two columns. `clap` would give each option three lines and more.

use clap::builder::PossibleValue;
use clap::{Arg, Command};

use super::groups;

/// Arranges the help of the command at `path`; the texts in a list of commands stay short.
pub(super) fn arrange(command: Command, path: &[String]) -> Command {
    if let Some((first, below)) = path.split_first() {
        let command = command.mut_args(|option| if option.is_global_set() { whole(option) } else { option });
        return command.mut_subcommand(first.clone(), |command| arrange(command, below));
    }
    let about = command.get_long_about().or(command.get_about()).cloned().unwrap_or_default();
    let after = command.get_after_long_help().or(command.get_after_help()).cloned().unwrap_or_default();
    // A command without long texts has the layout of `-h`.
    let command = command.about(about).long_about(None::<&'static str>);
    let command = command.after_help(after).after_long_help(None::<&'static str>).mut_args(whole);
    groups::after(command, groups::width())
}

/// Makes the whole text of an option its short one.
fn whole(option: Arg) -> Arg {
    if option.is_hide_long_help_set() {
        return option.hide(true);
    }
    let text = option.get_long_help().or(option.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = text.replace("\n\n", "\n");
    let values = option.get_possible_values();
    let explains = |value: &&PossibleValue| !value.is_hide_set() && value.get_help().is_some();
    let has_explained = !option.is_hide_possible_values_set() && values.iter().any(|value| explains(&value));
    if has_explained {
        for value in values.iter().filter(|value| !value.is_hide_set()) {
            let help = value.get_help().map(|help| format!(": {help}")).unwrap_or_default();
            text += &format!("\n- {}{help}", value.get_name());
        }
    }
    let is_hidden = option.is_hide_possible_values_set() || has_explained;
    option.help(text).long_help(None::<&'static str>).hide_short_help(false).hide_possible_values(is_hidden)
}
