//! Merging of Markdown files into one source: duplicate names, overrides, and the policies over tools.

use std::collections::HashMap;

use crate::source::diagnostics::{Diagnostics, Parsed, ScopedDiagnostic};
use crate::source::tools_policy::ToolsPolicy;
use crate::tool::{Origin, Place, ScriptedHook, Tool};

use super::{FileContent, Placed};

/// Content of several files, in order, before duplicate names are resolved.
#[derive(Default)]
pub(in crate::source) struct Merge {
    tools: Vec<Definition<Tool>>,
    hooks: Vec<Definition<ScriptedHook>>,
    policies: Vec<ToolsPolicy>,
    problems: Vec<ScopedDiagnostic>,
}

/// Tool or hook of a file.
struct Definition<T> {
    placed: Placed<T>,
    /// `true` if it may replace another of its name.
    overrides: bool,
}

impl Merge {
    /// Adds the content of a file. With `overrides`, its tools and hooks may replace others of their names.
    pub(in crate::source) fn add(&mut self, content: FileContent, overrides: bool) {
        let FileContent { tools, hooks, policy, problems, .. } = content;
        self.tools.extend(tools.into_iter().map(|placed| Definition { placed, overrides }));
        self.hooks.extend(hooks.into_iter().map(|placed| Definition { placed, overrides }));
        self.policies.extend(policy);
        self.problems.extend(problems);
    }

    /// Adds problems that belong to no file.
    pub(in crate::source) fn report(&mut self, problems: Vec<ScopedDiagnostic>) {
        self.problems.extend(problems);
    }

    /// Resolves duplicate names, appends the result to `before`, and applies the policies to all tools.
    pub(in crate::source) fn finish(self, before: Parsed) -> Parsed {
        let Self { tools, hooks, policies, problems } = self;
        let mut parsed = before;
        parsed.problems.extend(problems);
        let known = parsed.tools.iter().map(|tool| (tool.name.clone(), tool.origin.describe())).collect();
        let tools = resolve("tool", tools, |tool| tool, known, &mut parsed.problems);
        let hooks = resolve("hook", hooks, |hook| &hook.tool, HashMap::new(), &mut parsed.problems);
        parsed.tools.extend(tools);
        parsed.hooks.extend(hooks);
        policies.iter().for_each(|policy| policy.apply(&mut parsed.tools));
        parsed.policies.extend(policies);
        parsed
    }
}

/// Keeps one definition per name, at the index of the first. `known` maps names that cannot be replaced to their
/// sources.
fn resolve<T>(
    noun: &str,
    definitions: Vec<Definition<T>>,
    tool: impl Fn(&T) -> &Tool,
    known: HashMap<String, String>,
    problems: &mut Vec<ScopedDiagnostic>,
) -> Vec<T> {
    let mut unique: Vec<Definition<T>> = Vec::with_capacity(definitions.len());
    let mut by_name: HashMap<String, usize> = HashMap::new();
    for definition in definitions {
        let Tool { name, origin, .. } = tool(&definition.placed.value);
        let first = match (known.get(name), by_name.get(name).map(|index| &mut unique[*index])) {
            (Some(first), _) => first.clone(),
            (None, Some(first)) if definition.overrides && !first.overrides => {
                *first = definition;
                continue;
            }
            (None, Some(first)) => location(&tool(&first.placed.value).origin, first.placed.place),
            (None, None) => {
                by_name.insert(name.clone(), unique.len());
                unique.push(definition);
                continue;
            }
        };
        let second = location(origin, definition.placed.place);
        let mut report = Diagnostics::new(&origin.path);
        let message = format!("{noun} {name:?} is defined more than once: in {first} and in {second}");
        report.invalid(definition.placed.place, message);
        problems.extend(report.problems);
    }
    unique.into_iter().map(|definition| definition.placed.value).collect()
}

/// Formats the position of a definition for messages.
fn location(origin: &Origin, place: Option<Place>) -> String {
    match place {
        Some(Place { line, column }) => format!("{}:{line}:{column}", origin.path.display()),
        None => origin.path.display().to_string(),
    }
}
