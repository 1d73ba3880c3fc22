//! Configuration layer: the settings of one file, or of one profile in the user's file, each with its place.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Map, Value};
use toolcrib::policy::canonical;
use toolcrib_base::input;
use toolcrib_base::render::{self, Advice, Mistake};

use super::key::{ANY, KEYS, Key, sections};
use super::kind::Kind;
use super::layer_kind::LayerKind;
use super::mistake::with_repair;
use super::table::{Field, Table};
use super::{path, place};
use crate::trust::{Item, Subject};

/// Table of the profiles.
const PROFILE: &str = "profile";
/// Key of tool sources.
const SOURCES: &str = "sources.tools";
/// Maximum size of a settings file, in bytes: a project's file is read before it is trusted.
const MAX_BYTES: u64 = 1 << 20;
/// Prefix of a settings file's requests.
const REQUEST: &str = "setting:";
/// Places of the host's keys.
pub const HOST_LAYERS: &str = "the profile, user or system layer (`toolcrib config explain` lists their files), in a \
                                      `--config` file, or in `--set`";

/// Value of a key with its place.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Key of the setting.
    pub key: &'static Key,
    /// Dotted name.
    pub name: String,
    /// Value of the setting.
    pub value: Value,
    /// Line in the file, from 1.
    pub line: usize,
    /// Column in the line, from 1.
    pub column: usize,
    /// Lines and columns of a list's items.
    items: Vec<(usize, usize)>,
    /// Paths that a project grants.
    confined: Option<Confined>,
}

/// Paths in the folder of a project.
#[derive(Debug, Clone)]
struct Confined {
    /// Real path of the folder.
    project: PathBuf,
    /// Real paths in it.
    paths: Vec<String>,
}

impl Setting {
    /// Adds another value of the same key: list items and table members add up, and any other value is replaced.
    pub(super) fn add(&mut self, other: Self) {
        match (&mut self.value, other.value) {
            (Value::Array(items), Value::Array(others)) => items.extend(others),
            (Value::Object(members), Value::Object(others)) => add_members(members, others),
            (value, other) => *value = other,
        }
    }

    /// Returns the folder of the project that grants the setting's paths.
    pub(super) fn project(&self) -> Option<&Path> {
        self.confined.as_ref().map(|confined| confined.project.as_path())
    }

    /// Returns the line and column of a list item.
    pub(super) fn item_place(&self, index: usize) -> (usize, usize) {
        self.items.get(index).copied().unwrap_or((self.line, self.column))
    }
}

/// Settings of one file or profile.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Kind of the layer.
    pub kind: LayerKind,
    /// Path of the file.
    pub path: PathBuf,
    /// Name of the file in messages.
    pub file: String,
    /// Settings in the order of the file.
    pub settings: Vec<Setting>,
    /// `false` for a file that nobody trusts: only what restricts counts.
    pub is_trusted: bool,
}

impl Layer {
    /// Returns `true` if a setting of the layer applies. In an untrusted file, a setting applies only if it restricts.
    pub fn applies(&self, setting: &Setting) -> bool {
        self.is_trusted || setting.key.restricts()
    }

    /// Resolves the paths that a project's file grants.
    ///
    /// # Errors
    ///
    /// A path leads out of the project's folder.
    pub(super) fn confine(&mut self) -> anyhow::Result<()> {
        for setting in &mut self.settings {
            let Value::Array(items) = &setting.value else { continue };
            let Kind::List(Kind::Path(rule)) = setting.key.kind else { continue };
            if !setting.key.grants_paths() {
                continue;
            }
            let place = || format!("{}:{}:{}: `{}`", self.file, setting.line, setting.column, setting.name);
            let wrong = |reason: String| {
                let mistake = Mistake::of_key(format!("{}: {reason}", place()), &setting.name);
                with_repair(mistake.into(), self.kind, &self.path)
            };
            let project = path::project(&self.path).with_context(place)?;
            let real = |item: &Value| match item.as_str().unwrap_or_default() {
                all if all == path::ALL && setting.key.name == "hooks" => Ok(all.to_owned()),
                text => {
                    path::confined(*rule, &project, &self.path, text).map(|path| path.to_string_lossy().into_owned())
                }
            };
            let paths = items.iter().map(real).collect::<Result<Vec<_>, _>>();
            let paths = paths.map_err(wrong)?;
            setting.confined = Some(Confined { project, paths });
        }
        Ok(())
    }

