//! Dialect C: Markdown files with front matter, of which each is a tool or a hook, and those that hold lists of both: the
//! project's own file and bundles. Nothing in a body is ever executed.

mod defined;
mod entry;
mod front_matter;
mod hook;
mod node;
mod parameters;
mod policy;
mod script;
mod yaml;

use std::path::Path;
use std::sync::Arc;

use serde_json::Map;

use crate::tool::{Format, Origin, Place, ScriptedHook, Tool};

use super::diagnostics::{Diagnostics, ScopedDiagnostic, nearest};
use super::document::{from_root, read_text, without_mark};
use super::name;

pub(crate) use defined::{defined_hook, defined_tool};
use entry::Entry;
use node::{Data, Fields, Node};
pub(crate) use policy::ToolsPolicy;
use script::Lines;

/// The fields of a file that holds lists; the last of them is the project's alone.
const FIELDS: [&str; 3] = ["tools", "hooks", "tools_policy"];
/// How many fields of another system are named in a warning.
const MAX_NAMED: usize = 16;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One tool: the file's name is its own.
    Tool,
    /// One hook, likewise.
    Hook,
    /// A list of each.
    Bundle,
    /// The same of the project, and which tools a model may use.
    Project,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Hook => "hook",
            Self::Bundle => "bundle",
            Self::Project => "harness",
        }
    }
}

/// A tool or a hook, and where in its file it begins.
#[derive(Debug)]
pub(super) struct Found<T> {
    pub(super) value: T,
    pub(super) place: Option<Place>,
}

/// What a file holds.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) tools: Vec<Found<Tool>>,
    pub(super) hooks: Vec<Found<ScriptedHook>>,
    pub(super) policy: Option<ToolsPolicy>,
    pub(super) problems: Vec<ScopedDiagnostic>,
}

/// Whether a file's name says that it is Markdown.
pub(super) fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

/// Whether a file of a folder is an artifact: what tells people about the folder is none.
pub(super) fn is_named(path: &Path) -> bool {
    is_markdown(path) && !path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("readme"))
}

/// What a file of this kind holds, and every problem in it.
pub(super) fn read(path: &Path, kind: Kind) -> Contents {
    let mut report = Diagnostics::new(path);
    let mut contents = Contents::default();
    contents.read(path, kind, &mut report);
    if kind == Kind::Tool
        && let Some(unusable) = report.confine(0)
    {
        // A file is one tool, whatever of it could be read.
        contents.tools.clear();
        let name = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned).and_then(name::usable);
        let origin = Origin::of(Format::Markdown, from_root(path));
        contents.tools.extend(name.map(|name| Found { value: Tool::broken(name, unusable, origin), place: None }));
    }
    contents.problems = report.problems;
    contents.problems.sort_by_key(|noted| noted.problem.place);
    contents
}

impl Contents {
    /// Nothing where the file cannot be parsed.
    fn read(&mut self, path: &Path, kind: Kind, report: &mut Diagnostics) -> Option<()> {
        let noun = kind.word();
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
        let origin = Origin {
            format: Format::Markdown,
            path: Arc::from(from_root(path)),
            index: None,
            text: Some(Arc::from(text.as_str())),
            unknown: Map::new(),
        };
        let lines = Lines::of(&text);
        if let Kind::Tool | Kind::Hook = kind {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
            let name =
                report.value(stem.ok_or("the file's name is not UTF-8, so nothing would have a name".to_owned()))?;
            let entry = Entry::of_file(&format!("{noun}s[0]"), name, parts.body, fields, origin);
            match kind {
                Kind::Hook => self.hooks.extend(entry.hook(&lines, report)),
                _ => self.tools.extend(entry.tool(&lines, report)),
            }
            return Some(());
        }
        for (label, node) in list("tools", &mut fields, report) {
            let origin = Origin { index: Some(label.0), ..origin.clone() };
            let (mark, name, place) = (report.mark(), node.name().and_then(name::usable), node.place);
            let tool =
                Entry::of_node(label.1, node, origin.clone(), report).and_then(|entry| entry.tool(&lines, report));
            let broken = report.confine(mark);
            let broken = broken.and_then(|unusable| Some(Tool::broken(name?, unusable, origin)));
            self.tools.extend(broken.map(|value| Found { value, place }).or(tool));
        }
        for (label, node) in list("hooks", &mut fields, report) {
            let entry = Entry::of_node(label.1, node, origin.clone(), report);
            self.hooks.extend(entry.and_then(|entry| entry.hook(&lines, report)));
        }
        if kind == Kind::Project {
            self.policy = ToolsPolicy::read(fields.take("tools_policy"), report);
        }
        others(fields, report);
        Some(())
    }
}

/// The entries of a list, each with its place in it and how that is told.
fn list(field: &str, fields: &mut Fields, report: &mut Diagnostics) -> Vec<((usize, String), Node)> {
    let items = report.parsed(fields.read(field, Node::list)).flatten().unwrap_or_default();
    let label = |(index, node)| ((index, format!("{field}[{index}]")), node);
    items.into_iter().enumerate().map(label).collect()
}

/// One warning for all fields that are for another system.
fn others(fields: Fields, report: &mut Diagnostics) {
    let others = fields.rest();
    let Some((first, _)) = others.first() else { return };
    let named = others.iter().take(MAX_NAMED).map(|(key, _)| match nearest(&key.name, FIELDS.into_iter()) {
        Some(near) => format!("`{}` (did you mean `{near}`?)", key.name),
        None => format!("`{}`", key.name),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = others.len().checked_sub(MAX_NAMED).filter(|more| *more > 0);
    let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
    report.enter(String::new());
    report.warn_at(first.place, &format!("fields of another system are kept and ignored: {named}{more}"));
}
