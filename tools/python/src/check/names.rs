//! Names of a program: which it imports, which it gives a meaning of its own, and which exceptions it handles. Names of all
//! scopes are one set, so a name that the program defines anywhere counts as its own everywhere.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{
    Alias, ExceptHandler, Expr, ExprCall, ExprContext, Number, Parameter, Pattern, Stmt, StmtFunctionDef,
};
use ruff_text_size::Ranged as _;

use crate::awaited::{MAX_DEPTH, tool_call};

/// Module of the built-in functions, types and exceptions.
pub(super) const BUILTINS: &str = "builtins";

/// Depth of the search for calls of tools in an expression. It starts inside of a walk, and the stack of the guest is small.
const MAX_SEARCH_DEPTH: usize = 40;

/// Module and name.
pub(super) type Origin<'a> = (&'a str, &'a str);

/// Names of a program.
#[derive(Default)]
pub(super) struct Names<'a> {
    /// Number of bindings of each name, without imports.
    bound: HashMap<&'a str, usize>,
    /// Imported modules and names, by their names in the program. None for a name with two imports.
    imported: HashMap<&'a str, Option<(&'a str, Option<&'a str>)>>,
    /// Exceptions that the program handles by name.
    handled: HashSet<&'a str>,
    /// Functions that the program defines.
    functions: HashSet<&'a str>,
    /// Functions that call a tool whenever they are called.
    callers: HashSet<&'a str>,
    /// Functions of earlier programs of the session; none if there were no programs.
    earlier: Option<HashSet<&'a str>>,
    /// Offsets of calls of tools that are awaited: their functions return coroutines.
    awaited: HashSet<usize>,
    depth: usize,
}

impl<'a> Names<'a> {
    /// Collects the names of a program.
    pub(super) fn new(body: &'a [Stmt], awaited: HashSet<usize>, earlier: Option<&'a [&'a str]>) -> Self {
        let earlier = earlier.map(|functions| functions.iter().copied().collect());
        let mut names = Self { awaited, earlier, ..Self::default() };
        names.visit_body(body);
        names
    }

    /// Returns `true` if the program defines a variable, function, class or parameter of this name.
    pub(super) fn is_bound(&self, name: &str) -> bool {
        self.bound.contains_key(name)
    }

    /// Returns `true` if a name can only be a function that the program defines.
    pub(super) fn is_function(&self, name: &str) -> bool {
        self.functions.contains(name) && self.bound.get(name) == Some(&1)
    }

    /// Returns `true` if no earlier program can have left variables.
    pub(super) fn is_first(&self) -> bool {
        self.earlier.is_none()
    }

    /// Returns `true` if the program handles an exception by this name.
    pub(super) fn handles(&self, exception: &str) -> bool {
        self.handled.contains(exception)
    }

    /// Module that an expression names.
    pub(super) fn module(&self, expression: &Expr) -> Option<&'a str> {
        let name = expression.as_name_expr()?.id.as_str();
        match self.imported.get(name)? {
            Some((module, None)) if !self.is_bound(name) => Some(module),
            _ => None,
        }
    }

    /// Module and name of an expression, if it can only be this name of the module: `re.sub`, an imported `sub`, or `sum`.
    pub(super) fn origin<'e>(&self, expression: &'e Expr) -> Option<Origin<'e>>
    where
        'a: 'e,
    {
        match expression {
            Expr::Attribute(attribute) => Some((self.module(&attribute.value)?, attribute.attr.as_str())),
            Expr::Name(name) => {
                let name = name.id.as_str();
                if self.is_bound(name) || self.earlier.as_ref().is_some_and(|earlier| earlier.contains(name)) {
                    return None;
                }
                match self.imported.get(name) {
                    Some(Some((module, Some(name)))) => Some((module, name)),
                    Some(_) => None,
                    None => Some((BUILTINS, name)),
                }
            }
            _ => None,
        }
    }

    /// Returns `true` if a condition is never met: `False`, `0` or `typing.TYPE_CHECKING`.
    pub(super) fn is_never(&self, condition: &Expr) -> bool {
        match condition {
            Expr::BooleanLiteral(literal) => !literal.value,
            Expr::NumberLiteral(number) => matches!(&number.value, Number::Int(value) if value.as_u8() == Some(0)),
            _ => self.origin(condition) == Some(("typing", "TYPE_CHECKING")),
        }
    }

    /// Returns `true` if a function, given as a value, calls a tool whenever it is called.
    pub(super) fn calls_tool(&self, function: &Expr) -> bool {
        match function {
            Expr::Lambda(lambda) => self.makes_call(&lambda.body),
            Expr::Name(name) => self.callers.contains(name.id.as_str()) && self.bound.get(name.id.as_str()) == Some(&1),
            _ => false,
        }
    }

    /// Returns `true` if an expression calls a tool whenever it is evaluated. Awaited calls do not count.
    pub(super) fn makes_call(&self, expression: &Expr) -> bool {
        let mut search = CallSearch { names: self, found: false, depth: 0 };
        search.visit_expr(expression);
        search.found
    }

    fn bind(&mut self, name: &'a str) {
        *self.bound.entry(name).or_default() += 1;
    }

    /// Binds the attributes that `namedtuple` and `setattr` define by text.
    fn attributes(&mut self, call: &'a ExprCall) {
        let function = match call.func.as_ref() {
            Expr::Name(name) => name.id.as_str(),
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => return,
        };
        if !matches!(function, "namedtuple" | "setattr") {
            return;
        }
        let names = match call.arguments.find_positional(1) {
            Some(Expr::List(list)) => &list.elts[..],
            Some(Expr::Tuple(tuple)) => &tuple.elts[..],
            Some(name) => std::slice::from_ref(name),
            None => return,
        };
        for text in names.iter().filter_map(Expr::as_string_literal_expr) {
            text.value.to_str().split([' ', ',']).for_each(|name| self.bind(name));
        }
    }

    fn import(&mut self, name: &'a str, origin: (&'a str, Option<&'a str>)) {
        let entry = self.imported.entry(name).or_insert(Some(origin));
        if *entry != Some(origin) {
            *entry = None;
        }
    }

    fn function(&mut self, function: &'a StmtFunctionDef) {
        self.bind(function.name.as_str());
        self.functions.insert(function.name.as_str());
        if !function.is_async && function.decorator_list.is_empty() && self.always_calls(&function.body) {
            self.callers.insert(function.name.as_str());
        }
    }

    /// Returns `true` if the body of a function calls a tool before its first branch or loop.
    fn always_calls(&self, body: &[Stmt]) -> bool {
        for statement in body {
            let value = match statement {
                Stmt::Expr(statement) => Some(&statement.value),
                Stmt::Assign(assign) => Some(&assign.value),
                Stmt::AugAssign(assign) => Some(&assign.value),
                Stmt::AnnAssign(assign) => assign.value.as_ref(),
                Stmt::Return(result) => result.value.as_ref(),
                Stmt::Global(_) | Stmt::Nonlocal(_) | Stmt::Pass(_) | Stmt::FunctionDef(_) => None,
                _ => return false,
            };
            if value.is_some_and(|value| self.makes_call(value)) {
                return true;
            }
            if statement.is_return_stmt() {
                return false;
            }
        }
        false
    }
}

