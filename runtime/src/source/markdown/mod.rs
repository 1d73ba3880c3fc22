//! Markdown files with front matter: each is a tool or a hook, or holds lists of both. The script in it is not executed
//! here.

mod entry;
mod front_matter;
mod hook;
mod layout;
mod merge;
mod node;
mod parameters;
mod policy;
mod runtime_definition;
mod script;
mod yaml;

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolcrib_foundation::text::listed;

use crate::error::UnknownToolWording;
use crate::tool::{Body, Format, Origin, Place, ScriptedHook, Tool};

use super::diagnostics::{Diagnostics, Fault, Parsed, ScopedDiagnostic};
use super::dialect::Dialect;
use super::document::{Candidate, from_root, read_text, without_mark};
use super::name;
use super::shape::kind;
use super::suggestion::nearest;
use super::tools_policy::ToolsPolicy;

use entry::Entry;
pub(super) use layout::{BUILTINS, FILE, FOLDER, FOLDERS, Kind, OVERRIDES};
pub(super) use merge::Merge;
use node::{Data, Fields, Node};
pub(crate) use runtime_definition::{defined_hook, defined_tool};
use script::Lines;

/// Fields of a file with lists. Only a project file may have the last.
const FIELDS: [&str; 3] = ["tools", "hooks", "tools_policy"];

/// A Markdown file.
pub(super) struct Markdown;

impl Dialect for Markdown {
    fn matches_path(&self, path: &Path) -> bool {
        is_markdown(path)
    }

    fn read(&self, candidate: &Candidate<'_>) -> Parsed {
        self.read_entries(&[candidate.path()], Parsed::default())
    }

    fn matches_entry(&self, file: &Path) -> bool {
        is_entry(file)
    }

    fn read_entries(&self, files: &[&Path], before: Parsed) -> Parsed {
        let mut merge = Merge::default();
        files.iter().for_each(|file| merge.add(read_file(file, Kind::of(file)), false));
        merge.finish(before)
    }

    fn entry_form(&self) -> Option<&'static str> {
        Some("Markdown tool (`NAME.md`)")
    }
}

/// Returns `true` if the file name ends in `.md`.
fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

/// Returns `true` if a file of a folder is a tool or a hook: any Markdown file but `README.md`.
pub(super) fn is_entry(path: &Path) -> bool {
    is_markdown(path) && !path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("readme"))
}

/// Creates the origin of a tool or hook in a file.
fn origin(path: impl Into<Arc<Path>>) -> Origin {
    Origin { wording: UnknownToolWording::NotFound, ..Origin::of(Format::Markdown, path) }
}

/// Tool or hook with its position in the file.
#[derive(Debug)]
pub(super) struct Placed<T> {
    value: T,
    place: Option<Place>,
}

/// Content of a file.
#[derive(Default)]
pub(super) struct FileContent {
    tools: Vec<Placed<Tool>>,
    hooks: Vec<Placed<ScriptedHook>>,
    policy: Option<ToolsPolicy>,
    /// Body for the one tool in a file if the tool is faulty.
    faulty: Option<Body>,
    problems: Vec<ScopedDiagnostic>,
}

/// Reads a file of a kind, with every problem in it.
pub(super) fn read_file(path: &Path, kind: Kind) -> FileContent {
    let mut report = Diagnostics::new(path);
    let mut content = FileContent::default();
    content.read(path, kind, &mut report);
    if kind == Kind::Tool
        && let Some(unusable) = report.confine(0)
    {
        // The file is one tool, which is unusable.
        content.tools.clear();
        let name = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned).and_then(name::usable);
        let body = content.faulty.take().unwrap_or(Body::Absent);
        let broken = name.map(|name| Tool { body, ..Tool::broken(name, unusable, origin(from_root(path))) });
        content.tools.extend(broken.map(|value| Placed { value, place: None }));
    }
    content.problems = report.problems;
    content.problems.sort_by_key(|scoped| scoped.problem.place);
    content
}

