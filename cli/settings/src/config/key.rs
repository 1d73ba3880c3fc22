//! Key of the settings: its value, the options and variables for the same value, and the files that may have it.

use super::kind::Kind;
use super::layer_kind::LayerKind;

pub(super) use super::keys::KEYS;

/// Name of a key that stands for any name.
pub(super) const ANY: &str = "*";

/// Check of a name in place of [`ANY`].
pub(super) type NameCheck = fn(&str) -> Result<(), String>;

/// Values of several files that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The value of the strongest file.
    Strongest,
    /// The values of all files.
    All,
}

/// Command options that take the value as their default.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OptionOf {
    /// None: the value is read where it is used.
    None,
    /// An option that takes the value.
    Value(&'static str),
    /// A flag for each value, by the value.
    Flags(&'static [(&'static str, &'static str)]),
    /// None: the values of an option add to those of all layers.
    Adds(&'static str),
}

/// Key of a settings file.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Name of the section.
    pub section: &'static str,
    /// Name in its section, or `ANY`.
    pub name: &'static str,
    pub(crate) kind: Kind,
    /// Combination of values from several layers.
    pub merge: Merge,
    pub(crate) option: OptionOf,
    /// Other options that take the place of this one.
    pub(crate) unless: &'static [&'static str],
    /// Environment variables that override the value, the strongest first.
    pub variables: &'static [&'static str],
    /// `true` if `--set` replaces the options, which are deprecated.
    pub(crate) is_in_place_of_option: bool,
    /// Names of the commands whose options the key is about; empty for all.
    commands: &'static [&'static str],
    /// Names of commands that apply the key, and no other keys without an option.
    pub(super) also_of: &'static [&'static str],
    /// Check of a name that stands for [`ANY`].
    pub(super) check_name: Option<NameCheck>,
    /// Default of a key without an option.
    default: Option<&'static str>,
    /// `true` for a value that may hold a secret, which no message repeats.
    pub(super) is_sensitive: bool,
    /// `true` for a key of the host: a place outside of the project, a credential, or the approvals. The file of a project
    /// cannot have it, even if it is trusted.
    pub is_of_host: bool,
    pub(crate) about: &'static str,
}

impl Key {
    /// All keys, in the order of the documentation.
    pub fn all_keys() -> impl Iterator<Item = &'static Self> {
        KEYS.iter()
    }

    /// Returns the layers with files that may have the key, the strongest first.
    pub fn layers(&self) -> &'static [LayerKind] {
        const ALL: &[LayerKind] = &[LayerKind::Project, LayerKind::Profile, LayerKind::User, LayerKind::System];
        if self.is_of_host { &ALL[1..] } else { ALL }
    }

    /// Names of the options for the same value.
    pub fn options(&self) -> Vec<&'static str> {
        match self.option {
            OptionOf::None => Vec::new(),
            OptionOf::Value(name) | OptionOf::Adds(name) => vec![name],
            OptionOf::Flags(flags) => flags.iter().map(|(_, flag)| *flag).collect(),
        }
    }

    pub(super) const fn new(section: &'static str, name: &'static str, kind: Kind, about: &'static str) -> Self {
        let (merge, option) = (Merge::Strongest, OptionOf::None);
        Self {
            section,
            name,
            kind,
            merge,
            option,
            unless: &[],
            variables: &[],
            is_in_place_of_option: false,
            commands: &[],
            also_of: &[],
            check_name: None,
            default: None,
            is_sensitive: false,
            is_of_host: false,
            about,
        }
    }

    /// Adds the values of an option to those of all layers.
    pub(super) const fn with(self, option: &'static str) -> Self {
        Self { merge: Merge::All, option: OptionOf::Adds(option), ..self }
    }

    /// Replaces the options, which are deprecated.
    pub(super) const fn replaces(self) -> Self {
        Self { is_in_place_of_option: true, ..self }
    }

    pub(super) const fn of(self, commands: &'static [&'static str]) -> Self {
        Self { commands, ..self }
    }

    /// Adds up the values of all layers.
    pub(super) const fn merged(self) -> Self {
        Self { merge: Merge::All, ..self }
    }

    pub(super) const fn also_of(self, also_of: &'static [&'static str]) -> Self {
        Self { also_of, ..self }
    }

    pub(super) const fn check_name(self, check: NameCheck) -> Self {
        Self { check_name: Some(check), ..self }
    }

    pub(super) const fn sensitive(self) -> Self {
        Self { is_sensitive: true, ..self }
    }

    pub(super) const fn default(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    pub(super) const fn option(self, name: &'static str) -> Self {
        Self { option: OptionOf::Value(name), ..self }
    }

    pub(super) const fn flags(self, flags: &'static [(&'static str, &'static str)]) -> Self {
        Self { option: OptionOf::Flags(flags), ..self }
    }

    pub(super) const fn unless(self, unless: &'static [&'static str]) -> Self {
        Self { unless, ..self }
    }

    pub(super) const fn variables(self, variables: &'static [&'static str]) -> Self {
        Self { variables, ..self }
    }

    pub(super) const fn of_host(self) -> Self {
        Self { is_of_host: true, ..self }
    }

    /// Returns `true` if the value can only restrict, so that it counts in a file that nobody trusts.
    pub(crate) fn restricts(&self) -> bool {
        self.section == "deny" || self.section == "permissions" && self.name != "allow"
    }

    /// Returns `true` for a list of paths that tools are granted.
    pub(super) fn grants_paths(&self) -> bool {
        self.section == "allow" && matches!(self.kind, Kind::List(Kind::Path(_)))
    }

    /// Returns the kind of the value in a few words.
    pub fn kind(&self) -> String {
        self.kind.shown()
    }

    /// Returns the default of a key without an option; `None` also if it has none.
    pub fn default_value(&self) -> Option<&'static str> {
        self.default
    }

    /// Returns a description.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// Returns `true` if the options of a command with this name are about the key.
    pub fn is_of(&self, command: &str) -> bool {
        self.commands.is_empty() || self.commands.contains(&command)
    }

    /// Returns `true` if `--set` replaces the options, which are deprecated.
    pub fn replaces_options(&self) -> bool {
        self.is_in_place_of_option
    }

    /// Returns `true` if the key has this dotted name.
    pub fn is_named(&self, dotted: &str) -> bool {
        let Some((section, name)) = dotted.split_once('.') else { return false };
        section == self.section && (name == self.name || self.name == ANY && !name.is_empty())
    }
}

/// Writes the dotted name.
impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.section, if self.name == ANY { "NAME" } else { self.name })
    }
}

/// Finds the key of a dotted name.
pub fn find(dotted: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.is_named(dotted))
}

/// Sections in the order of [`KEYS`].
pub(crate) fn sections() -> Vec<&'static str> {
    let mut sections: Vec<&'static str> = KEYS.iter().map(|key| key.section).collect();
    let mut seen = Vec::new();
    sections.retain(|section| {
        !seen.contains(section) && {
            seen.push(*section);
            true
        }
    });
    sections
}
