//! Calls of tools that a program awaits. A plain call gets its result at once; an awaited or gathered one is a coroutine, so
//! that several can run at the same time. The interpreter does not tell the two apart at a call, so they are told apart here
//! in the source: every awaited call site is renamed to an `async` function of this module. Its name is as long as what the
//! program says (`tools.fs_read` and `t00ls_fs_read`), so positions stay the same.
//!
//! The functions also raise the failures of calls. The interpreter could fail a pending call itself, but release 0.0.23 then
//! ends the coroutine that awaits it without running its `except`, and hangs if two of them fail at once.

use std::collections::{BTreeMap, HashMap, HashSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, ExprCall, Parameters, Stmt};
use ruff_text_size::Ranged as _;

/// Name of the tools in programs.
pub(crate) const PLAIN: &str = "tools";
/// Object whose calls are pending, and start of the names of the functions. Programs cannot use it.
pub(crate) const AWAITED: &str = "t00ls";
/// Mark of source lines that no traceback shows.
pub(crate) const HIDDEN: &str = "#:hidden:";

/// Definitions of every session: the name of failed calls, and the result of a pending call, which is a list of a code and
/// a value or message.
pub(crate) const PRELUDE: &str = "\
ToolError = OSError
def t00ls_result(r):
    if r[0] == 0: return r[1]
    if r[0] == 1: raise OSError(r[1]) #:hidden:
    if r[0] == 2: raise PermissionError(r[1]) #:hidden:
    raise TimeoutError(r[1]) #:hidden:
";

/// Definition of the function that stands for an awaited tool.
pub(crate) fn function(tool: &str) -> String {
    format!("async def {AWAITED}_{tool}(*a, **k): return t00ls_result(await {AWAITED}.{tool}(*a, **k)) {HIDDEN}\n")
}

/// Tool of a function that `function` defined.
pub(crate) fn tool_of(function: &str) -> Option<&str> {
    function.strip_prefix(AWAITED)?.strip_prefix('_').filter(|name| *name != "result")
}

/// Returns the source with every awaited call site renamed, and the offsets of the sites of each tool.
pub(crate) fn rename<'a>(source: &str, body: &'a [Stmt]) -> (String, BTreeMap<&'a str, Vec<usize>>) {
    let mut sites = Sites::default();
    loop {
        let known = sites.size();
        sites.visit_body(body);
        if sites.size() == known {
            break;
        }
    }
    let mut renamed = source.to_owned();
    let mut tools: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (start, tool) in sites.starts {
        let end = start + PLAIN.len() + 1;
        // `tools . x` with white space stays a plain call.
        if source[end..].starts_with(tool) {
            renamed.replace_range(start..end, "t00ls_");
            tools.entry(tool).or_default().push(start);
        }
    }
    (renamed, tools)
}

/// Name of the tool, if an expression is a call `tools.NAME(...)`.
pub(crate) fn tool_call(expression: &Expr) -> Option<(&ExprCall, &str)> {
    let call = expression.as_call_expr()?;
    let attribute = call.func.as_attribute_expr()?;
    let object = attribute.value.as_name_expr()?;
    (object.id.as_str() == PLAIN).then_some((call, attribute.attr.as_str()))
}

/// Deepest expression that is walked. The interpreter refuses deeper ones, and the stack of the guest is small.
pub(crate) const MAX_DEPTH: usize = 250;

/// Walk over a program. Names of all scopes are one set: a variable that is awaited anywhere counts as awaited everywhere.
#[derive(Default)]
struct Sites<'a> {
    /// Starts of the name `tools` at awaited call sites, with the names of the tools.
    starts: HashMap<usize, &'a str>,
    /// Variables and functions whose values are awaited.
    names: HashSet<&'a str>,
    /// Parameters of the functions of the program.
    functions: HashMap<&'a str, &'a Parameters>,
    /// `true` if the value of the expression that is visited next is awaited.
    awaited: bool,
    /// `true` if values that the current function returns are awaited.
    returns: bool,
    /// Expressions around the current one.
    depth: usize,
}

impl<'a> Sites<'a> {
    /// Grows with everything that a walk finds.
    fn size(&self) -> usize {
        self.names.len() + self.functions.len() + self.starts.len()
    }

