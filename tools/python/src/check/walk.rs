//! Walk over a program that asks each part of the check about every statement and expression.

use std::collections::HashSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, Comprehension, ExceptHandler, Expr, ExprContext, Parameter, Stmt, StmtTry};
use ruff_text_size::{Ranged as _, TextRange};

use super::absent::{self, Absent};
use super::findings::{Findings, Subject};
use super::names::{self, Names};
use super::{Problem, calls, classes, generators, library, syntax};
use crate::awaited::{self, AWAITED, MAX_DEPTH, PLAIN, tool_call};
use code_guest::tools::Tools;

/// Lists the problems of a program that was parsed.
pub(super) fn problems(
    source: &str,
    body: &[Stmt],
    tools: &Tools,
    earlier: Option<&[&str]>,
) -> Vec<(Problem, Subject)> {
    let (_, awaited) = awaited::rename(source, body);
    let awaited: HashSet<usize> = awaited.into_values().flatten().collect();
    let names = Names::new(body, awaited, earlier);
    let mut walk = Walk {
        source,
        tools,
        names: &names,
        found: Findings::default(),
        absent: Absent::default(),
        attempts: Vec::new(),
        rebound: false,
        depth: 0,
    };
    walk.visit_body(body);
    let omitted = walk.rebound.then_some(Subject::Call);
    walk.found.problems(source, omitted)
}

struct Walk<'a> {
    source: &'a str,
    tools: &'a Tools,
    names: &'a Names<'a>,
    found: Findings,
    absent: Absent,
    /// The `try` statements around the current statement.
    attempts: Vec<Attempt>,
    /// `true` if the program gives the name `tools` another meaning.
    rebound: bool,
    /// Expressions around the current one.
    depth: usize,
}

/// Exceptions that a `try` statement handles.
struct Attempt {
    /// `TypeError`, by its name.
    type_error: bool,
    /// All exceptions.
    all: bool,
}

impl<'a> Walk<'a> {
    fn bind(&mut self, name: &str, range: TextRange) {
        if name == PLAIN {
            self.rebound = true;
            self.found.feature(range, format!("the name `{PLAIN}` is taken: use another name"));
        }
    }

    /// Returns `true` if a `try` around the current statement handles `TypeError` by name.
    fn handles_type(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.type_error)
    }

    /// Returns `true` if the program may ask whether something exists: it handles the exception anywhere by name, or here with
    /// all others.
    fn probes(&self, exceptions: &[&str]) -> bool {
        exceptions.iter().any(|exception| self.names.handles(exception))
            || self.attempts.iter().any(|attempt| attempt.all)
    }

    fn attempt(&mut self, attempt: &'a StmtTry) {
        let handled = || attempt.handlers.iter().flat_map(names::exceptions);
        self.attempts.push(Attempt {
            type_error: handled().any(|name| name == "TypeError"),
            all: handled().any(|name| matches!(name, "Exception" | "BaseException")),
        });
        self.visit_body(&attempt.body);
        self.attempts.pop();
        for handler in &attempt.handlers {
            self.visit_except_handler(handler);
        }
        self.visit_body(&attempt.orelse);
        self.visit_body(&attempt.finalbody);
    }

    fn expression(&mut self, expression: &'a Expr) {
        let names = self.names;
        syntax::expression(expression, self.handles_type(), names, &mut self.found);
        match expression {
            Expr::Name(name) if name.id.starts_with(AWAITED) => {
                let message = format!("the name `{}` is taken: use another name", name.id);
                self.found.feature(name.range(), message);
            }
            Expr::Name(name) if name.ctx != ExprContext::Load => self.bind(name.id.as_str(), name.range()),
            Expr::Name(_) if !self.probes(&["NameError"]) => absent::builtin(expression, names, &mut self.found),
            Expr::Attribute(attribute) => {
                calls::attribute(attribute, self.tools, &mut self.found);
                if !self.probes(&["AttributeError", "ImportError", "ModuleNotFoundError"]) {
                    absent::attribute(attribute, names, &mut self.found);
                }
            }
            Expr::Generator(generator) => generators::generator(generator, names, &mut self.found),
            Expr::FString(string) => library::f_string(string, &mut self.found),
            Expr::Call(call) => {
                library::call(call, names, &mut self.found);
                if !self.handles_type() {
                    absent::keywords(call, names, &mut self.found);
                    generators::call(call, names, &mut self.found);
                }
            }
            _ => {}
        }
        if let Some((call, name)) = tool_call(expression) {
            calls::call(call, name, self.tools, &mut self.found);
        }
    }
}

impl<'a> Visitor<'a> for Walk<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        syntax::statement(statement, self.handles_type(), &mut self.found);
        match statement {
            Stmt::Import(import) if !self.probes(&["ImportError", "ModuleNotFoundError"]) => {
                self.absent.import(import, &mut self.found);
            }
            Stmt::ImportFrom(import) if !self.probes(&["ImportError", "ModuleNotFoundError"]) => {
                self.absent.import_from(import, &mut self.found);
            }
            Stmt::FunctionDef(function) => self.bind(function.name.as_str(), function.name.range()),
            Stmt::ClassDef(class) => {
                self.bind(class.name.as_str(), class.name.range());
                classes::class(class, self.source, &mut self.found);
                // Bases and decorators of methods are reported already.
                for decorator in &class.decorator_list {
                    self.visit_decorator(decorator);
                }
                for member in &class.body {
                    match member {
                        Stmt::FunctionDef(method) => {
                            self.visit_parameters(&method.parameters);
                            self.visit_body(&method.body);
                        }
                        other => self.visit_stmt(other),
                    }
                }
                return;
            }
            Stmt::Try(attempt) => return self.attempt(attempt),
            // The branch never runs.
            Stmt::If(choice) if self.names.is_never(&choice.test) => {
                for clause in &choice.elif_else_clauses {
                    self.visit_elif_else_clause(clause);
                }
                return;
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    /// Annotations are not evaluated.
    fn visit_annotation(&mut self, _: &'a Expr) {}

    fn visit_alias(&mut self, alias: &'a Alias) {
        // `import tools` is reported as a module.
        if let Some(name) = &alias.asname {
            self.bind(name.as_str(), name.range());
        }
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.bind(parameter.name.as_str(), parameter.name.range());
        visitor::walk_parameter(self, parameter);
    }

    /// The exceptions that a handler names are only evaluated once one is raised.
    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(handler) = handler;
        if let Some(name) = &handler.name {
            self.bind(name.as_str(), name.range());
        }
        self.visit_body(&handler.body);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        syntax::comprehension(comprehension, &mut self.found);
        visitor::walk_comprehension(self, comprehension);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        let expression = match expression {
            Expr::If(choice) if self.names.is_never(&choice.test) => &choice.orelse,
            _ => expression,
        };
        self.expression(expression);
        if self.depth < MAX_DEPTH {
            self.depth += 1;
            visitor::walk_expr(self, expression);
            self.depth -= 1;
        }
    }
}
