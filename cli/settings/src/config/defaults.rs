//! Values of settings as option defaults: an option that is given keeps its value, and so does one whose environment
//! variable is set, unless `--set` sets its key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use clap::builder::{OsStr, Resettable};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use serde_json::Value;

use super::assignments::{self, SET};
use super::effect::refuse_idle;
use super::key::{ANY, KEYS, Key, OptionOf};
use super::layer::{Layer, Setting};
use super::layer_kind::LayerKind;
use super::layers::Layers;
use super::mistake::repair;
use crate::selection::one_folder;
use crate::trust::{TrustRecords, Trusted};

/// Commands that work without settings files, such as those that repair or review them.
const WITHOUT: [&str; 5] = [CONFIG, "completions", "trust", "compile-worker", "help"];
/// Command that shows and changes the settings.
const CONFIG: &str = "config";
/// Command that reports mistakes in the settings itself.
const DOCTOR: &str = "doctor";

/// Options of folders, by their keys.
const FOLDER_OPTIONS: [&str; 2] = ["read", "write"];

/// Origin of an option's value in a settings file.
#[derive(Debug)]
struct Origin {
    kind: LayerKind,
    /// Layer and place, for people.
    shown: String,
    /// Commands that remove or correct the value.
    repair: String,
    /// Folder of the project that grants the value's paths.
    project: Option<PathBuf>,
}

/// Origins of the values that became defaults in this process, by the option.
static ORIGINS: OnceLock<BTreeMap<&'static str, Origin>> = OnceLock::new();

/// Layers that were loaded last.
static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

/// Layers as the files had them at one time.
#[derive(Debug)]
struct Loaded {
    /// File that the user named in the place of the project's.
    named: Option<PathBuf>,
    layers: Arc<Layers>,
    /// `true` once a runtime was built with them.
    is_built: bool,
}

/// Returns the layers that were loaded last, or loads them. The first runtime of a process has those that the defaults are from.
/// Each later one (`builds`) loads them anew, since a server runs on while the files and the trust in them change.
///
/// # Errors
///
/// As for [`Layers::load`].
pub(super) fn layers(named: Option<&Path>, trusted: &Trusted, builds: bool) -> anyhow::Result<Arc<Layers>> {
    {
        let mut last = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_mut().filter(|last| last.named.as_deref() == named && !(builds && last.is_built)) {
            last.is_built |= builds;
            return Ok(last.layers.clone());
        }
    }
    Ok(keep(named, Layers::load(named, trusted)?, builds))
}

/// Keeps layers as those that were loaded last.
fn keep(named: Option<&Path>, layers: Layers, is_built: bool) -> Arc<Layers> {
    let layers = Arc::new(layers);
    let loaded = Loaded { named: named.map(Path::to_path_buf), layers: layers.clone(), is_built };
    *LOADED.lock().unwrap_or_else(PoisonError::into_inner) = Some(loaded);
    layers
}

/// Returns the layer and the place of an option's value, if a setting gave it.
pub fn origin_of(option: &str) -> Option<&'static str> {
    origin(option).map(|origin| origin.shown.as_str())
}

/// Returns the layer and the place of an option's value, and the commands that remove or correct it, if a setting gave it.
pub fn repair_of(option: &str) -> Option<(&'static str, &'static str)> {
    origin(option).map(|origin| (origin.shown.as_str(), origin.repair.as_str()))
}

/// Returns `true` if the file of a project, which others may have written, gave an option's value.
pub fn is_of_project(option: &str) -> bool {
    origin(option).is_some_and(|origin| origin.kind == LayerKind::Project)
}

/// Returns `true` if a settings file gave the value of an option, and not the command line.
pub fn is_of_file(option: &str) -> bool {
    origin(option).is_some_and(|origin| origin.kind != LayerKind::Set)
}

