//! Length of the help: `-h` fits on one screen, `--help` shows everything in groups, with details and examples. Also the advice
//! about an unknown command.

mod brief;
mod groups;
mod inert;

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Command, Error};
use toolcrib_settings::config;

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

/// Words of a tip to pass an unknown option as a value.
const AS_A_VALUE: &str = "as a value, use";

/// Adds the command for a call to an error about an unknown command, which may be the name of a tool. `first` is the first
/// argument of the program: an unknown command below another is no tool. The name of an option gets that option.
pub(crate) fn advise(mut error: Error, first: Option<&str>) -> Error {
    if first == Some("call")
        && let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested)
    {
        // Arguments of a tool are JSON: after `--`, they would be those of a program.
        let others: Vec<StyledStr> = tips.iter().filter(|tip| !tip.to_string().contains(AS_A_VALUE)).cloned().collect();
        error.remove(ContextKind::Suggested);
        if !others.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(others));
        }
    }
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && first == Some(name)
        && name == "version"
    {
        let tip = StyledStr::from("the option is '--version'");
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        return error;
    }
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
