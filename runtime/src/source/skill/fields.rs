//! Front matter of a skill: its name, its description, and the capabilities that its scripts request.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde_json::{Map, Value};
use toolcrib_foundation::text::shown;

use crate::call::Flag;
use crate::source::capabilities::capabilities;
use crate::source::diagnostics::Diagnostics;
use crate::source::markdown::front_matter;
use crate::source::shape::kind;
use crate::tool::Capabilities;

/// Maximum size of a `SKILL.md`, in bytes.
pub(super) const MAX_TEXT: u64 = 1 << 20;
/// Maximum length of a name, in characters.
const MAX_NAME: usize = 64;
/// Maximum length of a description in the format, in characters. Public skills have longer ones.
const MAX_FORMAT_DESCRIPTION: usize = 1024;
/// Maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 8192;
/// Member of `metadata` with the script requests.
const REQUESTS: &str = "toolcrib";

/// Fields of a skill.
pub(super) struct Fields {
    pub(super) name: String,
    pub(super) description: String,
    /// All fields, unchanged.
    pub(super) all: Map<String, Value>,
}

impl Fields {
    /// Reads the front matter of a text.
    pub(super) fn read(text: &str, folder_name: Option<&str>, report: &mut Diagnostics) -> Option<Self> {
        report.parsing("parse SKILL.md: ".to_owned());
        let all = match front_matter(text) {
            Ok((all, _)) => all,
            Err(fault) => match front_matter(&quoted(text)) {
                Ok((all, _)) => {
                    report.warn(
                        "the front matter is no valid YAML: a value with `: ` must be in quotes; it is read as text",
                    );
                    all
                }
                Err(_) => return report.parsed(Err(fault)),
            },
        };
        let name = report.value(text_of(&all, "name"));
        let description = report.value(text_of(&all, "description"));
        let (name, description) = (name?, description?);
        let name = match name.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
            Some(name) => name.to_owned(),
            None => {
                let folder_name = report.value(folder_name.ok_or_else(|| "`name` is required".to_owned()))?;
                report.warn(&format!(
                    "`name` is missing; the skill has the name of its folder, {:?}",
                    shown(folder_name)
                ));
                folder_name.to_owned()
            }
        };
        check_name(&name, folder_name, report);
        let description = description.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let missing = "`description` is required: it says when an agent uses the skill";
        let description = report.value(description.ok_or_else(|| missing.to_owned()))?;
        match description.chars().count() {
            0..=MAX_FORMAT_DESCRIPTION => {}
            found @ ..=MAX_DESCRIPTION => report.warn(&format!(
                "description has {found} characters, and other agents take at most {MAX_FORMAT_DESCRIPTION}"
            )),
            found => {
                report.error(&format!("description has {found} characters, more than the {MAX_DESCRIPTION} allowed"))
            }
        }
        report.sound().then_some(Self { name, description, all })
    }

    /// Reads the capabilities that the scripts request. They are the member `toolcrib` of `metadata`, as a map or as JSON in a text.
    /// `allowed-tools` requests nothing.
    ///
    /// # Errors
    ///
    /// All faults of the capabilities.
    pub(super) fn requested(&self, folder: &Path) -> Result<Capabilities, Vec<String>> {
        let stated = self.all.get("metadata").and_then(|metadata| metadata.get(REQUESTS));
        let stated = match stated {
            Some(Value::String(text)) => serde_json::from_str(text)
                .map(Some)
                .map_err(|error| vec![format!("metadata.{REQUESTS} is a text, and no JSON: {error}")])?,
            other => other.cloned(),
        };
        let faults = |faults: Vec<String>| faults.into_iter().map(|fault| format!("metadata.{REQUESTS}: {fault}"));
        capabilities(stated, Vec::new(), folder).map_err(|found| faults(found).collect())
    }
}

/// Checks a name: characters that hide are errors, other rules of the format are warnings.
fn check_name(name: &str, folder_name: Option<&str>, report: &mut Diagnostics) {
    let length = name.chars().count();
    report.require(length <= MAX_NAME, &format!("name has {length} characters, more than the {MAX_NAME} allowed"));
    let hidden = name.chars().find(|c| c.is_control() || Flag::unseen(None, *c).is_some());
    if let Some(hidden) = hidden {
        report.error(&format!("name {:?} has the invisible character U+{:04X}", shown(name), u32::from(hidden)));
    }
    if !report.sound() {
        return;
    }
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let has_form = name.chars().all(|c| is_word(c) || c == '-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    if !has_form {
        report.warn(&format!("name {name:?} should have only `a` to `z`, `0` to `9`, and single `-` between them"));
    } else if let Some(folder_name) = folder_name.filter(|folder_name| name != *folder_name) {
        report.warn(&format!("name {name:?} should be the name of the folder, {:?}", shown(folder_name)));
    }
}

/// Returns the name of a tool for a skill: characters that model servers do not take become `-`.
pub(super) fn tool_name(name: &str, max: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' };
    name.trim().chars().map(plain).take(max).collect()
}

/// Returns the text of a field; a number or a truth value counts as its text.
fn text_of(fields: &Map<String, Value>, field: &str) -> Result<Option<String>, String> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(Some(value.to_string())),
        Some(other) => Err(format!("{field} must be a string, found {}", kind(other))),
    }
}

/// Returns the message for a `SKILL.md` that cannot be read.
pub(super) fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::FileTooLarge => format!("SKILL.md is larger than the {MAX_TEXT} bytes allowed"),
        _ => format!("read SKILL.md: {error}"),
    }
}

/// Puts values of the front matter in quotes that are meant as plain text, but have `: ` or ` #` in them.
fn quoted(text: &str) -> String {
    let mut is_inside = false;
    let mut quoted = String::with_capacity(text.len() + 64);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let is_delimiter = line.trim_end() == "---";
        is_inside = if is_delimiter { index == 0 } else { is_inside };
        quoted.push_str(&if is_inside && !is_delimiter { quoted_line(line) } else { Cow::Borrowed(line) });
    }
    quoted
}

fn quoted_line(line: &str) -> Cow<'_, str> {
    let Some((key, value)) = line.split_once(": ") else { return Cow::Borrowed(line) };
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let value = value.trim();
    let is_plain = !value.starts_with(['"', '\'', '|', '>', '[', '{', '&', '*', '!', '%', '@', '`']);
    if !is_key || !is_plain || !(value.contains(": ") || value.ends_with(':') || value.contains(" #")) {
        return Cow::Borrowed(line);
    }
    Cow::Owned(format!("{key}: '{}'\n", value.replace('\'', "''")))
}