/// Returns the settings file that has a key and is ignored because nobody trusts it.
pub fn untrusted_file_with(key: &str) -> Option<PathBuf> {
    let loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut ignored = loaded.as_ref()?.layers.all().iter().filter(|layer| !layer.is_trusted);
    Some(ignored.find(|layer| layer.settings.iter().any(|setting| setting.name == key))?.path.clone())
}

/// Returns `true` if a settings file that applies without being named gave the value of an option, so that it lasts while sources
/// change.
pub fn is_lasting(option: &str) -> bool {
    origin(option).is_some_and(|origin| !origin.kind.is_given())
}

/// Returns the folder of the project whose file grants an option's paths; they lie in it.
pub fn project_of(option: &str) -> Option<&'static Path> {
    origin(option)?.project.as_deref()
}

fn origin(option: &str) -> Option<&'static Origin> {
    ORIGINS.get()?.get(option.trim_start_matches("--"))
}

/// Returns the command with the settings' values as defaults of its options, given what the command line has; `None`
/// without settings. Commands that work without settings files have the assignments of `--set` alone.
///
/// # Errors
///
/// A mistake in a settings file.
pub fn with_defaults(define: impl FnOnce() -> Command, given: &ArgMatches) -> anyhow::Result<Option<Command>> {
    let path = path_of(given);
    let leaf = leaf_of(given).1;
    if path.first().is_none_or(|name| WITHOUT.contains(name)) {
        return defaulting(define, &path, given, &Layers::of_command_line());
    }
    let digests = leaf.try_get_many::<String>("digests").ok().flatten().into_iter().flatten().cloned();
    let named = leaf.try_get_one::<PathBuf>("config").ok().flatten();
    let records = TrustRecords::of_user();
    let layers = Trusted::read(&digests.collect::<Vec<_>>(), records.as_ref())
        .and_then(|trusted| Layers::load(named.map(PathBuf::as_path), &trusted));
    let layers = match layers {
        Err(_) if path.first() == Some(&DOCTOR) => {
            return defaulting(define, &path, given, &Layers::of_command_line());
        }
        layers => layers?,
    };
    defaulting(define, &path, given, &keep(named.map(PathBuf::as_path), layers, false))
}

/// Returns the command with the values of layers as defaults; `None` without layers.
fn defaulting(
    define: impl FnOnce() -> Command,
    path: &[&str],
    given: &ArgMatches,
    layers: &Layers,
) -> anyhow::Result<Option<Command>> {
    if layers.all().is_empty() {
        return Ok(None);
    }
    let (command, leaf) = (define(), leaf_of(given).1);
    // `toolcrib config` shows the assignments of any command.
    if let Some(assigned) = assignments::layer().filter(|_| path.first() != Some(&CONFIG)) {
        refuse_idle(&command, path, leaf, assigned)?;
    }
    let mut origins = BTreeMap::new();
    let command = apply(command, path, given, leaf, layers, &mut origins);
    // Places in messages stay those of the first reading.
    let _ = ORIGINS.set(origins);
    Ok(Some(command))
}

/// Names of the command and its given subcommands.
fn path_of(given: &ArgMatches) -> Vec<&str> {
    let mut path = Vec::new();
    let mut at = given;
    while let Some((name, below)) = at.subcommand() {
        path.push(name);
        at = below;
    }
    path
}

/// Returns the last command that is given, with its options; its name is empty without a command.
pub(super) fn leaf_of(given: &ArgMatches) -> (&str, &ArgMatches) {
    let (mut name, mut at) = ("", given);
    while let Some((below, options)) = at.subcommand() {
        (name, at) = (below, options);
    }
    (name, at)
}

/// Sets the option defaults for the whole program and for the command at `path`.
fn apply(
    command: Command,
    path: &[&str],
    given: &ArgMatches,
    leaf: &ArgMatches,
    layers: &Layers,
    origins: &mut BTreeMap<&'static str, Origin>,
) -> Command {
    let command = set_defaults(command, Some(given), layers, origins);
    below(command, path, &mut |command| set_defaults(command, Some(leaf), layers, origins))
}

