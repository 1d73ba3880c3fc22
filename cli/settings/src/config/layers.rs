//! Layers of the configuration, the strongest first: the assignments of `--set`, the project's file, the profile, the user's
//! file, the system's file. Other options are above all of them, and environment variables above all files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toolcrib_base::folders::user_folders;
use toolcrib_base::render::{self, Advice};
use toolcrib_base::suggestion;

use crate::trust::{Subject, Trusted};

use super::assignments;
use super::key::Merge;
use super::layer::{Layer, Setting, SettingsText};
use super::layer_kind::LayerKind;
use super::place;
use super::profile::profile;

/// Settings file of a project.
pub const DEFAULT_FILE: &str = "./toolcrib.toml";
/// Name of the user's and the system's file.
const FILE_NAME: &str = "config.toml";
/// Variable that names another system file; empty for none.
const SYSTEM_VARIABLE: &str = "TOOLCRIB_SYSTEM_CONFIG";

/// Returns the user's file, which need not exist; `None` without a home directory.
pub fn user_file() -> Option<PathBuf> {
    Some(user_folders()?.config.join(FILE_NAME))
}

/// Returns the system's file, which need not exist; `None` if the system has no place for it.
pub fn system_file() -> Option<PathBuf> {
    // An empty variable names no other place: the policy of an administrator would go without a word.
    match std::env::var_os(SYSTEM_VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => Some(PathBuf::from(path)),
        None => Some(place::system_folder()?.join(FILE_NAME)),
    }
}

/// Path of the default settings file, if it exists.
pub fn default_file() -> Option<PathBuf> {
    let path = Path::new(DEFAULT_FILE);
    is_present(path).then(|| path.to_path_buf())
}

/// Returns `false` if there is nothing at a path. An inaccessible file is read, which reports the error, and so is a link to a
/// file that does not exist: its settings may restrict.
fn is_present(path: &Path) -> bool {
    !fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Layers that exist, the strongest first.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    all: Vec<Layer>,
    /// The project's file, if it is not trusted.
    untrusted: Option<(Subject, PathBuf)>,
}

impl Layers {
    /// Creates layers with this one alone.
    pub(super) fn of(layer: Layer) -> Self {
        Self { all: vec![layer], untrusted: None }
    }

    /// Returns the assignments of the command line alone.
    pub(super) fn of_command_line() -> Self {
        Self { all: Vec::from_iter(assignments::layer().cloned()), untrusted: None }
    }

    /// Loads all files: `named` is the user's own in the place of the project's.
    ///
    /// # Errors
    ///
    /// The first mistake in a file, a file that others may change, a grant of a project that leads out of its folder, or a
    /// profile that does not exist.
    pub fn load(named: Option<&Path>, trusted: &Trusted) -> anyhow::Result<Self> {
        Self::load_with(named, trusted, |_, error| Err(error))
    }

    /// Loads the files that can be loaded, to show them, and lists the layers that cannot, each with its error.
    pub fn load_sound(named: Option<&Path>, trusted: &Trusted) -> (Self, Vec<(LayerKind, anyhow::Error)>) {
        let mut failed = Vec::new();
        let layers = Self::load_with(named, trusted, |kind, error| {
            failed.push((kind, error));
            Ok(())
        });
        (layers.unwrap_or_default(), failed)
    }

    /// Loads all files; `failed` decides whether a layer that cannot be loaded is an error or is left out.
    fn load_with(
        named: Option<&Path>,
        trusted: &Trusted,
        mut failed: impl FnMut(LayerKind, anyhow::Error) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let (mut layers, mut untrusted) = (Vec::from_iter(assignments::layer().cloned()), None);
        let mut keep = |kind, loaded: anyhow::Result<Option<Layer>>| match loaded {
            Ok(layer) => Ok(layer),
            Err(error) => failed(kind, error).map(|()| None),
        };
        if let Some(path) = named {
            let text = SettingsText::read(path, LayerKind::Named);
            layers.extend(keep(LayerKind::Named, text.map(|text| Some(text.layer(LayerKind::Named, true))))?);
        } else if let Some(path) = default_file() {
            let loaded = project_layer(&path, trusted, &mut untrusted).map(Some);
            layers.extend(keep(LayerKind::Project, loaded)?);
        }
        let user = user_file().map_or(Ok(None), |path| read_if_exists(&path, LayerKind::User));
        if let (Some(name), Ok(user)) = (profile(), &user) {
            layers.extend(keep(LayerKind::Profile, profile_layer(name, user.as_ref()).map(Some))?);
        }
        let user = user.map(|user| user.map(|user| user.layer(LayerKind::User, true)));
        layers.extend(keep(LayerKind::User, user)?);
        let system = system_file().map_or(Ok(None), |path| read_if_exists(&path, LayerKind::System));
        let system = system.map(|system| system.map(|system| system.layer(LayerKind::System, true)));
        layers.extend(keep(LayerKind::System, system)?);
        Ok(Self { all: layers, untrusted })
    }