    /// Returns `true` if a function awaits the argument that it gets at a position, or by a name.
    fn awaits(&self, function: &Expr, position: usize, name: Option<&str>) -> bool {
        if let Some(name) = name {
            return self.names.contains(name);
        }
        let Expr::Name(function) = function else { return false };
        let Some(parameters) = self.functions.get(function.id.as_str()) else { return false };
        let positional = parameters.posonlyargs.iter().chain(&parameters.args).nth(position);
        match (positional, &parameters.vararg) {
            (Some(parameter), _) => self.names.contains(parameter.parameter.name.as_str()),
            (None, Some(rest)) => self.names.contains(rest.name.as_str()),
            (None, None) => false,
        }
    }

    fn with(&mut self, awaited: bool, expression: &'a Expr) {
        let before = std::mem::replace(&mut self.awaited, awaited);
        self.visit_expr(expression);
        self.awaited = before;
    }

    fn call(&mut self, call: &'a ExprCall, awaited: bool) {
        let mut arguments = false;
        match call.func.as_ref() {
            Expr::Name(name) => {
                arguments = name.id.as_str() == "gather";
                if awaited {
                    self.names.insert(name.id.as_str());
                }
            }
            Expr::Attribute(attribute) => match (attribute.attr.as_str(), attribute.value.as_ref()) {
                ("gather", _) => arguments = true,
                ("run", Expr::Name(module)) if module.id.as_str() == "asyncio" => arguments = true,
                ("append" | "extend" | "insert" | "add", list) => arguments = self.is_awaited(list),
                // `gather(*jobs.values())`
                ("values" | "pop" | "get" | "copy", object) => self.with(awaited, object),
                _ => self.with(false, &attribute.value),
            },
            other => self.with(false, other),
        }
        for (position, argument) in call.arguments.args.iter().enumerate() {
            let awaits = self.awaits(&call.func, position, None);
            self.with(arguments || awaits, argument);
        }
        for keyword in &call.arguments.keywords {
            let name = keyword.arg.as_ref().map_or("", |name| name.as_str());
            let awaits = self.awaits(&call.func, 0, Some(name));
            self.with(awaits, &keyword.value);
        }
    }

    /// Returns `true` if a target of an assignment holds values that are awaited.
    fn is_awaited(&self, target: &Expr) -> bool {
        match target {
            Expr::Name(name) => self.names.contains(name.id.as_str()),
            Expr::Subscript(subscript) => self.is_awaited(&subscript.value),
            Expr::Starred(starred) => self.is_awaited(&starred.value),
            Expr::Tuple(tuple) => tuple.elts.iter().any(|item| self.is_awaited(item)),
            Expr::List(list) => list.elts.iter().any(|item| self.is_awaited(item)),
            _ => false,
        }
    }
}

impl<'a> Visitor<'a> for Sites<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(assign) => {
                let awaited = assign.targets.iter().any(|target| self.is_awaited(target));
                // `fetch = lambda path: tools.fs_read(path=path)`
                match assign.value.as_ref() {
                    Expr::Lambda(lambda) => self.with(awaited, &lambda.body),
                    value => self.with(awaited, value),
                }
            }
            Stmt::AugAssign(assign) => self.with(self.is_awaited(&assign.target), &assign.value),
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.with(self.is_awaited(&assign.target), value);
                }
            }
            Stmt::For(each) => {
                self.with(self.is_awaited(&each.target), &each.iter);
                self.visit_body(&each.body);
                self.visit_body(&each.orelse);
            }
            Stmt::FunctionDef(function) => {
                self.functions.insert(function.name.as_str(), &function.parameters);
                let awaited = !function.is_async && self.names.contains(function.name.as_str());
                let before = std::mem::replace(&mut self.returns, awaited);
                visitor::walk_stmt(self, statement);
                self.returns = before;
            }
            Stmt::Return(result) => {
                if let Some(value) = &result.value {
                    self.with(self.returns, value);
                }
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.with(self.is_awaited(&comprehension.target), &comprehension.iter);
        for condition in &comprehension.ifs {
            self.with(false, condition);
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if self.depth < MAX_DEPTH {
            self.depth += 1;
            self.expression(expression);
            self.depth -= 1;
        }
    }
}

