//! Tools that a program can call, and the schemas of those that it mentions.

use std::collections::HashSet;

use crate::pipeline::prepared::callable_names::{CallableNames, identifier, is_part, may_be_called};
use crate::pipeline::state::{CallScope, Pipeline};
use crate::sandbox::CodeTool;
use crate::schema;
use crate::tool::Tool;

/// Maximum number of tools whose names an interpreter gets although its program does not mention them, to suggest one.
const MAX_NAMED: usize = 200;
/// Maximum bytes of the schema of one tool. A longer one is left out, and the call checks its arguments alone.
const MAX_SCHEMA: usize = 64 << 10;
/// Maximum bytes of all schemas.
const MAX_SCHEMAS: usize = 1 << 20;

/// Schema of a tool that accepts any object.
const OPEN: &str = "{}";

/// Tools by their names in programs.
pub(super) struct CallableTools<'p> {
    names: &'p CallableNames,
    /// Tools of the registry, by the indices of the names.
    registered: &'p [Tool],
    /// Tools that scripts added to the conversation.
    added: Vec<(String, &'p Tool)>,
}

/// A tool with its schema, for an interpreter.
pub(super) struct MentionedTool<'p> {
    name: &'p str,
    schema: String,
}

impl<'p> CallableTools<'p> {
    /// Returns the tools that a caller can name.
    pub(super) fn new(pipeline: &'p Pipeline, scope: &'p CallScope<'_>) -> Self {
        let added = scope.memory.tools.iter().map(|added| &added.tool).filter(|tool| may_be_called(tool));
        let added = added.map(|tool| (identifier(&tool.name), tool)).collect();
        Self { names: pipeline.names_in_programs(), registered: pipeline.registry.tools(), added }
    }

    /// Returns the tool with a name in programs, and its name in calls. Among tools that share a name, it is the one that is called
    /// so, then the one of the registry.
    pub(super) fn find(&self, name: &str) -> Option<(&'p str, &'p Tool)> {
        let added = |(_, tool): &(String, &'p Tool)| (tool.name.as_str(), *tool);
        let exact = self.added.iter().find(|(_, tool)| tool.name == name).map(added);
        let registered = || self.names.find(name).map(|(called, index)| (called, &self.registered[index]));
        let similar = || self.added.iter().find(|(added, _)| added == name).map(added);
        exact.or_else(registered).or_else(similar)
    }

    /// Returns the tools that a program mentions with their schemas, and the first of the others without.
    pub(super) fn mentioned<'a>(&'a self, code: &'a str) -> Vec<MentionedTool<'a>> {
        let mut known = HashSet::new();
        let mut tools = Vec::new();
        let mut left = MAX_SCHEMAS;
        for word in code.split(|c: char| !is_part(c)) {
            let Some((_, tool)) = self.find(word).filter(|_| known.insert(word)) else { continue };
            let most = MAX_SCHEMA.min(left);
            let schema = if most > 0 { tool.model_input_schema() } else { None };
            let schema =
                schema.and_then(|schema| schema::text_within(&schema, most)).unwrap_or_else(|| OPEN.to_owned());
            left -= schema.len().min(left);
            tools.push(MentionedTool { name: word, schema });
        }
        let registered = self.names.iter().map(|(name, _)| name);
        let names = self.added.iter().map(|(name, _)| name.as_str()).chain(registered);
        let others = names.filter(|name| known.insert(name)).take(MAX_NAMED);
        let others: Vec<_> = others.map(|name| MentionedTool { name, schema: OPEN.to_owned() }).collect();
        tools.extend(others);
        tools
    }
}

impl<'a> From<&'a MentionedTool<'_>> for CodeTool<'a> {
    fn from(tool: &'a MentionedTool<'_>) -> Self {
        Self { name: tool.name, schema: &tool.schema }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::tool::tests::plain;

    fn with_names<T>(tools: &[Tool], look: impl FnOnce(CallableTools<'_>) -> T) -> T {
        let names = CallableNames::of(tools.iter(), &HashMap::new());
        look(CallableTools { names: &names, registered: tools, added: Vec::new() })
    }

    #[test]
    fn only_mentioned_tools_have_a_schema_within_the_limits() {
        let mut tools = ["e", "echo"].map(plain);
        tools[0].parameters = Some(serde_json::json!({"type": "object"}));
        tools[1].parameters = Some(serde_json::json!({"type": "object", "description": "x".repeat(MAX_SCHEMA)}));
        let schemas = |code: &str| {
            with_names(&tools, |tools| {
                tools.mentioned(code).into_iter().map(|tool| (tool.name.to_owned(), tool.schema)).collect::<Vec<_>>()
            })
        };
        let pair = |name: &str, schema: &str| (name.to_owned(), schema.to_owned());
        assert_eq!(schemas("tools.echo(n=1)"), [pair("echo", OPEN), pair("e", OPEN)], "a part of a word is no mention");
        assert_eq!(schemas("tools.e(n=1)"), [pair("e", r#"{"type":"object"}"#), pair("echo", OPEN)]);
    }

    #[test]
    fn so_many_names_are_listed_without_a_mention() {
        let many: Vec<Tool> = (0..1000).map(|n| plain(&format!("t{n}"))).collect();
        let names = with_names(&many, |tools| {
            tools.mentioned("t999").iter().map(|tool| tool.name.to_owned()).collect::<Vec<_>>()
        });
        assert_eq!((names.len(), names[0].as_str(), names[1].as_str()), (MAX_NAMED + 1, "t999", "t0"));
    }
}