    /// Prints a hint about a project's file that is not trusted.
    pub(super) fn hint_about_untrusted(&self, trusted: &Trusted) {
        if let Some((subject, path)) = &self.untrusted {
            trusted.admits(subject, path);
        }
    }

    /// Combines layers, the strongest first.
    #[cfg(test)]
    pub(super) fn from_layers(all: Vec<Layer>) -> Self {
        Self { all, untrusted: None }
    }

    /// Returns the layers, the strongest first.
    pub fn all(&self) -> &[Layer] {
        &self.all
    }

    /// Every setting of a name, with its layer, the strongest first.
    pub fn settings_of<'a>(&'a self, name: &str) -> impl Iterator<Item = (&'a Layer, &'a Setting)> {
        let name = name.to_owned();
        let of = move |layer: &'a Layer| {
            let name = name.clone();
            layer.settings.iter().filter(move |setting| setting.name == name).map(move |setting| (layer, setting))
        };
        self.all.iter().flat_map(of)
    }

    /// The settings with a name that count: the strongest, or all of them for a key whose values add up.
    pub(crate) fn effective<'a>(&'a self, name: &str) -> Vec<(&'a Layer, &'a Setting)> {
        let mut applied: Vec<_> = self.settings_of(name).filter(|(layer, setting)| layer.applies(setting)).collect();
        if applied.first().is_some_and(|(_, setting)| setting.key.merge == Merge::Strongest) {
            applied.truncate(1);
        }
        applied
    }

    /// Returns `true` if an assignment on the command line sets an option's value.
    pub(super) fn sets_option(&self, option: &str) -> bool {
        let assigned = self.all.iter().filter(|layer| layer.kind == LayerKind::Set).flat_map(|layer| &layer.settings);
        assigned.into_iter().any(|setting| setting.key.options().contains(&option))
    }

    /// Names of all settings in a section, sorted.
    pub fn names(&self, section: &str) -> Vec<&str> {
        self.names_of(section, |_, _| true)
    }

    /// Names of the settings that apply in a section, sorted: in an untrusted file, only what restricts is looked at.
    pub(super) fn applied_names(&self, section: &str) -> Vec<&str> {
        self.names_of(section, Layer::applies)
    }

    fn names_of(&self, section: &str, counts: impl Fn(&Layer, &Setting) -> bool) -> Vec<&str> {
        let settings = self.all.iter().flat_map(|layer| layer.settings.iter().map(move |setting| (layer, setting)));
        let of_section = settings.filter(|(layer, setting)| setting.key.section == section && counts(layer, setting));
        let mut names: Vec<&str> = of_section.map(|(_, setting)| setting.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Reads a file that belongs to the user or to the system, if it exists.
fn read_if_exists(path: &Path, kind: LayerKind) -> anyhow::Result<Option<SettingsText>> {
    if is_present(path) { SettingsText::read(path, kind).map(Some) } else { Ok(None) }
}

/// Reads the file of the project. One that is not trusted is put into `untrusted`.
fn project_layer(path: &Path, trusted: &Trusted, untrusted: &mut Option<(Subject, PathBuf)>) -> anyhow::Result<Layer> {
    let text = SettingsText::read(path, LayerKind::Project)?;
    let subject = text.subject();
    let is_trusted = trusted.trusts(&subject);
    let mut layer = text.layer(LayerKind::Project, is_trusted);
    match is_trusted {
        true => layer.confine()?,
        false => *untrusted = Some((subject, path.to_path_buf())),
    }
    Ok(layer)
}

fn profile_layer(name: &str, user: Option<&SettingsText>) -> anyhow::Result<Layer> {
    let profiles = user.map_or(&[][..], |user| &user.profiles);
    if let (Some(user), Some((_, settings))) = (user, profiles.iter().find(|(known, _)| known == name)) {
        let (path, file) = (user.path.clone(), user.file.clone());
        return Ok(Layer { kind: LayerKind::Profile, path, file, settings: settings.clone(), is_trusted: true });
    }
    let file = user_file().map_or_else(|| "the user's file".to_owned(), |path| format!("`{}`", path.display()));
    let message = format!("profile `{}` not found in {file}", render::one_line(name));
    let known: Vec<&str> = profiles.iter().map(|(name, _)| name.as_str()).collect();
    let hint = match known.is_empty() {
        true => format!("add a table `[profile.{}.model]` or another section to the file", render::one_line(name)),
        false => suggestion::hint(name, &known),
    };
    Err(Advice::new(message, hint).into())
}