impl FileContent {
    /// Reads a file. Returns `None` if it cannot be parsed.
    fn read(&mut self, path: &Path, kind: Kind, report: &mut Diagnostics) -> Option<()> {
        let noun = kind.noun();
        let text = report.value(read_text(path).map_err(|error| format!("read {noun}: {error}")))?;
        let parse = format!("parse {noun} {}: ", path.file_name().unwrap_or_default().to_string_lossy());
        let parts = front_matter::split(without_mark(&text));
        let parts = parts.map_err(|fault| report.alone(fault.place, format!("{parse}{}", fault.message))).ok()?;
        report.parsing(format!("{parse}parse {noun} frontmatter: "));
        let top = report.parsed(yaml::parse(parts.yaml))?;
        let mut fields = match top.data {
            Data::Null => Fields::default(),
            _ => report.parsed(top.fields("front matter"))?,
        };
        let origin = Origin { text: Some(Arc::from(text.as_str())), ..origin(from_root(path)) };
        let lines = Lines::of(&text);
        if let Kind::Tool | Kind::Hook = kind {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
            let name = report
                .value(stem.ok_or("the file's name is not UTF-8, so the tool or hook would have no name".to_owned()))?;
            self.faulty = Some(script::of_faulty(fields.get("script"), &lines));
            let entry = Entry::of_file(&format!("{noun}s[0]"), name, parts.body, fields, origin);
            match kind {
                Kind::Hook => self.hooks.extend(entry.hook(&lines, report)),
                _ => self.tools.extend(entry.tool(&lines, report)),
            }
            return Some(());
        }
        for (index, (label, node)) in list("tools", &mut fields, report).into_iter().enumerate() {
            let origin = Origin { index: Some(index), ..origin.clone() };
            let (mark, name, place) = (report.mark(), node.name().and_then(name::usable), node.place);
            let body = script::of_faulty(node.child("script"), &lines);
            let tool = Entry::of_node(label, node, origin.clone(), report).and_then(|entry| entry.tool(&lines, report));
            let broken = report.confine(mark);
            let broken = broken.and_then(|unusable| Some(Tool { body, ..Tool::broken(name?, unusable, origin) }));
            self.tools.extend(broken.map(|value| Placed { value, place }).or(tool));
        }
        for (label, node) in list("hooks", &mut fields, report) {
            let entry = Entry::of_node(label, node, origin.clone(), report);
            self.hooks.extend(entry.and_then(|entry| entry.hook(&lines, report)));
        }
        if kind == Kind::Project {
            self.policy = policy::read(fields.take("tools_policy"), report);
        }
        warn_of_unknown(fields, report);
        Some(())
    }
}

/// Takes the entries of a list, each with its label `FIELD[INDEX]`.
fn list(field: &str, fields: &mut Fields, report: &mut Diagnostics) -> Vec<(String, Node)> {
    let items = report.parsed(fields.read(field, Node::list)).flatten().unwrap_or_default();
    let label = |(index, node)| (format!("{field}[{index}]"), node);
    items.into_iter().enumerate().map(label).collect()
}

/// Splits Markdown text into its front matter's fields and its body.
///
/// # Errors
///
/// The delimiters are missing, or the front matter is no map in YAML.
pub(super) fn front_matter(text: &str) -> Result<(Map<String, Value>, &str), Fault> {
    let parts = front_matter::split(text)?;
    match yaml::parse(parts.yaml)?.json() {
        Value::Object(fields) => Ok((fields, parts.body)),
        Value::Null => Ok((Map::new(), parts.body)),
        other => {
            let message = format!("the front matter must be a map, found {}", kind(&other));
            Err(Fault { place: None, message })
        }
    }
}

/// Returns the text after the front matter; the whole text without one.
pub(crate) fn body_of(text: &str) -> &str {
    let text = without_mark(text);
    front_matter::split(text).map_or(text, |parts| parts.body)
}

/// Adds one warning for all fields that belong to another system.
fn warn_of_unknown(fields: Fields, report: &mut Diagnostics) {
    let unknown = fields.rest();
    let Some((first, _)) = unknown.first() else { return };
    let named = unknown.iter().map(|(key, _)| match nearest(&key.name, FIELDS.into_iter()) {
        Some(near) => format!("`{}` (did you mean `{near}`?)", key.name),
        None => format!("`{}`", key.name),
    });
    report.enter(String::new());
    report.warn_at(first.place, &format!("fields of another system are kept and ignored: {}", listed(named)));
}
