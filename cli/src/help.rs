//! Help of the commands: `-h` fits on one screen, `--help` shows everything in groups, with details and examples. Also the advice
//! about unknown commands and options.

mod advice;
mod brief;
mod full;
mod groups;
mod inert;

use std::ffi::OsString;

use clap::Command;
use toolcrib_settings::config;

pub(crate) use advice::advise;

/// Prepares the help of all commands; `arguments` are the program's arguments.
pub(crate) fn prepare(command: Command, arguments: impl IntoIterator<Item = OsString>) -> Command {
    let arguments: Vec<OsString> = arguments.into_iter().skip(1).collect();
    let has = |flag: &str| arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == flag);
    let (is_brief, is_long) = (has("-h"), has("--help") || arguments.first().is_none_or(|first| first == "help"));
    // Any other command does not wait for the layout of a help.
    if !is_brief && !is_long {
        return command;
    }
    let command = groups::arrange(inert::hide(config::hide_deprecated(command)));
    let path = path(&command, &arguments);
    match path.is_empty() {
        true if is_brief => groups::brief(command),
        true => command,
        false if is_brief => brief::fit(command, &path),
        false => full::arrange(command, &path),
    }
}

/// Names of the commands among the arguments, each below the one before it. Other words are passed over.
fn path(command: &Command, arguments: &[OsString]) -> Vec<String> {
    let (mut at, mut names) = (command, Vec::new());
    for word in arguments.iter().filter_map(|argument| argument.to_str()) {
        let Some(below) = at.find_subcommand(word) else { continue };
        names.push(below.get_name().to_owned());
        at = below;
    }
    names
}