    /// Values of a setting as texts: a list's items, with paths resolved.
    pub fn texts(&self, setting: &Setting) -> Vec<String> {
        if let Some(confined) = &setting.confined {
            return confined.paths.clone();
        }
        let resolve = |kind: &Kind, value: &Value| match (kind, value) {
            (Kind::Path(rule), Value::String(text)) => {
                path::resolve(*rule, self.kind, &self.path, text).to_string_lossy().into_owned()
            }
            (_, Value::String(text)) => text.clone(),
            (_, other) => other.to_string(),
        };
        match (&setting.key.kind, &setting.value) {
            (Kind::List(kind), Value::Array(items)) => items.iter().map(|item| resolve(kind, item)).collect(),
            (kind, value) => vec![resolve(kind, value)],
        }
    }

    /// Returns the sources of tools that the layer names; `None` if it names none.
    pub fn sources(&self) -> Option<Vec<PathBuf>> {
        let setting = self.settings.iter().find(|setting| setting.name == SOURCES)?;
        Some(self.texts(setting).into_iter().map(PathBuf::from).collect())
    }

    /// File and line of a setting, for messages.
    pub(crate) fn place(&self, setting: &Setting) -> String {
        match self.kind {
            LayerKind::Set => self.file.clone(),
            _ => format!("{}:{}", self.file, setting.line),
        }
    }

    /// File, line and column of an item of a setting, or of the setting itself.
    pub fn place_of(&self, setting: &Setting, item: Option<usize>) -> String {
        let (line, column) = item.map_or((setting.line, setting.column), |item| setting.item_place(item));
        match self.kind {
            LayerKind::Set => self.file.clone(),
            _ => format!("{}:{line}:{column}", self.file),
        }
    }
}

/// A parsed file.
#[derive(Debug)]
pub struct SettingsText {
    pub(crate) path: PathBuf,
    /// Name of the file in messages.
    pub(crate) file: String,
    text: String,
    pub(crate) settings: Vec<Setting>,
    /// Profiles by name.
    pub(crate) profiles: Vec<(String, Vec<Setting>)>,
}

impl SettingsText {
    /// Reads a file. One of the user or of the system, which nobody reviews, is read only if nobody else can change it.
    ///
    /// # Errors
    ///
    /// A file that others may change, or the first mistake in the file, with its line, its column and its key.
    pub(crate) fn read(path: &Path, kind: LayerKind) -> anyhow::Result<Self> {
        let name = render::from_here(path).display().to_string();
        if path.metadata().is_ok_and(|file| !file.is_file()) {
            let hint = "move it away; settings are in a regular file";
            bail!(Advice::new(format!("cannot read the settings in `{name}`: not a regular file"), hint));
        }
        let context = || format!("cannot read the settings in `{name}`");
        let file = File::open(path).with_context(context)?;
        if matches!(kind, LayerKind::User | LayerKind::System) {
            place::check(&file, path, kind).map_err(|reason| {
                let message = format!("the settings in `{}` are not used: {reason}", path.display());
                Advice::new(message, place::OWNER_HINT)
            })?;
        }
        let text = input::open_file(file, MAX_BYTES).with_context(context)?;
        Self::parse_file(path, &name, text, kind)
    }

    /// Parses the text of a file as [`SettingsText::parse`] does; a mistake comes with the commands that repair the file.
    ///
    /// # Errors
    ///
    /// As for `SettingsText::read`.
    pub fn parse_file(path: &Path, file: &str, text: String, kind: LayerKind) -> anyhow::Result<Self> {
        Self::parse(path, file, text, kind).map_err(|error| with_repair(error, kind, path))
    }

    /// Parses `text`; `file` is its name in messages.
    ///
    /// # Errors
    ///
    /// As for `SettingsText::read`.
    pub fn parse(path: &Path, file: &str, text: String, kind: LayerKind) -> anyhow::Result<Self> {
        if text.len() as u64 > MAX_BYTES {
            return Err(input::too_large(MAX_BYTES)).with_context(|| format!("cannot use the settings in `{file}`"));
        }
        let mut top = Table::parse(file, &text)?;
        let mut profiles = Vec::new();
        if kind == LayerKind::User {
            if let Some(table) = top.table(PROFILE)? {
                for (name, field) in table.fields() {
                    profiles.push((name, settings(field.table()?, kind)?));
                }
            }
        } else if let Some(place) = top.place(PROFILE) {
            return Err(place.error("profiles belong in the user's file; `toolcrib config explain` names it"));
        }
        let settings = settings(top, kind)?;
        Ok(Self { path: path.to_path_buf(), file: file.to_owned(), text, settings, profiles })
    }

