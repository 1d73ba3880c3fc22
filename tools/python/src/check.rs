//! Check of a program before anything runs: syntax, features that the interpreter lacks, modules that do not exist, and every
//! call `tools.NAME(...)` against the schema of the tool.

use monty::MontyRun;
use monty_types::CompileOptions;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, Expr, ExprAttribute, ExprCall, ExprContext, Parameter, Stmt};
use ruff_python_parser::parse_module;
use ruff_source_file::{LineIndex, OneIndexed};
use ruff_text_size::{Ranged as _, TextRange, TextSize};

use crate::awaited::{AWAITED, MAX_DEPTH, PLAIN, tool_call};
use crate::failure;
use crate::literals;
use crate::nesting;
use crate::tools::Tools;

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

/// Modules that programs can import.
const MODULES: [&str; 17] = [
    "asyncio",
    "base64",
    "binascii",
    "collections",
    "dataclasses",
    "datetime",
    "functools",
    "gc",
    "itertools",
    "json",
    "math",
    "os",
    "pathlib",
    "re",
    "sys",
    "typing",
    "unicodedata",
];

/// Maximum number of reported problems.
const MAX_PROBLEMS: usize = 50;

/// Lists the problems of a program.
pub(crate) fn check(source: &str, tools: &Tools) -> Vec<Problem> {
    if let Some(message) = nesting::problem(source) {
        return vec![Problem { line: 0, column: 0, message }];
    }
    // The compiler reports one problem: invalid syntax, or a feature that it lacks.
    let compiled = MontyRun::new(source.to_owned(), "main.py", Vec::new(), CompileOptions::default());
    let mut problems = Vec::new();
    if let Err(error) = compiled {
        let place = error.traceback().last().map(|frame| frame.start).unwrap_or_default();
        let message = failure::plain(error.message().unwrap_or("the program is not valid")).into_owned();
        problems.push(Problem { line: place.line, column: place.column, message });
    }
    if let Ok(parsed) = parse_module(source) {
        let mut checker = Checker { tools, found: Vec::new(), rebound: false, depth: 0 };
        checker.visit_body(parsed.suite());
        let Checker { mut found, rebound, .. } = checker;
        found.retain(|finding| !rebound || !finding.about_tools);
        found.sort_by_key(|finding| finding.start);
        let index = LineIndex::from_source_text(source);
        problems.extend(found.into_iter().map(|finding| {
            let place = index.line_column(finding.start, source);
            Problem { line: number(place.line), column: number(place.column), message: finding.message }
        }));
    }
    problems.truncate(MAX_PROBLEMS);
    problems
}

fn number(place: OneIndexed) -> u32 {
    u32::try_from(place.get()).unwrap_or(0)
}

struct Finding {
    start: TextSize,
    message: String,
    /// `true` if it only holds if `tools` are the tools.
    about_tools: bool,
}

struct Checker<'a> {
    tools: &'a Tools,
    found: Vec<Finding>,
    /// `true` if the program gives the name `tools` another meaning.
    rebound: bool,
    /// Expressions around the current one.
    depth: usize,
}

impl Checker<'_> {
    fn report(&mut self, range: TextRange, message: String) {
        self.found.push(Finding { start: range.start(), message, about_tools: true });
    }

    fn report_always(&mut self, range: TextRange, message: String) {
        self.found.push(Finding { start: range.start(), message, about_tools: false });
    }

    fn bind(&mut self, name: &str, range: TextRange) {
        if name == PLAIN {
            self.rebound = true;
            self.report_always(range, format!("the name `{PLAIN}` is taken: use another name"));
        }
    }

    /// A call `tools.NAME(...)`.
    fn tool(&mut self, call: &ExprCall, name: &str) {
        let tools = self.tools;
        let Some(tool) = tools.get(name) else { return };
        let arguments = &call.arguments;
        let spread = arguments.args.iter().any(Expr::is_starred_expr)
            || arguments.keywords.iter().any(|keyword| keyword.arg.is_none());
        let mut given: Vec<&str> = Vec::new();
        // A single dict may stand for all arguments: only the call itself can tell.
        let whole = arguments.args.len() == 1 && arguments.keywords.is_empty() && !arguments.args[0].is_literal_expr();
        for (position, argument) in arguments.args.iter().enumerate() {
            if argument.is_starred_expr() {
                break;
            }
            match tool.parameters.get(position) {
                Some(parameter) => {
                    given.push(&parameter.name);
                    if !whole && let Some(mistake) = literals::mistake(&parameter.schema, argument) {
                        self.report(mistake.range, format!("`{}` of tools.{name} {}", parameter.name, mistake.message));
                    }
                }
                None if !tool.parameters.is_empty() => {
                    let count = tool.parameters.len();
                    self.report(argument.range(), format!("tools.{name} has only {count} parameters"));
                    break;
                }
                None => break,
            }
        }
        for keyword in &arguments.keywords {
            let Some(argument) = keyword.arg.as_ref() else { continue };
            let argument = argument.as_str();
            match tool.parameter(argument) {
                Some(_) if given.contains(&argument) => {
                    self.report(keyword.range(), format!("tools.{name} gets two values for `{argument}`"));
                }
                Some(parameter) => {
                    given.push(&parameter.name);
                    if let Some(mistake) = literals::mistake(&parameter.schema, &keyword.value) {
                        self.report(mistake.range, format!("`{argument}` of tools.{name} {}", mistake.message));
                    }
                }
                None if tool.open => {}
                None => self.report(keyword.range(), tool.unknown_argument(argument)),
            }
        }
        if !spread && !whole {
            let missing: Vec<&str> = tool
                .parameters
                .iter()
                .filter(|parameter| parameter.required && !given.contains(&parameter.name.as_str()))
                .map(|parameter| parameter.name.as_str())
                .collect();
            if !missing.is_empty() {
                self.report(call.range(), tool.missing_arguments(&missing));
            }
        }
    }

    /// `tools.NAME` or a member of a module, wherever it stands.
    fn attribute(&mut self, attribute: &ExprAttribute) {
        let Expr::Name(object) = attribute.value.as_ref() else { return };
        let name = attribute.attr.as_str();
        match object.id.as_str() {
            PLAIN if self.tools.get(name).is_none() => self.report(attribute.attr.range(), self.tools.unknown(name)),
            "asyncio" if !matches!(name, "gather" | "run") => {
                let message = format!("asyncio.{name} does not exist here: asyncio has only `gather` and `run`");
                self.report_always(attribute.attr.range(), message);
            }
            _ => {}
        }
    }

    fn module(&mut self, name: &str, range: TextRange) {
        if name == PLAIN {
            self.report_always(range, format!("`{PLAIN}` needs no import: call `{PLAIN}.NAME(...)`"));
        } else if name != "__future__" && !MODULES.contains(&name) {
            self.report_always(
                range,
                format!("there is no module `{name}`: programs can import {}", MODULES.join(", ")),
            );
        }
    }
}