impl<'a> Sites<'a> {
    fn expression(&mut self, expression: &'a Expr) {
        let awaited = self.awaited;
        if let Some((call, tool)) = tool_call(expression) {
            if awaited {
                self.starts.insert(usize::from(expression.start()), tool);
            }
            self.awaited = false;
            self.visit_arguments(&call.arguments);
            self.awaited = awaited;
            return;
        }
        match expression {
            Expr::Await(wait) => self.with(true, &wait.value),
            Expr::Call(call) => self.call(call, awaited),
            Expr::Name(name) => {
                if awaited {
                    self.names.insert(name.id.as_str());
                }
            }
            Expr::If(choice) => {
                self.with(false, &choice.test);
                self.with(awaited, &choice.body);
                self.with(awaited, &choice.orelse);
            }
            Expr::Dict(dict) => {
                for item in &dict.items {
                    if let Some(key) = &item.key {
                        self.with(false, key);
                    }
                    self.with(awaited, &item.value);
                }
            }
            Expr::DictComp(comprehension) => {
                for generator in &comprehension.generators {
                    self.visit_comprehension(generator);
                }
                if let Some(key) = &comprehension.key {
                    self.with(false, key);
                }
                self.with(awaited, &comprehension.value);
            }
            Expr::Named(named) => self.with(awaited || self.is_awaited(&named.target), &named.value),
            Expr::Subscript(subscript) => {
                self.with(awaited, &subscript.value);
                self.with(false, &subscript.slice);
            }
            // These keep whether their parts are awaited.
            Expr::List(_)
            | Expr::Tuple(_)
            | Expr::Set(_)
            | Expr::Starred(_)
            | Expr::ListComp(_)
            | Expr::SetComp(_)
            | Expr::Generator(_)
            | Expr::BinOp(_)
            | Expr::BoolOp(_) => visitor::walk_expr(self, expression),
            _ => {
                self.awaited = false;
                visitor::walk_expr(self, expression);
                self.awaited = awaited;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ruff_python_parser::parse_module;

    use super::rename;

    fn renamed(source: &str) -> String {
        rename(source, &parse_module(source).expect("Python").into_syntax().body).0
    }

    #[test]
    fn plain_calls_stay() {
        for source in [
            "a = tools.x(y=tools.z())",
            "for i in tools.list(): print(tools.get(i))",
            "async def f(i):\n    return tools.x(i)\nawait f(1)",
            "r = [tools.x(i) for i in range(3)]\nprint(r)",
            "f = tools.x\nf(1)",
        ] {
            assert_eq!(renamed(source), source);
        }
    }

    #[test]
    fn awaited_calls_are_renamed() {
        for source in [
            "await tools.x(1)",
            "a, b = await asyncio.gather(tools.x(1), tools.x(2))",
            "await gather(*[tools.x(i) for i in range(3)])",
            "jobs = [tools.x(i) for i in range(3)]\nawait asyncio.gather(*jobs)",
            "jobs = []\nfor i in range(3):\n    jobs.append(tools.x(i))\nr = await asyncio.gather(*jobs)",
            "jobs = {k: tools.x(k) for k in 'ab'}\nawait asyncio.gather(*jobs.values())",
            "jobs = [tools.x(i) for i in range(3)]\nr = [await job for job in jobs]",
            "def f(i):\n    return tools.x(i)\nawait asyncio.gather(f(1), f(2))",
            "f = lambda i: tools.x(i)\nawait f(1)",
            "async def safe(job):\n    return await job\nawait asyncio.gather(safe(tools.x(1)), safe(job=tools.x(2)))",
            "async def every(jobs):\n    return await asyncio.gather(*jobs)\nawait every([tools.x(i) for i in range(3)])",
            "first = tools.x(1)\nsecond = tools.x(2)\nprint(await first, await second)",
        ] {
            assert_eq!(renamed(source), source.replace("tools.", "t00ls_"), "{source}");
        }
        let source = "await tools.x(tools.y())";
        assert_eq!(renamed(source), "await t00ls_x(tools.y())");
    }
}
