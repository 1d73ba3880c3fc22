//! Settings in layers: the assignments of `--set`, the project's `toolcrib.toml`, a profile, the user's file and the system's
//! file; options are above them, and environment variables are above the files. A file that the user names is their own. The
//! file of the current directory can only ask and deny
//! until a person trusts it. Every mistake is an error, since a file about permissions must not be applied partially.
//!
//! Of most keys, the value of the strongest layer counts. Rules, denials and tags of all layers add up. A value that is the
//! default of an option reaches the command through [`with_defaults`]; [`Config`] holds the rest.

mod assignments;
mod defaults;
mod deprecated;
mod edit;
mod effect;
mod flows;
mod key;
mod keys;
mod kind;
mod layer;
mod layer_kind;
mod layers;
mod mistake;
mod own_file;
mod path;
mod place;
mod profile;
mod schema;
mod store;
mod table;
mod values;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde_json::Value;
use toolcrib::Scheduler;
use toolcrib::call::Behavior;
use toolcrib::flow::Labels;
use toolcrib::policy::{Pattern, PatternError, Rule};
use toolcrib::tool::{Glob, SiblingFailure};
use toolcrib_base::parse::{duration, size};

use crate::trust::{Subject, Trusted};

pub use assignments::{Assignment, SET, use_assignments, variable};
pub use defaults::{
    is_lasting, is_of_file, is_of_project, origin_of, project_of, repair_of, untrusted_file_with, with_defaults,
};
pub use deprecated::{deprecations, hide_deprecated, without_hidden};
pub use edit::{Change, path_of};
pub use key::{Key, Merge, find};
pub use layer::{HOST_LAYERS, Layer, Setting, SettingsText, shown};
pub use layer_kind::LayerKind;
pub use layers::{DEFAULT_FILE, Layers, default_file, system_file, user_file};
pub(crate) use mistake::repair;
pub use own_file::own_text;
pub use profile::{profile, use_profile};
pub use schema::schema;
pub use store::StoreSettings;
pub use table::{Field, Place, Table, json_of_table};
pub use values::check_values;

/// Settings that are no defaults of options.
#[derive(Debug, Default)]
pub struct Config {
    /// The files that were loaded, the strongest first.
    pub files: Vec<PathBuf>,
    /// Rules over calls, the strongest file first.
    pub rules: Vec<ConfiguredRule>,
    /// Denials of all files.
    pub denials: Vec<ConfiguredDenial>,
    /// Named masks, sorted by name.
    pub masks: Vec<Mask>,
    /// Limits of a step.
    pub scheduler: Scheduler,
    /// See [`toolcrib::Builder::defer_above`].
    pub defer_above: Option<usize>,
    /// See [`toolcrib::Builder::code_mode`].
    pub direct: Vec<Glob>,
    /// See [`toolcrib::Builder::code_component`].
    pub interpreters: Vec<PathBuf>,
    /// Program for the Python scripts of skills.
    pub python: Option<PathBuf>,
    /// Program for the JavaScript scripts of skills.
    pub javascript: Option<PathBuf>,
    /// See [`toolcrib::Builder::tag`].
    pub tags: Vec<String>,
    /// See [`toolcrib::Builder::route`].
    pub routes: Vec<(String, String)>,
    /// Labels of places.
    pub labels: Labels,
    /// Keys of labels with paths that do not exist.
    pub missing_places: Vec<(String, PathBuf)>,
    /// Rule about flows that applies without one of the user.
    pub flows: Option<Rule>,
    /// See [`toolcrib::Builder::configure`].
    pub tools: Vec<(String, Value)>,
    /// `true` if what tools write is held back without an option.
    pub stage: bool,
    /// See [`toolcrib::staging::HistoryLimits`].
    pub history: HistoryLimits,
    /// Limits of a conversation with a model.
    pub conversation: ConversationLimits,
    /// Database that servers share.
    pub store: Option<StoreSettings>,
}

/// Limits of a conversation with a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationLimits {
    /// Tokens that the model's context holds, if they are known.
    pub window: Option<u64>,
    /// Percentage of the window at which the conversation is compacted; 0 for never.
    pub compact_at: u64,
    /// Number of identical calls at which the model is told; 0 for no limit.
    pub repeats: u32,
}

impl Default for ConversationLimits {
    fn default() -> Self {
        Self { window: None, compact_at: 90, repeats: 5 }
    }
}