impl<'a> Visitor<'a> for Checker<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    self.module(alias.name.as_str(), alias.range());
                }
            }
            Stmt::ImportFrom(import) => {
                if let Some(module) = &import.module {
                    self.module(module.as_str(), module.range());
                }
            }
            Stmt::FunctionDef(function) => self.bind(function.name.as_str(), function.name.range()),
            Stmt::ClassDef(class) => self.bind(class.name.as_str(), class.name.range()),
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let name = alias.asname.as_ref().unwrap_or(&alias.name);
        // `import tools` is reported as a module.
        if alias.asname.is_some() {
            self.bind(name.as_str(), name.range());
        }
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.bind(parameter.name.as_str(), parameter.name.range());
        visitor::walk_parameter(self, parameter);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if name.id.starts_with(AWAITED) => {
                self.report_always(name.range(), format!("the name `{}` is taken: use another name", name.id));
            }
            Expr::Name(name) if name.ctx != ExprContext::Load => self.bind(name.id.as_str(), name.range()),
            Expr::Attribute(attribute) => self.attribute(attribute),
            _ => {}
        }
        if let Some((call, name)) = tool_call(expression) {
            self.tool(call, name);
        }
        if self.depth < MAX_DEPTH {
            self.depth += 1;
            visitor::walk_expr(self, expression);
            self.depth -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tools::tests::tools;

    fn messages(source: &str) -> Vec<String> {
        check(source, &tools())
            .into_iter()
            .map(|problem| format!("{}:{} {}", problem.line, problem.column, problem.message))
            .collect()
    }

    #[test]
    fn correct_programs_have_no_problem() {
        for source in [
            "tools.fs_search('x', include=['a'], mode='text')",
            "await tools.fs_search(pattern=p, **more)",
            "tools.add(a=1, b=-2.5)",
            "tools.any(x=1)",
            "tools.fs_search({'pattern': 'x'})",
            "import json, math\nfrom datetime import date",
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
        found("x = 1\ntools.fs_serach('x')", "2:7 there is no tool `fs_serach`: did you mean `fs_search`?");
        found("é = tools.fs_search(**{}, patern=1)", "1:27 tools.fs_search has no argument `patern`");
        found(
            "tools.fs_search('x', inclde=[])",
            "1:22 tools.fs_search has no argument `inclde`: did you mean `include`?",
        );
        found("tools.fs_search('x', limit='3')", "1:28 `limit` of tools.fs_search must be an integer, not a string");
        found(
            "tools.fs_search('x', include=['a', 1])",
            "1:36 `include` of tools.fs_search must be a string, not an integer",
        );
        found("tools.fs_search('x', mode='glob')", "1:27 `mode` of tools.fs_search must be one of \"text\", \"regex\"");
        found("tools.add(1)", "1:1 tools.add needs the argument `a`");
        found("import requests", "1:8 there is no module `requests`");
        found("def f():\n    yield 1", "2:5 ");
        found("x = (", "1:");
        found("tools = 3\ntools.x()", "1:1 the name `tools` is taken");
        found("asyncio.sleep(1)", "1:9 asyncio.sleep does not exist here");
    }
}
