//! Assignments of `--set` that a command cannot apply. They are refused: a command that ignored one would report success for
//! something that it did not do.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use toolcrib_base::render::usage_error;

use super::assignments::SET;
use super::defaults::default_of;
use super::key::{Key, OptionOf};
use super::layer::{Layer, Setting};

/// Option of the commands that read whole settings, and not only the defaults of their options.
const CONFIG: &str = "config";

/// Refuses each assignment without an effect on the command at `path` below `root`, where `given` has the typed options.
///
/// # Errors
///
/// A usage error that names the first key without an effect, or an option that excludes the option of a key.
pub(super) fn refuse_idle(root: &Command, path: &[&str], given: &ArgMatches, assigned: &Layer) -> anyhow::Result<()> {
    let Some(leaf) = path.iter().try_fold(root, |at, name| at.find_subcommand(name)) else { return Ok(()) };
    for setting in &assigned.settings {
        if !acts(root, leaf, assigned, setting) {
            let name = &setting.name;
            let command = path.join(" ");
            return Err(usage_error(format!("{SET}: `toolcrib {command}` does not use `{name}`; leave it out")));
        }
        if let Some(other) = excluded_by(leaf, given, setting.key) {
            return Err(usage_error(format!("{SET}: `{}` cannot be used with `--{other}`", setting.name)));
        }
    }
    Ok(())
}

/// Returns `true` if a command applies a setting.
pub(super) fn acts(root: &Command, leaf: &Command, layer: &Layer, setting: &Setting) -> bool {
    let key = setting.key;
    match key.option {
        OptionOf::None | OptionOf::Adds(_) => defines(leaf, CONFIG) || key.also_of.contains(&leaf.get_name()),
        OptionOf::Value(_) | OptionOf::Flags(_) if !key.is_of(leaf.get_name()) => false,
        OptionOf::Value(option) => defines(leaf, option) || defines(root, option),
        // The default of flags has no flag of its own.
        OptionOf::Flags(_) => match default_of(key, layer, setting) {
            Some((flag, _)) => defines(leaf, flag) || defines(root, flag),
            None => key.options().into_iter().any(|flag| defines(leaf, flag) || defines(root, flag)),
        },
    }
}

fn defines(command: &Command, option: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_long() == Some(option))
}

/// Returns a typed option that excludes the option of a key.
fn excluded_by(leaf: &Command, given: &ArgMatches, key: &Key) -> Option<&'static str> {
    let options = key.options();
    let own = leaf.get_arguments().find(|argument| argument.get_long().is_some_and(|long| options.contains(&long)))?;
    let excluded = leaf.get_arg_conflicts_with(own);
    let is_typed = |other: &&&str| {
        let excluded = excluded.iter().find(|argument| argument.get_long() == Some(**other));
        excluded
            .is_some_and(|argument| given.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine))
    };
    key.unless.iter().find(is_typed).copied()
}