fn below(command: Command, path: &[&str], change: &mut dyn FnMut(Command) -> Command) -> Command {
    match path {
        [] => command,
        [last] => command.mut_subcommand(last, change),
        [first, rest @ ..] => command.mut_subcommand(first, |command| below(command, rest, change)),
    }
}

fn set_defaults(
    mut command: Command,
    given: Option<&ArgMatches>,
    layers: &Layers,
    origins: &mut BTreeMap<&'static str, Origin>,
) -> Command {
    let options: Vec<(String, clap::Id)> = command
        .get_arguments()
        .filter_map(|option| Some((option.get_long()?.to_owned(), option.get_id().clone())))
        .collect();
    let id = |name: &str| options.iter().find(|(long, _)| long == name).map(|(_, id)| id.clone());
    let source = |name: &str| given.zip(id(name)).and_then(|(given, id)| given.value_source(id.as_str()));
    let is_typed = |name: &str| source(name) == Some(ValueSource::CommandLine);
    let is_given = |name: &str| source(name).is_some_and(|source| source != ValueSource::DefaultValue);
    let name_of_command = command.get_name().to_owned();
    for key in KEYS.iter().filter(|key| key.name != ANY && key.is_of(&name_of_command)) {
        let flags = key.options();
        if flags.is_empty() {
            continue;
        }
        let name = key.to_string();
        let Some((layer, setting)) = layers.effective(&name).into_iter().next() else { continue };
        let is_set = layer.kind == LayerKind::Set;
        let is_replaced = match is_set {
            true => flags.iter().any(|name| is_typed(name)),
            false => {
                let others = || key.unless.iter().any(|name| is_given(name) || layers.sets_option(name));
                flags.iter().any(|name| is_given(name)) || others() || given.is_some() && is_overridden(key)
            }
        };
        if is_replaced {
            continue;
        }
        if is_set {
            let without =
                |command: Command, id: clap::Id| command.mut_arg(id, |option| option.env(Resettable::<OsStr>::Reset));
            command = flags.iter().filter_map(|name| id(name)).fold(command, without);
        }
        let Some((option, values)) = default_of(key, layer, setting) else { continue };
        let Some(id) = id(option) else { continue };
        let shown = match is_set {
            true => format!("{SET} {name}"),
            false => format!("{} settings, {}", layer.kind.as_str(), layer.place(setting)),
        };
        let project = setting.project().map(Path::to_path_buf);
        let repair = repair(layer.kind, &layer.path, Some(&name));
        origins.insert(option, Origin { kind: layer.kind, shown, repair, project });
        // Each value is one of a list: a comma in a folder separates nothing.
        command = command.mut_arg(id, |option| {
            let option = option.default_values(values).value_delimiter(None);
            if FOLDER_OPTIONS.contains(&key.name) && key.section == "allow" {
                return option.value_parser(one_folder);
            }
            option
        });
    }
    command
}

/// Returns a command with the values of layers as its options' defaults, whatever else gives them a value.
pub(super) fn defaulted(command: Command, layers: &Layers) -> Command {
    set_defaults(command, None, layers, &mut BTreeMap::new())
}

/// Returns `true` if an environment variable overrides a key.
fn is_overridden(key: &Key) -> bool {
    key.variables
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.to_string_lossy().trim().is_empty()))
}

/// Returns the option of a setting with its values, which live as long as the program, like all defaults.
pub(super) fn default_of(key: &Key, layer: &Layer, setting: &Setting) -> Option<(&'static str, Vec<&'static str>)> {
    match key.option {
        OptionOf::None | OptionOf::Adds(_) => None,
        OptionOf::Value(name) => {
            let values: Vec<&'static str> = layer.texts(setting).into_iter().map(|text| &*text.leak()).collect();
            (!values.is_empty()).then_some((name, values))
        }
        OptionOf::Flags(flags) => {
            let value = match &setting.value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let (_, flag) = flags.iter().find(|(of, _)| *of == value)?;
            Some((flag, vec!["true"]))
        }
    }
}
