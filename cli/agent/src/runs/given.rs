//! Options that a run was started with: `--continue` takes the model and the permissions along. They are the typed options,
//! which are parsed once more in the place where they would be typed.

use std::env;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

use clap::ArgMatches;
use clap::parser::ValueSource;
use serde::{Deserialize, Serialize};

use super::masks::RunMasks;

/// Options of the server beside the model's name.
const SERVER: [&str; 2] = ["base-url", "api"];
/// Options that permissions consist of, with a value.
const PERMISSIONS: [&str; 23] = [
    "tools",
    "allow-read",
    "allow-write",
    "allow-env",
    "allow-net",
    "allow-secret",
    "allow-exec",
    "allow-call",
    "allow-hooks",
    "deny-read",
    "deny-write",
    "deny-env",
    "deny-net",
    "deny-secret",
    "deny-exec",
    "deny-call",
    "deny-hooks",
    "allow-tool",
    "ask-tool",
    "stage-tool",
    "deny-tool",
    "ask",
    "stage",
];
/// The same, without a value.
const PERMISSION_FLAGS: [&str; 6] =
    ["allow-delegate", "allow-meta", "allow-model", "deny-delegate", "deny-meta", "deny-model"];
/// Options with rules or denials that are not taken along: permissions without them would be wider. Variables give them too.
const FILES: [&str; 2] = ["config", "profile"];
/// The same, whose variables last.
const APPROVALS: [&str; 2] = ["approvals", "pending"];
/// Beginnings of the settings about permissions.
const SETTINGS: [&str; 8] =
    ["allow.", "deny.", "permissions.", "approvals.", "sources.", "labels.", "routes.", "run.stage"];

/// Options of this process.
static GIVEN: OnceLock<GivenOptions> = OnceLock::new();

/// Typed options of a process that began or resumed a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenOptions {
    /// Directory in which they were typed: they may name paths in it.
    pub(super) folder: String,
    /// Options of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) server: Vec<String>,
    /// Options of the permissions; `None` if there were others that no command line repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) permissions: Option<Vec<String>>,
}

/// Notes the options of this process, given its command line; only the first call has an effect.
pub fn use_given(matches: &ArgMatches) {
    let Some((_, leaf)) = matches.subcommand() else { return };
    // Fails only on a second call; `main` makes the only one.
    let _ = GIVEN.set(GivenOptions::of(matches, leaf));
}

/// Returns the options of this process as a run keeps them: without those that hold masked text.
pub(crate) fn kept(masks: &RunMasks) -> Option<GivenOptions> {
    let mut given = GIVEN.get()?.clone();
    let is_open = |text: &String| masks.mask_text(text) == *text;
    given.server.retain(is_open);
    given.permissions = given.permissions.filter(|options| options.iter().all(is_open));
    Some(given)
}

/// Returns `true` if the command line has an option, by its long name.
pub(super) fn is_typed(leaf: &ArgMatches, option: &str) -> bool {
    let id = option.replace('-', "_");
    // A command may lack an option.
    leaf.try_contains_id(&id).is_ok() && leaf.value_source(&id) == Some(ValueSource::CommandLine)
}

/// Returns `true` if the command line, or a variable, says something about permissions.
pub(super) fn has_permissions(matches: &ArgMatches, leaf: &ArgMatches) -> bool {
    PERMISSIONS.iter().chain(&PERMISSION_FLAGS).any(|option| is_typed(leaf, option)) || has_others(matches, leaf)
}

/// Returns `true` for an option about permissions, by its long name: it is taken along, or the permissions are not.
pub fn is_permission(option: &str) -> bool {
    PERMISSIONS.iter().chain(&PERMISSION_FLAGS).chain(&FILES).chain(&APPROVALS).any(|own| *own == option)
}

/// Returns `true` if `--set` assigns a key that begins so.
pub(super) fn assigns(matches: &ArgMatches, begins: impl Fn(&str) -> bool) -> bool {
    matches.get_many::<String>("set").into_iter().flatten().any(|assigned| begins(assigned))
}

fn has_others(matches: &ArgMatches, leaf: &ArgMatches) -> bool {
    let is_about = |assigned: &str| SETTINGS.iter().any(|beginning| assigned.starts_with(beginning));
    let source = |matches: &ArgMatches, option: &str| match matches.try_contains_id(option) {
        Ok(true) => matches.value_source(option),
        _ => None,
    };
    let is_given = |option: &&str| {
        [leaf, matches].iter().filter_map(|matches| source(matches, option)).any(|it| it != ValueSource::DefaultValue)
    };
    let is_typed = |option: &&str| source(leaf, option) == Some(ValueSource::CommandLine);
    assigns(matches, is_about) || FILES.iter().any(is_given) || APPROVALS.iter().any(is_typed)
}

impl GivenOptions {
    fn of(matches: &ArgMatches, leaf: &ArgMatches) -> Self {
        let folder = env::current_dir().map(|here| here.display().to_string()).unwrap_or_default();
        let values = |options: &[&str]| options.iter().map(|option| spelled(leaf, option)).collect::<Option<Vec<_>>>();
        let flags = PERMISSION_FLAGS.iter().filter(|option| is_typed(leaf, option)).map(|option| format!("--{option}"));
        let permissions = values(&PERMISSIONS).filter(|_| !has_others(matches, leaf));
        Self {
            folder,
            server: values(&SERVER).unwrap_or_default().concat(),
            permissions: permissions.map(|options| options.concat().into_iter().chain(flags).collect()),
        }
    }
}

/// Spells a typed option as arguments; `None` if a value is no text.
fn spelled(leaf: &ArgMatches, option: &str) -> Option<Vec<String>> {
    if !is_typed(leaf, option) {
        return Some(Vec::new());
    }
    let spelled = |value: &OsStr| match value.to_str()? {
        "" => Some(format!("--{option}")),
        value => Some(format!("--{option}={value}")),
    };
    leaf.get_raw(&option.replace('-', "_")).into_iter().flatten().map(spelled).collect()
}

/// Inserts options behind the name of the command.
pub(super) fn inserted(arguments: &[OsString], command: &str, options: &[String]) -> Vec<OsString> {
    let at = arguments.iter().skip(1).position(|argument| argument == command).map_or(arguments.len(), |at| at + 2);
    let (before, after) = arguments.split_at(at);
    before.iter().cloned().chain(options.iter().map(OsString::from)).chain(after.iter().cloned()).collect()
}
