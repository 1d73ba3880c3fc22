//! Dialect A: a `tools.json` of programs. Its checks keep the order and the words of the format's own reference; what
//! the format has no word for stands in two objects of ours, `capabilities` and `limits`.

mod command;
mod environment;
mod extension;

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::tool::{Body, Format, Interface, LimitRequest, Origin, Tool};

use super::program;
use super::{Problem, Severity};

/// The largest manifest that is read.
const MOST_BYTES: u64 = 8 << 20;
/// The longest name of a tool, in characters.
const LONGEST_NAME: usize = 128;
const ROOT_KEYS: &[&str] = &["tools"];
const ENTRY_KEYS: &[&str] =
    &["name", "description", "schema", "command", "timeoutSec", "envPassthrough", "capabilities", "limits"];

#[derive(Deserialize)]
#[serde(expecting = "an object with `tools`")]
struct Manifest {
    tools: Option<Vec<Entry>>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object for a tool")]
struct Entry {
    name: Option<String>,
    description: Option<String>,
    schema: Option<Value>,
    command: Option<Vec<String>>,
    timeout_sec: Option<i64>,
    env_passthrough: Option<Vec<String>>,
    capabilities: Option<Value>,
    limits: Option<Value>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// The tools of a manifest and every problem in it.
pub(super) fn read(path: &Path) -> (Vec<Tool>, Vec<Problem>) {
    let mut reader = Reader { path, problems: Vec::new() };
    let tools = reader.tools();
    (tools, reader.problems)
}

struct Reader<'a> {
    path: &'a Path,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn error(&mut self, message: String) {
        self.problems.push(Problem { severity: Severity::Error, path: self.path.to_path_buf(), message });
    }

    fn warn(&mut self, message: String) {
        self.problems.push(Problem { severity: Severity::Warning, path: self.path.to_path_buf(), message });
    }

    fn tools(&mut self) -> Vec<Tool> {
        let text = match read_text(self.path) {
            Ok(text) => Arc::<str>::from(text),
            Err(error) => {
                self.error(format!("read manifest: {error}"));
                return Vec::new();
            }
        };
        let manifest: Manifest = match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
            Ok(manifest) => manifest,
            Err(error) => {
                self.error(format!("parse manifest: {error}"));
                return Vec::new();
            }
        };
        self.warn_of_unknown("", &manifest.unknown, ROOT_KEYS);
        // A relative path without a folder means the working directory, whose own path keeps the programs' absolute.
        let path = std::path::absolute(self.path).unwrap_or_else(|_| self.path.to_path_buf());
        let folder = path.parent().unwrap_or(Path::new("/"));
        let mut names = HashSet::new();
        let mut tools = Vec::new();
        for (index, entry) in manifest.tools.unwrap_or_default().into_iter().enumerate() {
            let origin = Origin {
                format: Format::Manifest,
                path: Arc::from(path.as_path()),
                index: Some(index),
                text: Some(text.clone()),
                unknown: Map::new(),
            };
            tools.extend(self.tool(origin, index, entry, &mut names, folder));
        }
        if tools.is_empty() && self.problems.is_empty() {
            self.warn("`tools` is empty: there is nothing to call".into());
        }
        tools
    }

    /// One entry, checked in the format's order: name, duplicate, command, environment, `command[0]`, then what is ours.
    /// Every field is checked, so that the first error is the format's and none stays untold.
    fn tool(
        &mut self,
        origin: Origin,
        index: usize,
        entry: Entry,
        names: &mut HashSet<String>,
        folder: &Path,
    ) -> Option<Tool> {
        let name = entry.name.unwrap_or_default();
        let at = match name.trim().is_empty() {
            true => format!("tool[{index}]"),
            false => format!("tool[{index}] {:?}", shortened(&name)),
        };
        let mut entry_checks = Checks { reader: self, at: &at, sound: true };
        let checks = &mut entry_checks;
        checks.that(!name.trim().is_empty(), "name is required");
        checks.that(name.trim().is_empty() || names.insert(name.clone()), "duplicate name");
        let argv = entry.command.unwrap_or_default();
        checks.that(!argv.is_empty(), "command must have at least program name");
        let env = environment::normalise("envPassthrough", entry.env_passthrough.unwrap_or_default());
        let env = checks.value(env).unwrap_or_default();
        let program = argv.first().and_then(|first| checks.value(command::resolve(first, folder)));
        if let Some(schema) = entry.schema.as_ref().filter(|schema| !schema.is_object()) {
            checks.that(false, &format!("schema must be an object, found {}", extension::kind(schema)));
        }
        let requested = checks.value(extension::capabilities(entry.capabilities, env, folder));
        let limits = checks.value(extension::limits(entry.limits));
        let length = name.chars().count();
        checks.that(length <= LONGEST_NAME, &format!("name is longer than {LONGEST_NAME} characters"));
        let sound = entry_checks.sound;

        let in_entry = format!("{at}: ");
        if let Some(seconds @ ..=-1) = entry.timeout_sec {
            self.warn(format!("{in_entry}timeoutSec {seconds} is negative and is ignored"));
        }
        if sound && !model_name(&name) {
            self.warn(format!("{in_entry}model servers take names of 1 to 64 letters, digits, `_` and `-`"));
        }
        self.warn_of_unknown(&in_entry, &entry.unknown, ENTRY_KEYS);
        let (Some(program), Some(requested), Some(limits), true) = (program, requested, limits, sound) else {
            return None;
        };
        let deadline = entry.timeout_sec.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
        Some(Tool {
            name,
            description: entry.description,
            parameters: entry.schema,
            body: Body::Command { program: program::locate(&program), argv: command::guest_argv(argv) },
            requested,
            limits: LimitRequest { deadline: deadline.map(Duration::from_secs), ..limits },
            interface: Interface::default(),
            origin: Origin { unknown: entry.unknown, ..origin },
        })
    }

    fn warn_of_unknown(&mut self, at: &str, unknown: &Map<String, Value>, known: &[&str]) {
        for key in unknown.keys() {
            let nearest = nearest(key, known.iter().copied());
            let hint = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
            self.warn(format!("{at}unknown field `{key}` is ignored{hint}"));
        }
    }
}

/// The checks of one entry: each failure is a problem of the manifest, and the entry is no tool then.
struct Checks<'a, 'b> {
    reader: &'a mut Reader<'b>,
    at: &'a str,
    sound: bool,
}

impl Checks<'_, '_> {
    fn that(&mut self, holds: bool, otherwise: &str) {
        if !holds {
            self.sound = false;
            self.reader.error(format!("{}: {otherwise}", self.at));
        }
    }

    fn value<T>(&mut self, value: Result<T, String>) -> Option<T> {
        value.map_err(|wrong| self.that(false, &wrong)).ok()
    }
}

/// As much of a name as a message can hold.
fn shortened(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

fn read_text(path: &Path) -> std::io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    let bytes = std::fs::File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)? as u64;
    if bytes > MOST_BYTES {
        return Err(std::io::Error::other(format!("more than the {MOST_BYTES} bytes that are read")));
    }
    Ok(text)
}

/// Whether a model server takes the name as it is.
fn model_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// The known word nearest to `word`, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).clamp(1, 3);
    known
        .map(|candidate| (strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