/// Limits of the undo history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Bytes of all kept contents.
    pub bytes: u64,
    /// Bytes of one kept content.
    pub file: u64,
    /// Days until a record is removed.
    pub days: u64,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { bytes: 1 << 30, file: 64 << 20, days: 14 }
    }
}

/// Rule of a settings file.
#[derive(Debug, Clone)]
pub struct ConfiguredRule {
    /// The rule.
    pub rule: Rule,
    /// File, line and column of the rule.
    pub place: String,
    /// Commands that remove or correct it.
    pub repair: String,
    /// `true` for a rule of the command line.
    pub is_given: bool,
}

/// Named mask for tool answers, referenced by tool definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    /// Name of the mask.
    pub name: String,
    /// A regular expression that compiles.
    pub pattern: String,
}

/// Denial of a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredDenial {
    /// Key name in `[deny]`, the same as the option name after `--deny-`.
    pub name: &'static str,
    /// Values, with paths resolved; `true` for a key without names.
    pub values: Vec<String>,
    /// Key and file.
    pub origin: String,
    /// `true` for a denial of the command line.
    pub is_given: bool,
}

impl Config {
    /// Collects the layers' settings for a runtime that is built (`builds`), or those that were loaded last; without
    /// trust, only the restricting part of the project's file. A build prints a hint about such a file.
    ///
    /// # Errors
    ///
    /// As for [`Layers::load`].
    pub fn load(named: Option<&Path>, trusted: &Trusted, builds: bool) -> anyhow::Result<Self> {
        let layers = defaults::layers(named, trusted, builds)?;
        if builds {
            layers.hint_about_untrusted(trusted);
        }
        Self::of(&layers)
    }

    /// Collects the settings of layers.
    fn of(layers: &Layers) -> anyhow::Result<Self> {
        let files = layers.all().iter().filter(|layer| layer.kind != LayerKind::Set);
        let mut files: Vec<PathBuf> = files.map(|layer| layer.path.clone()).collect();
        files.dedup();
        let rules = layers.all().iter().map(rules).collect::<anyhow::Result<Vec<_>>>()?.concat();
        let mut config = Self { files, rules, denials: denials(layers), ..Self::default() };
        config.scheduler = scheduler(layers)?;
        config.defer_above = number(layers, "scheduler.defer_above");
        config.tags = layers.effective("run.tags").into_iter().flat_map(|(layer, tags)| layer.texts(tags)).collect();
        let direct = layers.effective("sources.direct").into_iter().flat_map(|(layer, globs)| layer.texts(globs));
        config.direct = direct.map(|glob| glob.parse()).collect::<Result<_, _>>()?;
        let interpreters = layers.effective("sources.interpreters").into_iter();
        config.interpreters = interpreters.flat_map(|(layer, paths)| layer.texts(paths)).map(PathBuf::from).collect();
        let program = |key: &str| {
            let (layer, path) = layers.effective(key).into_iter().next()?;
            layer.texts(path).into_iter().next().map(PathBuf::from)
        };
        (config.python, config.javascript) = (program("sources.python"), program("sources.javascript"));
        let mask = |(name, value): (String, Value)| Mask { name, pattern: shown(&value) };
        config.masks = entries(layers, "masks").map(mask).collect();
        config.routes = entries(layers, "routes").map(|(name, tool)| (name, shown(&tool))).collect();
        (config.labels, config.missing_places) = flows::labels(layers)?;
        config.flows = flows::preset(layers)?;
        config.tools = entries(layers, "config").collect();
        let staged = layers.effective("run.stage").into_iter().next();
        config.stage = staged.is_some_and(|(_, setting)| setting.value == Value::Bool(true));
        config.history = history(layers)?;
        config.conversation = conversation(layers);
        config.store = StoreSettings::of(layers)?;
        Ok(config)
    }
}

/// Reads a settings file as a subject of trust.
///
/// # Errors
///
/// A mistake in the file.
pub(crate) fn subject(path: &Path) -> anyhow::Result<Subject> {
    Ok(SettingsText::read(path, LayerKind::Project)?.subject())
}

/// Settings in a section with free keys: each key with its strongest value.
fn entries<'a>(layers: &'a Layers, section: &'static str) -> impl Iterator<Item = (String, Value)> + 'a {
    layers.applied_names(section).into_iter().filter_map(move |name| {
        let (_, setting) = layers.effective(name).into_iter().next()?;
        Some((name[section.len() + 1..].to_owned(), setting.value.clone()))
    })
}

