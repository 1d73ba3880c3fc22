//! Check of a program before anything runs: syntax, and every call `tools.NAME({...})` against the schema of the tool.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use boa_engine::ast::expression::access::{PropertyAccess, PropertyAccessField};
use boa_engine::ast::expression::{Call, Expression, Identifier};
use boa_engine::ast::statement::With;
use boa_engine::ast::visitor::{VisitWith as _, Visitor};
use boa_engine::ast::{Position, Spanned as _};
use boa_engine::interner::Interner;

use crate::literals::{self, Members};
use crate::program::{self, Invalid};
use code_guest::tools::{Tool, Tools};

/// Problem in a program. Lines and columns count from 1; 0 if unknown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Line.
    pub(crate) line: u32,
    /// Column, in characters.
    pub(crate) column: u32,
    /// Message.
    pub(crate) message: String,
}

impl From<Invalid> for Problem {
    fn from(Invalid { message, line, column }: Invalid) -> Self {
        Self { line, column, message }
    }
}

/// Name of the object whose methods are the tools.
const TOOLS: &str = "tools";
/// Maximum number of reported problems.
const MAX_PROBLEMS: usize = 50;

/// Lists the problems of a program.
pub(crate) fn check(source: &str, tools: &Tools) -> Vec<Problem> {
    let (body, interner) = match program::parse(source) {
        Ok(parsed) => parsed,
        Err(invalid) => return vec![invalid.into()],
    };
    let mut checker = Checker {
        tools,
        interner: &interner,
        found: Vec::new(),
        unknown: Vec::new(),
        mentioned: HashSet::new(),
        identifiers: 0,
        references: 0,
        with: false,
    };
    let _ = checker.visit_function_body(&body);
    // Where the name is bound, assigned or destructured, `tools` may be something else.
    if checker.identifiers > checker.references || checker.with {
        return Vec::new();
    }
    let Checker { mut found, unknown, mentioned, .. } = checker;
    // A name that the program tests before it calls it is no mistake.
    let unknown = unknown.into_iter().filter(|(name, _)| !mentioned.contains(name));
    found.extend(unknown.map(|(name, start)| problem(start, tools.unknown(&name))));
    found.sort_by_key(|problem| (problem.line, problem.column));
    found.truncate(MAX_PROBLEMS);
    found
}

fn problem(start: Position, message: String) -> Problem {
    Problem { line: start.line_number(), column: start.column_number(), message }
}

struct Checker<'a> {
    tools: &'a Tools,
    interner: &'a Interner,
    found: Vec<Problem>,
    /// Calls of tools that do not exist.
    unknown: Vec<(String, Position)>,
    /// Names of tools that the program mentions without a call.
    mentioned: HashSet<String>,
    /// Identifiers `tools`, of whatever use.
    identifiers: usize,
    /// Identifiers `tools` that are expressions.
    references: usize,
    /// `true` if a statement gives names a meaning that the source does not say.
    with: bool,
}

impl Checker<'_> {
    fn is_tools(&self, identifier: Identifier) -> bool {
        self.interner.resolve_expect(identifier.sym()).to_string() == TOOLS
    }

    /// Name and position of a tool in `tools.NAME` or `tools["NAME"]`.
    fn tool_name(&self, expression: &Expression) -> Option<(String, Position)> {
        let Expression::PropertyAccess(PropertyAccess::Simple(access)) = expression else { return None };
        let Expression::Identifier(object) = access.target() else { return None };
        if !self.is_tools(*object) {
            return None;
        }
        let (name, start) = match access.field() {
            PropertyAccessField::Const(name) => (name.sym(), name.span().start()),
            PropertyAccessField::Expr(field) => match field.as_ref() {
                Expression::Literal(literal) => (literal.as_string()?, literal.span().start()),
                _ => return None,
            },
        };
        Some((self.interner.resolve_expect(name).to_string(), start))
    }

    /// A call `tools.NAME(...)`.
    fn tool(&mut self, call: &Call, tool: &Tool, start: Position) {
        if call.args().iter().any(|argument| matches!(argument, Expression::Spread(_))) {
            return;
        }
        if let [_, extra, ..] = call.args() {
            let message = format!("tools.{} takes one object of arguments, such as `{{ name: value }}`", tool.name);
            self.found.push(problem(program::start(extra), message));
            return;
        }
        let members = match call.args().first().map(Expression::flatten) {
            None => Members { named: Vec::new(), open: false },
            Some(Expression::ObjectLiteral(object)) => Members::new(object, self.interner),
            Some(argument) => {
                if let Some(kind) = literals::no_object(argument, self.interner) {
                    let message = format!(
                        "tools.{} takes one object of arguments, such as `{{ name: value }}`, not {kind}",
                        tool.name
                    );
                    self.found.push(problem(program::start(argument), message));
                }
                return;
            }
        };
        for (name, at, value) in &members.named {
            match (tool.parameter(name), value) {
                (Some(parameter), Some(value)) => {
                    if let Some(mistake) = literals::mistake(&parameter.schema, value, self.interner) {
                        let message = format!("`{name}` of tools.{} {}", tool.name, mistake.message);
                        self.found.push(problem(mistake.start, message));
                    }
                }
                (None, _) if !tool.open => self.found.push(problem(*at, tool.unknown_argument(name))),
                _ => {}
            }
        }
        let missing = tool.parameters.iter().filter(|parameter| parameter.required && !members.has(&parameter.name));
        let missing: Vec<&str> = missing.map(|parameter| parameter.name.as_str()).collect();
        if !missing.is_empty() {
            self.found.push(problem(start, tool.missing_arguments(&missing)));
        }
    }
}

