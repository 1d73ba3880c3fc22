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

use crate::tool::{Body, Format, Origin, Tool};

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
            match self.tool(index, entry, &mut names, folder) {
                Ok(mut tool) => {
                    tool.origin.path = Arc::from(path.as_path());
                    tool.origin.text = Some(text.clone());
                    tools.push(tool);
                }
                Err(message) => self.error(message),
            }
        }
        if tools.is_empty() && self.problems.is_empty() {
            self.warn("`tools` is empty: there is nothing to call".into());
        }
        tools
    }

    /// One entry, checked in the format's order: name, duplicate, command, environment, `command[0]`.
    fn tool(&mut self, index: usize, entry: Entry, names: &mut HashSet<String>, folder: &Path) -> Result<Tool, String> {
        let name = entry.name.unwrap_or_default();
        if name.trim().is_empty() {
            return Err(format!("tool[{index}]: name is required"));
        }
        let at = format!("tool[{index}] {name:?}");
        if !names.insert(name.clone()) {
            return Err(format!("{at}: duplicate name"));
        }
        let argv = entry.command.unwrap_or_default();
        let Some(first) = argv.first() else {
            return Err(format!("{at}: command must have at least program name"));
        };
        let in_entry = |message: String| format!("{at}: {message}");
        let passthrough = environment::normalise("envPassthrough", entry.env_passthrough.unwrap_or_default());
        let passthrough = passthrough.map_err(in_entry)?;
        let program = command::resolve(first, folder).map_err(in_entry)?;

        if let Some(schema) = entry.schema.as_ref().filter(|schema| !schema.is_object()) {
            return Err(format!("{at}: schema must be an object, found {}", extension::kind(schema)));
        }
        let requested = extension::capabilities(entry.capabilities, passthrough, folder).map_err(in_entry)?;
        let mut limits = extension::limits(entry.limits).map_err(in_entry)?;
        match entry.timeout_sec {
            Some(seconds @ 1..) => limits.deadline = Some(Duration::from_secs(seconds.unsigned_abs())),
            Some(seconds @ ..=-1) => self.warn(format!("{at}: timeoutSec {seconds} is negative and is ignored")),
            Some(0) | None => {}
        }
        if name.chars().count() > LONGEST_NAME {
            return Err(format!("tool[{index}]: name is longer than {LONGEST_NAME} characters"));
        }
        if !model_name(&name) {
            self.warn(format!("{at}: model servers take names of 1 to 64 letters, digits, `_` and `-`"));
        }
        self.warn_of_unknown(&format!("{at}: "), &entry.unknown, ENTRY_KEYS);
        Ok(Tool {
            name,
            description: entry.description,
            parameters: entry.schema,
            body: Body::Command { program: program::locate(&program), argv: command::guest_argv(argv) },
            requested,
            limits,
            origin: Origin {
                format: Format::Manifest,
                path: Arc::from(Path::new("")),
                index: Some(index),
                text: None,
                unknown: entry.unknown,
            },
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
