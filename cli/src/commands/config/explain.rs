//! `toolcrib config explain` and `get`: values with the layer, the file and the line that they come from.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib_base::render::{self, Advice, one_line};
use toolcrib_settings::config::{
    HOST_LAYERS, Key, Layer, LayerKind, Layers, Merge, Setting, default_file, path_of, profile, rules, shown,
    system_file, user_file,
};
use toolcrib_settings::trust::TrustRecords;
use toolcrib_settings::trust::Trusted;
use toolcrib_sources::options::{RuleCheck, check_rules};

use super::View;

const HEADINGS: [&str; 5] = ["KEY", "VALUE", "LAYER", "FROM", "STATE"];
/// Layer of environment variables.
const ENVIRONMENT: &str = "environment";

/// State of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Used,
    /// A stronger layer has the key.
    Overridden,
    Untrusted,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            State::Used => "used",
            State::Overridden => "overridden",
            State::Untrusted => "not trusted, ignored",
        }
    }
}

/// A value of a key in one layer.
#[derive(Debug)]
struct Stated {
    layer: &'static str,
    /// Variable, or file with line and column.
    from: String,
    file: Option<PathBuf>,
    place: Option<(usize, usize)>,
    value: Value,
    state: State,
}

/// A key with its values, the strongest first.
#[derive(Debug)]
struct Explanation {
    name: String,
    key: &'static Key,
    stated: Vec<Stated>,
}

pub(super) async fn explain(key: Option<&str>, view: &View) -> anyhow::Result<ExitCode> {
    let (layers, mut broken) = Layers::load_sound(view.config.as_deref(), &trusted()?);
    broken.extend(dead_rules(&layers).await?);
    let files = layer_files(&layers, &broken, view);
    let names = match key {
        Some(name) => vec![checked(name)?],
        None => all_names(&layers),
    };
    let all: Vec<Explanation> = names.iter().filter_map(|name| of(&layers, name)).collect();
    if view.json {
        let settings: Vec<Value> = all.iter().map(Explanation::json).collect();
        render::print_json(&json!({ "files": files_json(&files), "settings": settings }).to_string())?;
        return Ok(report(&broken));
    }
    if key.is_none() {
        for line in lines(&files) {
            render::print_screen(&line)?;
        }
        if !all.is_empty() {
            render::print("")?;
        }
    }
    let rows = all.iter().flat_map(|explanation| {
        explanation.stated.iter().map(move |stated| {
            let value = one_line(&shown(&stated.value));
            [
                one_line(&explanation.name),
                value,
                stated.layer.to_owned(),
                one_line(&stated.from),
                stated.state.as_str().to_owned(),
            ]
        })
    });
    if !all.is_empty() {
        render::print(&render::table(HEADINGS, rows))?;
    } else if let Some(name) = key {
        render::print(&format!("{name} is not set in any layer; the default of its option applies"))?;
    }
    if key.and_then(toolcrib_settings::config::find).is_some_and(|key| key.is_of_host) {
        render::print(&format!("It can be set in {HOST_LAYERS}, but not in a project's file."))?;
    }
    Ok(report(&broken))
}

/// Finds in each layer the first rule that can match no call, with the tools that commands use here.
async fn dead_rules(layers: &Layers) -> anyhow::Result<Vec<(LayerKind, anyhow::Error)>> {
    let mut dead = Vec::new();
    for layer in layers.all() {
        let rules = rules(layer)?;
        if rules.is_empty() {
            continue;
        }
        let sources = layers.all().iter().filter(|layer| layer.is_trusted).find_map(Layer::sources);
        if let RuleCheck::Dead(rule) = check_rules(sources, &rules).await {
            dead.push((layer.kind, Advice::new(rule.message, rule.repair).into()));
        }
    }
    Ok(dead)
}

/// Explains the mistakes of the files.
fn report(broken: &[(LayerKind, anyhow::Error)]) -> ExitCode {
    let code = if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    broken.iter().for_each(|(_, error)| render::explain(error));
    code
}

pub(super) fn get(key: &str, view: &View) -> anyhow::Result<ExitCode> {
    let layers = Layers::load(view.config.as_deref(), &trusted()?)?;
    let explanation = of(&layers, &checked(key)?).filter(|explanation| explanation.value().is_some());
    let Some(explanation) = explanation else {
        let hint =
            format!("`toolcrib config set {key} VALUE` sets it; `toolcrib config explain {key}` lists its layers");
        return Err(Advice::new(format!("`{key}` is not set"), hint).into());
    };
    let value = explanation.value().unwrap_or_default();
    match view.json {
        true => render::print_json(&explanation.json().to_string())?,
        false => match value {
            Value::Array(items) => items.iter().try_for_each(|item| render::print(&one_line(&shown(item))))?,
            value => render::print(&one_line(&shown(&value)))?,
        },
    }
    Ok(ExitCode::SUCCESS)
}

fn trusted() -> anyhow::Result<Trusted> {
    Trusted::read(&[], TrustRecords::of_user().as_ref())
}

/// Returns the name of the setting that holds a key; below `config.TOOL`, the tool's setting.
fn checked(dotted: &str) -> anyhow::Result<String> {
    let (_, parts) = path_of(dotted)?;
    Ok(parts.iter().take(2).copied().collect::<Vec<_>>().join("."))
}