impl<'ast> Visitor<'ast> for Checker<'_> {
    type BreakTy = Infallible;

    fn visit_expression(&mut self, expression: &'ast Expression) -> ControlFlow<Infallible> {
        match expression {
            Expression::Identifier(identifier) if self.is_tools(*identifier) => self.references += 1,
            Expression::Call(call) => {
                if let Some((name, start)) = self.tool_name(call.function()) {
                    let tools = self.tools;
                    match tools.get(&name) {
                        Some(tool) => self.tool(call, tool, program::start(call.function())),
                        None => self.unknown.push((name, start)),
                    }
                    // Not the function itself, which would count as a mention.
                    self.references += 1;
                    self.identifiers += 1;
                    return call.args().iter().try_for_each(|argument| self.visit_expression(argument));
                }
            }
            other => self.mentioned.extend(self.tool_name(other).map(|(name, _)| name)),
        }
        expression.visit_with(self)
    }

    fn visit_identifier(&mut self, identifier: &'ast Identifier) -> ControlFlow<Infallible> {
        self.identifiers += usize::from(self.is_tools(*identifier));
        ControlFlow::Continue(())
    }

    fn visit_with(&mut self, with: &'ast With) -> ControlFlow<Infallible> {
        self.with = true;
        with.visit_with(self)
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use code_guest::testing::tools;

    fn messages(source: &str) -> Vec<String> {
        check(source, &tools())
            .into_iter()
            .map(|problem| format!("{}:{} {}", problem.line, problem.column, problem.message))
            .collect()
    }

    #[test]
    fn correct_programs_have_no_problem() {
        for source in [
            "await tools.fs_search({ pattern: 'x', include: ['a'], mode: 'text', limit: 3 })",
            "await tools['fs_search']({ pattern, ...more })",
            "tools.fs_search({ limit: 'x', ...more })",
            "tools.fs_search({ limit: 'x', [key]: 1 })",
            "tools.fs_search({ limit: 'x', pattern: 'x', limit: 3 })",
            "tools.fs_search({ pattern: `a${b}`, mode: x ? 'text' : 'regex' })",
            "tools.fs_search({ __proto__: base })",
            "tools.add({ a: 1, b: -2.5 })",
            "tools.add(...list); tools.add(object); tools.add(f())",
            "tools.add({ a: 1, get b() { return 2 } })",
            "tools.any(); tools.any({ x: 1 })",
            "if (tools.nope) await tools.nope(1)",
            "const { add } = tools; add({})",
            "const tools = {}; tools.nope()",
            "function f(tools) { tools.nope() }",
            "try { a } catch (tools) { tools.nope() }",
            "const { tools } = b; tools.nope()",
            "for (const tools of b) tools.nope()",
            "tools = b; tools.nope()",
            "function tools() {} tools.nope()",
            "with (a) { tools.nope() }",
            "(tools => tools.nope())(1)",
            "tools[name](1)",
            "tools.fs_search({ pattern: 'x', include: [...list, 'a'] })",
            "a.tools.nope()",
            "return 1",
        ] {
            assert_eq!(messages(source), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn mistakes_are_found_where_they_are() {
        let found = |source: &str, start: &str| {
            let messages = messages(source);
            assert_eq!(messages.len(), 1, "{source}: {messages:?}");
            assert!(messages[0].starts_with(start), "{source}: {messages:?}");
        };
        found(
            "const x = 1\nawait tools.fs_serach({ pattern: 'x' })",
            "2:13 there is no tool `fs_serach`: did you mean `fs_search`?",
        );
        found("tools['fs_serach']({})", "1:7 there is no tool `fs_serach`");
        found("'é', tools.fs_search({ ...a, patern: 1 })", "1:30 tools.fs_search has no argument `patern`");
        found(
            "tools.fs_search({ pattern: 'x', inclde: [] })",
            "1:33 tools.fs_search has no argument `inclde`: did you mean `include`?",
        );
        found(
            "tools.fs_search({ pattern: 'x', limit: '3' })",
            "1:40 `limit` of tools.fs_search must be an integer, not a string",
        );
        found(
            "tools.fs_search({ pattern: 'x', limit: 3.5 })",
            "1:40 `limit` of tools.fs_search must be an integer, not a number",
        );
        found(
            "tools.fs_search({ pattern: 'x', include: ['a', 1] })",
            "1:48 `include` of tools.fs_search must be a string, not an integer",
        );
        found(
            "tools.fs_search({ pattern: 'x', mode: 'glob' })",
            "1:39 `mode` of tools.fs_search must be one of \"text\", \"regex\"",
        );
        found("tools.fs_search({ pattern: `a${b}`, limit: x ? 1 : null })", "1:52 `limit` of tools.fs_search must be");
        found("tools.fs_search({ pattern: () => 1 })", "1:28 `pattern` of tools.fs_search is a function");
        found("tools.add({ a: 1n, b: 2 })", "1:16 `a` of tools.add is a BigInt");
        found("[1].map(x => tools.add({ a: x }))", "1:14 tools.add needs the argument `b`");
        found("tools.add()", "1:1 tools.add needs the arguments `b`, `a`");
        found("tools.add(1, 2)", "1:14 tools.add takes one object of arguments");
        found(
            "tools.add('x')",
            "1:11 tools.add takes one object of arguments, such as `{ name: value }`, not a string",
        );
        found("tools.add([1, 2])", "1:11 tools.add takes one object of arguments");
        found("x = (", "");
        found("let a = 1\nlet = = 2", "2:");
        found("import fs from 'fs'", "1:");
        found(&"(".repeat(100_000), "0:0 ");
    }

    #[test]
    fn problems_are_bounded() {
        assert_eq!(messages(&"tools.nope();\n".repeat(1_000)).len(), 50);
    }
}