impl<'a> Visitor<'a> for Names<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let module = alias.name.as_str();
                    match &alias.asname {
                        Some(name) => self.import(name.as_str(), (module, None)),
                        None => {
                            let module = module.split('.').next().unwrap_or(module);
                            self.import(module, (module, None));
                        }
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    self.import(name.as_str(), (module, Some(alias.name.as_str())));
                }
            }
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) => self.bind(class.name.as_str()),
            Stmt::Assign(assign) => {
                if let ([Expr::Name(name)], Expr::Lambda(lambda)) = (&assign.targets[..], assign.value.as_ref())
                    && self.makes_call(&lambda.body)
                {
                    self.callers.insert(name.id.as_str());
                }
            }
            Stmt::Global(global) => global.names.iter().for_each(|name| self.bind(name.as_str())),
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_alias(&mut self, _: &'a Alias) {}

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.bind(parameter.name.as_str());
        visitor::walk_parameter(self, parameter);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        self.handled.extend(exceptions(handler));
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.bind(name.as_str());
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(pattern) => pattern.name.as_ref(),
            Pattern::MatchStar(pattern) => pattern.name.as_ref(),
            Pattern::MatchMapping(pattern) => pattern.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.bind(name.as_str());
        }
        visitor::walk_pattern(self, pattern);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if name.ctx != ExprContext::Load => self.bind(name.id.as_str()),
            Expr::Attribute(attribute) if attribute.ctx != ExprContext::Load => self.bind(attribute.attr.as_str()),
            Expr::Call(call) => self.attributes(call),
            _ => {}
        }
        if self.depth < MAX_DEPTH {
            self.depth += 1;
            visitor::walk_expr(self, expression);
            self.depth -= 1;
        }
    }
}

/// Names of the exceptions of a handler. A handler without names handles every exception.
pub(super) fn exceptions(handler: &ExceptHandler) -> Vec<&str> {
    let ExceptHandler::ExceptHandler(handler) = handler;
    let kinds = match handler.type_.as_deref() {
        None => return vec!["BaseException"],
        Some(Expr::Tuple(kinds)) => &kinds.elts[..],
        Some(kind) => std::slice::from_ref(kind),
    };
    kinds
        .iter()
        .filter_map(|kind| match kind {
            Expr::Name(name) => Some(name.id.as_str()),
            _ => None,
        })
        .collect()
}

/// Search for a call of a tool among the parts of an expression that are always evaluated.
struct CallSearch<'n, 'a> {
    names: &'n Names<'a>,
    found: bool,
    depth: usize,
}

impl<'e> Visitor<'e> for CallSearch<'_, '_> {
    fn visit_expr(&mut self, expression: &'e Expr) {
        if self.found || self.depth >= MAX_SEARCH_DEPTH {
            return;
        }
        if let Some((call, _)) = tool_call(expression) {
            self.found = !self.names.awaited.contains(&usize::from(call.start()));
        } else if let Expr::Call(call) = expression {
            self.found = call.func.is_name_expr() && self.names.calls_tool(&call.func);
        }
        self.depth += 1;
        match expression {
            Expr::BoolOp(operation) => operation.values.iter().take(1).for_each(|value| self.visit_expr(value)),
            Expr::If(choice) => self.visit_expr(&choice.test),
            Expr::Compare(comparison) => {
                self.visit_expr(&comparison.left);
                comparison.comparators.iter().take(1).for_each(|value| self.visit_expr(value));
            }
            Expr::Generator(ruff_python_ast::ExprGenerator { generators, .. })
            | Expr::ListComp(ruff_python_ast::ExprListComp { generators, .. })
            | Expr::SetComp(ruff_python_ast::ExprSetComp { generators, .. })
            | Expr::DictComp(ruff_python_ast::ExprDictComp { generators, .. }) => {
                generators.iter().take(1).for_each(|generator| self.visit_expr(&generator.iter));
            }
            Expr::Lambda(_) => {}
            _ => visitor::walk_expr(self, expression),
        }
        self.depth -= 1;
    }
}