    /// Returns the file as a subject of trust: the settings that only count once it is trusted are requests, and those that
    /// restrict are recorded, so that a review names one that is gone.
    pub fn subject(&self) -> Subject {
        let path = canonical(&self.path).unwrap_or_else(|_| self.path.clone());
        let item = |setting: &Setting| {
            let values: Vec<String> = match &setting.value {
                // An empty list takes the values of weaker layers away, which trust grants too.
                Value::Array(items) if !items.is_empty() => items.iter().map(shown).collect(),
                value => vec![shown(value)],
            };
            let values = values.iter().map(|value| format!("{} = {value}", setting.name));
            match setting.key.restricts() {
                true => Item::of_restrictions(setting.name.clone(), values.collect()),
                false => {
                    let requests = values.map(|value| format!("{REQUEST}{value}"));
                    Item::of_requests(setting.name.clone(), requests.collect())
                }
            }
        };
        Subject::of_settings(path, &self.text, self.settings.iter().map(item).collect())
    }

    /// Returns the settings outside profiles as a layer of the user's own.
    pub fn base(&self, kind: LayerKind) -> Layer {
        self.layer_of(kind, &self.settings)
    }

    /// Returns the settings of a profile as a layer; `None` if the file has no such profile.
    pub fn profile(&self, name: &str) -> Option<Layer> {
        let (_, settings) = self.profiles.iter().find(|(known, _)| known == name)?;
        Some(self.layer_of(LayerKind::Profile, settings))
    }

    fn layer_of(&self, kind: LayerKind, settings: &[Setting]) -> Layer {
        let (path, file) = (self.path.clone(), self.file.clone());
        Layer { kind, path, file, settings: settings.to_vec(), is_trusted: true }
    }

    /// Returns the settings outside of profiles as a layer.
    pub(crate) fn layer(self, kind: LayerKind, is_trusted: bool) -> Layer {
        Layer { kind, path: self.path, file: self.file, settings: self.settings, is_trusted }
    }
}

/// Adds the members of a table to another, at every depth.
fn add_members(members: &mut Map<String, Value>, others: Map<String, Value>) {
    for (name, other) in others {
        match (members.entry(name).or_insert(Value::Null), other) {
            (Value::Object(members), Value::Object(others)) => add_members(members, others),
            (known, other) => *known = other,
        }
    }
}

/// Formats a value; text has no quotes.
pub fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Reads the settings of a table with all sections.
fn settings(mut top: Table<'_>, kind: LayerKind) -> anyhow::Result<Vec<Setting>> {
    let mut all = Vec::new();
    for section in sections() {
        let Some(mut table) = top.table(section)? else { continue };
        let (open, named): (Vec<&'static Key>, Vec<&'static Key>) =
            KEYS.iter().filter(|key| key.section == section).partition(|key| key.name == ANY);
        for key in named {
            if let Some(field) = table.take(key.name) {
                all.push(setting(key, key.name, field, kind)?);
            }
        }
        match open.first() {
            Some(&key) => {
                for (name, field) in table.fields() {
                    all.push(setting(key, &name, field, kind)?);
                }
            }
            None => table.end()?,
        }
    }
    top.end()?;
    all.sort_by_key(|setting| (setting.line, setting.column));
    Ok(all)
}

fn setting(key: &'static Key, name: &str, field: Field<'_>, kind: LayerKind) -> anyhow::Result<Setting> {
    if kind == LayerKind::Project && !key.layers().contains(&kind) {
        return Err(field.place().error(&format!("a project cannot set this; set it in {HOST_LAYERS}")));
    }
    if let Some(Err(error)) = key.check_name.map(|check| check(name)) {
        return Err(field.place().error(&error));
    }
    let ((line, column), items) = (field.position(), field.item_positions());
    let name = format!("{}.{name}", key.section);
    Ok(Setting { key, name, value: value(&key.kind, field, kind)?, line, column, items, confined: None })
}

/// Reads a value of a kind.
fn value(of: &Kind, field: Field<'_>, kind: LayerKind) -> anyhow::Result<Value> {
    let text_value = |text: &str| Value::from(text);
    match of {
        Kind::Text { wanted, check, .. } => field.read(wanted, |text| check(text).map(|()| text_value(text))),
        Kind::Path(rule) => {
            field.read("a path as text", |text| path::check(*rule, kind, text).map(|()| text_value(text)))
        }
        Kind::Word(words) => field
            .read(&one_of(words), |text| if words.contains(&text) { Ok(text_value(text)) } else { Err(String::new()) }),
        Kind::Count(min, max) => Ok(field.count(*min, *max)?.into()),
        Kind::Number(max) => Ok(field.number(*max)?.into()),
        Kind::Bool => Ok(field.boolean()?.into()),
        Kind::List(of) => field.items()?.into_iter().map(|item| value(of, item, kind)).collect(),
        Kind::Object => field.object(),
    }
}

/// Formats words as "`a`, `b` or `c`".
fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