/// Returns the rules of a layer that count.
///
/// # Errors
///
/// A rule that is no pattern.
pub fn rules(layer: &Layer) -> anyhow::Result<Vec<ConfiguredRule>> {
    let mut rules = Vec::new();
    let behaviors = [
        ("allow", Behavior::Allow),
        ("ask", Behavior::Ask),
        ("stage", Behavior::Ask),
        ("hold", Behavior::Ask),
        ("deny", Behavior::Deny),
    ];
    for (key, behavior) in behaviors {
        let name = format!("permissions.{key}");
        for setting in layer.settings.iter().filter(|setting| setting.name == name && layer.applies(setting)) {
            // Without its key, the file would lose its other rules too.
            let repair = repair(layer.kind, &layer.path, None);
            for (index, text) in layer.texts(setting).into_iter().enumerate() {
                let pattern: Pattern = text.parse().map_err(|error: PatternError| anyhow!(error))?;
                let rule = Rule::new(behavior, pattern, layer.file.as_str());
                let rule = match key {
                    "stage" => rule.at_end(),
                    "hold" => rule.holding_requests(),
                    _ => rule,
                };
                let (place, repair) = (layer.place_of(setting, Some(index)), repair.clone());
                rules.push(ConfiguredRule { rule, place, repair, is_given: layer.kind == LayerKind::Set });
            }
        }
    }
    Ok(rules)
}

fn denials(layers: &Layers) -> Vec<ConfiguredDenial> {
    let settings = layers.names("deny").into_iter().flat_map(|name| layers.effective(name));
    let denial = |(layer, setting): (&Layer, &Setting)| {
        let values = if setting.value == Value::Bool(false) { Vec::new() } else { layer.texts(setting) };
        let origin = format!("`{}` in `{}`", setting.name, layer.place(setting));
        ConfiguredDenial { name: setting.key.name, values, origin, is_given: layer.kind == LayerKind::Set }
    };
    settings.map(denial).collect()
}

fn history(layers: &Layers) -> anyhow::Result<HistoryLimits> {
    let default = HistoryLimits::default();
    let bytes = |name: &str, default: u64| -> anyhow::Result<u64> {
        let text = text(layers, name).map(|text| size(&text)).transpose().map_err(|error| anyhow!(error))?;
        Ok(text.map_or(default, |bytes| bytes as u64))
    };
    Ok(HistoryLimits {
        bytes: bytes("history.bytes", default.bytes)?,
        file: bytes("history.file", default.file)?,
        days: number(layers, "history.days").map_or(default.days, |days| days as u64),
    })
}

/// Returns the text of a setting.
fn text(layers: &Layers, name: &str) -> Option<String> {
    let (layer, setting) = layers.effective(name).into_iter().next()?;
    layer.texts(setting).into_iter().next()
}

/// Returns the path that a key of the host has in the layers that apply without trust; `None` without one, or after a mistake.
pub fn own_path(name: &str, named: Option<&PathBuf>) -> Option<PathBuf> {
    let layers = Layers::load(named.map(PathBuf::as_path), &Trusted::default()).ok()?;
    text(&layers, name).map(PathBuf::from)
}

fn conversation(layers: &Layers) -> ConversationLimits {
    let default = ConversationLimits::default();
    let number = |name: &str| number(layers, name);
    ConversationLimits {
        window: number("model.context_window").map(|tokens| tokens as u64),
        compact_at: number("model.compact_at").map_or(default.compact_at, |percent| percent as u64),
        repeats: number("run.repeats").and_then(|count| u32::try_from(count).ok()).unwrap_or(default.repeats),
    }
}

fn scheduler(layers: &Layers) -> anyhow::Result<Scheduler> {
    let default = Scheduler::default();
    let text = |name: &str| text(layers, name);
    let failure = text("scheduler.sibling_failure").and_then(|word| SiblingFailure::from_word(&word));
    let time = text("scheduler.step_time").map(|text| duration(&text)).transpose().map_err(|error| anyhow!(error))?;
    let output = text("scheduler.step_output").map(|text| size(&text)).transpose().map_err(|error| anyhow!(error))?;
    Ok(Scheduler {
        sibling_failure: failure.unwrap_or(default.sibling_failure),
        time,
        output,
        queue: number(layers, "scheduler.queue").unwrap_or(default.queue),
        ..default
    })
}

fn number(layers: &Layers, name: &str) -> Option<usize> {
    let (_, setting) = layers.effective(name).into_iter().next()?;
    usize::try_from(setting.value.as_u64()?).ok()
}

#[cfg(test)]
mod tests;
