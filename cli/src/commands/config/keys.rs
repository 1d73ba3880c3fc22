//! `toolcrib config keys`: every key with its type, its default and its options, as far as the definitions of the options state them.

use std::process::ExitCode;

use clap::{Arg, Command, CommandFactory};
use serde_json::{Value, json};
use toolcrib_base::render::{self, Advice};
use toolcrib_base::suggestion;
use toolcrib_settings::config::Key;

const HEADINGS: [&str; 5] = ["KEY", "TYPE", "DEFAULT", "OPTION", "PURPOSE"];
/// Beginning and end of a default in the help of an option.
const DEFAULT: (&str, char) = ("[default: ", ']');
/// Cell without a value.
const NONE: &str = "-";

/// Prints the keys of a section, or all.
pub(super) fn keys(section: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let keys: Vec<&Key> = Key::all_keys().filter(|key| section.is_none_or(|section| key.section == section)).collect();
    if let (Some(section), true) = (section, keys.is_empty()) {
        let mut sections: Vec<&str> = Key::all_keys().map(|key| key.section).collect();
        sections.dedup();
        let message = format!("unknown section `{}`", render::one_line(section));
        return Err(Advice::new(message, suggestion::hint(section, &sections)).into());
    }
    let program = crate::Cli::command();
    let described = keys.into_iter().map(|key| Described { key, default: default_of(key, &program) });
    if json {
        let all: Vec<Value> = described.map(|key| key.json()).collect();
        render::print_json(&serde_json::to_string(&all)?)?;
    } else {
        render::print(&render::table(HEADINGS, described.map(|key| key.row())))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Key with its default.
struct Described {
    key: &'static Key,
    default: Option<String>,
}

impl Described {
    fn json(&self) -> Value {
        let key = self.key;
        let layers: Vec<&str> = key.layers().iter().map(|kind| kind.as_str()).collect();
        json!({
            "key": key.to_string(),
            "type": key.kind(),
            "default": self.default,
            "options": key.options().iter().map(|option| format!("--{option}")).collect::<Vec<_>>(),
            "deprecated": key.replaces_options(),
            "variables": key.variables,
            "layers": layers,
            "purpose": key.about(),
        })
    }

    fn row(&self) -> [String; 5] {
        let key = self.key;
        let options = key.options().iter().map(|option| format!("--{option}")).collect::<Vec<_>>().join(", ");
        let options = match (options.is_empty(), key.replaces_options()) {
            (true, _) => NONE.to_owned(),
            (_, true) => format!("{options} (deprecated)"),
            _ => options,
        };
        let default = self.default.clone().unwrap_or_else(|| NONE.to_owned());
        [key.to_string(), key.kind(), default, options, key.about().to_owned()]
    }
}

/// Returns the default of a key: its own, or the one that the definition of its option states.
fn default_of(key: &Key, program: &Command) -> Option<String> {
    if let Some(default) = key.default_value() {
        return Some(default.to_owned());
    }
    let options = key.options();
    let first = options.first()?;
    let option = program.get_subcommands().filter(|command| key.is_of(command.get_name())).find_map(|command| {
        command.get_arguments().find(|option| option.get_long().is_some_and(|long| options.contains(&long)))
    });
    let option = option.or_else(|| program.get_arguments().find(|option| option.get_long() == Some(first)));
    option.and_then(stated_default)
}

/// Returns the default that the definition or the help of an option states.
fn stated_default(option: &Arg) -> Option<String> {
    let values: Vec<String> =
        option.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if !values.is_empty() && option.get_action().takes_values() {
        return Some(values.join(","));
    }
    let help = option.get_help()?.to_string();
    let (_, rest) = help.rsplit_once(DEFAULT.0)?;
    Some(rest.split(DEFAULT.1).next()?.replace('`', ""))
}
