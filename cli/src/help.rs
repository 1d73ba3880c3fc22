//! Help of the commands: `-h` fits on one screen, `--help` shows everything in groups, with details and examples. Also the advice
//! about unknown commands and options.

mod advice;
mod brief;
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
    if is_brief { brief::fit(command, &path(&arguments)) } else { command }
}

/// Arguments that may be names of commands, in their order.
fn path(arguments: &[OsString]) -> Vec<&str> {
    let words = arguments.iter().filter_map(|argument| argument.to_str());
    words.filter(|argument| !argument.starts_with('-')).collect()
}
