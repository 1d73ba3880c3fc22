//! Names of tools in programs, and the schemas that a program can mention.

use std::collections::{HashMap, HashSet};

use crate::pipeline::state::{CallScope, Pipeline};
use crate::sandbox::CodeTool;
use crate::tool::{Body, Tool, Visibility};

/// Maximum number of tools whose names an interpreter gets although its program does not mention them, to suggest one.
const MAX_NAMED: usize = 200;
/// Maximum bytes of the schema of one tool. A longer one is left out, and the call checks its arguments alone.
const MAX_SCHEMA: usize = 64 << 10;
/// Maximum bytes of all schemas.
const MAX_SCHEMAS: usize = 1 << 20;

/// Schema of a tool that accepts any object.
const OPEN: &str = "{}";

/// Tools by their names in programs.
pub(super) struct CallableTools<'p>(Vec<(String, &'p Tool)>);

impl<'p> CallableTools<'p> {
    /// Returns the tools that a caller can name. A call of a tool that is denied is refused and recorded, as a direct call is.
    pub(super) fn new(pipeline: &'p Pipeline, scope: &'p CallScope<'_>) -> Self {
        let added = scope.memory.tools.iter().map(|added| &added.tool);
        Self::of(pipeline.registry.tools().iter().chain(added))
    }

    /// Names tools by identifiers. A name that is one belongs to its tool; another gets `_` for its other characters, unless the
    /// identifier is taken or two names would share it.
    fn of(tools: impl Iterator<Item = &'p Tool>) -> Self {
        let is_called = |tool: &&Tool| {
            !matches!(tool.body, Body::Builtin(_))
                && tool.interface.discovery.schema_visibility.value != Visibility::Internal
        };
        let tools: Vec<&Tool> = tools.filter(is_called).collect();
        let exact: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let named: Vec<(String, &Tool)> = tools.iter().map(|tool| (identifier(&tool.name), *tool)).collect();
        let mut count: HashMap<&str, usize> = HashMap::new();
        for (name, _) in &named {
            *count.entry(name).or_default() += 1;
        }
        let is_own = |name: &str, tool: &Tool| name == tool.name || count[name] == 1 && !exact.contains(name);
        let owned: Vec<bool> = named.iter().map(|(name, tool)| is_own(name, tool)).collect();
        Self(named.into_iter().zip(owned).filter(|(_, is_own)| *is_own).map(|(named, _)| named).collect())
    }

    /// Returns the tool with a name in programs.
    pub(super) fn find(&self, name: &str) -> Option<&'p Tool> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, tool)| *tool)
    }

    /// Returns the schemas of the tools that a program mentions, in the order of the tools; empty for the others.
    pub(super) fn schemas(&self, code: &str) -> Vec<String> {
        let words: HashSet<&str> = code.split(|c: char| !is_part(c)).collect();
        let mut left = MAX_SCHEMAS;
        let schema = |(name, tool): &(String, &Tool)| {
            if !words.contains(name.as_str()) {
                return String::new();
            }
            let schema = tool.model_input_schema().map(|schema| schema.to_string());
            let schema =
                schema.filter(|schema| schema.len() <= MAX_SCHEMA.min(left)).unwrap_or_else(|| OPEN.to_owned());
            left -= schema.len().min(left);
            schema
        };
        self.0.iter().map(schema).collect()
    }

    /// Returns the tools for an interpreter, with these schemas. Of the tools that the program does not mention, the first have
    /// their names alone.
    pub(super) fn listed<'a>(&'a self, schemas: &'a [String]) -> Vec<CodeTool<'a>> {
        let mut unmentioned = 0;
        let all = self.0.iter().zip(schemas).filter(|(_, schema)| {
            unmentioned += usize::from(schema.is_empty());
            !schema.is_empty() || unmentioned <= MAX_NAMED
        });
        all.map(|((name, _), schema)| CodeTool { name, schema: if schema.is_empty() { OPEN } else { schema } })
            .collect()
    }
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn identifier(name: &str) -> String {
    name.replace(|c: char| !is_part(c), "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::tests::plain;

    #[test]
    fn an_identifier_belongs_to_the_tool_of_that_name() {
        let tools = ["fs+write", "fs_write", "a.b", "c-d", "c/d", "é"].map(plain);
        let named = CallableTools::of(tools.iter());
        let found = |name: &str| named.find(name).map(|tool| tool.name.as_str());
        assert_eq!(found("fs_write"), Some("fs_write"), "no other name takes it");
        assert_eq!((found("a_b"), found("_")), (Some("a.b"), Some("é")));
        assert_eq!(found("c_d"), None, "two names would share it");
    }

    #[test]
    fn only_mentioned_tools_have_a_schema_within_the_limits() {
        let mut tools = ["e", "echo"].map(plain);
        tools[1].parameters = Some(serde_json::json!({"type": "object", "description": "x".repeat(MAX_SCHEMA)}));
        let named = CallableTools::of(tools.iter());
        assert_eq!(named.schemas("tools.echo(n=1)"), ["", OPEN], "a part of a word is no mention");
        let many: Vec<Tool> = (0..1000).map(|n| plain(&format!("t{n}"))).collect();
        let named = CallableTools::of(many.iter());
        let schemas = named.schemas("t999");
        let listed = named.listed(&schemas);
        assert_eq!((listed.len(), listed.last().map(|tool| tool.name)), (MAX_NAMED + 1, Some("t999")));
    }
}