/// Names of all keys that are set, in table order.
fn all_names(layers: &Layers) -> Vec<String> {
    let mut names = Vec::new();
    for key in Key::all_keys() {
        let named = layers.names(key.section).into_iter().filter(|name| key.is_named(name)).map(str::to_owned);
        let before = names.len();
        names.extend(named);
        if names.len() == before && variable(key).is_some() {
            names.push(key.to_string());
        }
    }
    names
}

/// The strongest environment variable of a key that is set, with its value.
fn variable(key: &Key) -> Option<(&'static str, String)> {
    key.variables.iter().find_map(|name| {
        let value = std::env::var(name).ok()?;
        Some((*name, value.trim().to_owned())).filter(|(_, value)| !value.is_empty())
    })
}

fn of(layers: &Layers, name: &str) -> Option<Explanation> {
    let key = toolcrib_settings::config::find(name)?;
    let mut stated = Vec::new();
    let (assigned, of_files): (Vec<_>, Vec<_>) =
        layers.settings_of(name).partition(|(layer, _)| layer.kind == LayerKind::Set);
    stated.extend(assigned.into_iter().map(|(layer, setting)| Stated::new(layer, setting, State::Used)));
    if let Some((variable, value)) = variable(key) {
        let state = if stated.is_empty() { State::Used } else { State::Overridden };
        let (layer, from) = (ENVIRONMENT, variable.to_owned());
        stated.push(Stated { layer, from, file: None, place: None, value: value.into(), state });
    }
    for (layer, setting) in of_files {
        let is_overridden = key.merge == Merge::Strongest && stated.iter().any(|other| other.state == State::Used);
        let state = match () {
            () if !layer.applies(setting) => State::Untrusted,
            () if is_overridden => State::Overridden,
            () => State::Used,
        };
        stated.push(Stated::new(layer, setting, state));
    }
    (!stated.is_empty()).then(|| Explanation { name: name.to_owned(), key, stated })
}

impl Stated {
    fn new(layer: &Layer, setting: &Setting, state: State) -> Self {
        let is_of_file = layer.kind != LayerKind::Set;
        let file = is_of_file.then(|| layer.path.clone());
        let place = is_of_file.then_some((setting.line, setting.column));
        let (from, value) = (layer.place_of(setting, None), setting.value.clone());
        Self { layer: layer.kind.as_str(), from, file, place, value, state }
    }

    fn json(&self) -> Value {
        json!({
            "layer": self.layer,
            "file": self.file,
            "line": self.place.map(|(line, _)| line),
            "column": self.place.map(|(_, column)| column),
            "variable": (self.layer == ENVIRONMENT).then_some(&self.from),
            "value": self.value,
            "state": self.state.as_str(),
        })
    }
}

impl Explanation {
    /// The value that counts; the lists of a key whose values add up are joined.
    fn value(&self) -> Option<Value> {
        let mut used = self.stated.iter().filter(|stated| stated.state == State::Used).map(|stated| &stated.value);
        if self.key.merge == Merge::Strongest {
            return used.next().cloned();
        }
        used.cloned().reduce(|all, other| match (all, other) {
            (Value::Array(all), Value::Array(other)) => all.into_iter().chain(other).collect(),
            (Value::Bool(one), Value::Bool(other)) => Value::Bool(one || other),
            (all, _) => all,
        })
    }

    fn json(&self) -> Value {
        let from: Vec<Value> = self.stated.iter().map(Stated::json).collect();
        let layers: Vec<&str> = self.key.layers().iter().map(|kind| kind.as_str()).collect();
        json!({ "key": self.name, "value": self.value(), "layers": layers, "from": from })
    }
}

/// Layer with its file and the state of the file.
type LayerFile = (LayerKind, Option<PathBuf>, &'static str);

/// The file of each layer, and its state.
fn layer_files(layers: &Layers, broken: &[(LayerKind, anyhow::Error)], view: &View) -> Vec<LayerFile> {
    let project = view.config.clone().or_else(default_file);
    let profile_file = profile().and_then(|_| user_file());
    let of_project = if view.config.is_some() { LayerKind::Named } else { LayerKind::Project };
    let paths = [
        (of_project, project),
        (LayerKind::Profile, profile_file),
        (LayerKind::User, user_file()),
        (LayerKind::System, system_file()),
    ];
    let file = |(kind, path): (LayerKind, Option<PathBuf>)| {
        let state = match layers.all().iter().find(|layer| layer.kind == kind) {
            _ if broken.iter().any(|(failed, _)| *failed == kind) => "has a mistake, which stops every command",
            Some(layer) if layer.is_trusted => "used",
            Some(_) => "not trusted, ignored except what asks or denies",
            None => "none",
        };
        (kind, path, state)
    };
    paths.into_iter().map(file).collect()
}

fn lines(files: &[LayerFile]) -> Vec<String> {
    let line = |(kind, path, state): &LayerFile| {
        let path = path.as_ref().map(|path| one_line(&render::from_here(path).to_string_lossy()));
        let Some(path) = path else { return format!("{:8} {state}", kind.as_str()) };
        let name = match (kind, profile()) {
            (LayerKind::Profile, Some(name)) => format!(" [profile.{}]", one_line(name)),
            _ => String::new(),
        };
        format!("{:8} {path}{name}: {state}", kind.as_str())
    };
    files.iter().map(line).collect()
}

fn files_json(files: &[LayerFile]) -> Vec<Value> {
    let record = |(kind, path, state): &LayerFile| {
        let profile = if *kind == LayerKind::Profile { profile() } else { None };
        json!({ "layer": kind.as_str(), "file": path, "profile": profile, "state": state })
    };
    files.iter().map(record).collect()
}
