//! Modules, names and keyword arguments that a program uses and the interpreter lacks.

use ruff_python_ast::{Expr, ExprAttribute, ExprCall, Identifier, StmtImport, StmtImportFrom};
use ruff_text_size::{Ranged as _, TextRange};

use super::catalog::{
    HOLLOW_MODULES, METHODS, MODULES, TYPES, builtin_replacement, keyword_replacement, method_replacement,
    module_replacement, name_replacement,
};
use super::findings::Findings;
use super::names::{BUILTINS, Names};
use crate::awaited::PLAIN;

/// Absent modules and names of a program.
#[derive(Default)]
pub(super) struct Absent {
    /// `true` if a message lists the modules already.
    listed: bool,
}

impl Absent {
    /// Checks an import statement.
    pub(super) fn import(&mut self, import: &StmtImport, found: &mut Findings) {
        for alias in &import.names {
            self.module(&alias.name, found);
        }
    }

    /// Checks the import of names.
    pub(super) fn import_from(&mut self, import: &StmtImportFrom, found: &mut Findings) {
        let Some(module) = &import.module else { return };
        self.module(module, found);
        for alias in &import.names {
            if module.as_str() == "asyncio" {
                asyncio(&alias.name, found);
            }
            if let Some(instead) = name_replacement(module.as_str(), alias.name.as_str()) {
                name(module.as_str(), alias.name.as_str(), instead, alias.range(), found);
            }
        }
    }

    fn module(&mut self, module: &Identifier, found: &mut Findings) {
        let (name, range) = (module.as_str(), module.range());
        if name == PLAIN {
            found.feature(range, format!("`{PLAIN}` needs no import: call `{PLAIN}.NAME(...)`"));
        } else if !MODULES.contains(&name) && !HOLLOW_MODULES.contains(&name) {
            let mut message = format!("there is no module `{name}`");
            if let Some(instead) = module_replacement(name) {
                message += &format!(": {instead}");
            }
            if !std::mem::replace(&mut self.listed, true) {
                message += &format!("; programs can import {}", MODULES.join(", "));
            }
            found.feature(range, message);
        }
    }
}

fn name(module: &str, name: &str, instead: &str, range: TextRange, found: &mut Findings) {
    found.feature(range, format!("`{module}` has no `{name}` here: {instead}"));
}

/// Checks a name of the module `asyncio`.
fn asyncio(name: &Identifier, found: &mut Findings) {
    if !matches!(name.as_str(), "gather" | "run") {
        let message = format!("asyncio.{name} does not exist here: asyncio has only `gather` and `run`");
        found.feature(name.range(), message);
    }
}

/// Checks an attribute: a name of a module, or a method of a built-in type.
pub(super) fn attribute(attribute: &ExprAttribute, names: &Names<'_>, found: &mut Findings) {
    let range = attribute.attr.range();
    let member = attribute.attr.as_str();
    if let Some(module) = names.module(&attribute.value) {
        if module == "asyncio" {
            asyncio(&attribute.attr, found);
        }
        if let Some(instead) = name_replacement(module, member) {
            name(module, member, instead, range, found);
        }
        return;
    }
    match names.origin(&attribute.value) {
        Some((BUILTINS, "asyncio")) => asyncio(&attribute.attr, found),
        Some((BUILTINS, kind)) if TYPES.contains(&kind) && names.is_first() => {
            if let Some(instead) = method_replacement(kind, member) {
                found.feature(range, format!("there is no `{kind}.{member}`: {instead}"));
            } else if !member.starts_with('_') && (kind, member) != ("dict", "fromkeys") {
                let arguments = if METHODS.contains(&member) && kind == "str" { "" } else { "..." };
                let message = format!("`{kind}.{member}` is no function: use `lambda x: x.{member}({arguments})`");
                found.feature(range, message);
            }
        }
        Some(("itertools", "chain")) if member == "from_iterable" => {
            found.feature(range, "`chain` has no `from_iterable`: use `chain(*lists)`");
        }
        _ => {}
    }
}

/// Checks a name that is read. Names of exceptions are left to the run: a handler may never need them.
pub(super) fn builtin(expression: &Expr, names: &Names<'_>, found: &mut Findings) {
    // Variables of earlier programs are not known.
    if expression.is_name_expr()
        && names.is_first()
        && let Some((BUILTINS, name)) = names.origin(expression)
        && let Some(instead) = builtin_replacement(name)
    {
        found.feature(expression.range(), format!("there is no `{name}`: {instead}"));
    }
}

/// Checks the keyword arguments of a call.
pub(super) fn keywords(call: &ExprCall, names: &Names<'_>, found: &mut Findings) {
    let Some(function) = names.origin(&call.func) else { return };
    for keyword in &call.arguments.keywords {
        let Some(argument) = &keyword.arg else { continue };
        let ignored = function == (BUILTINS, "print") && keyword.value.is_none_literal_expr();
        if let Some(instead) = keyword_replacement(function, argument.as_str())
            && !ignored
        {
            let name = function.1;
            found.feature(keyword.range, format!("`{name}` has no argument `{argument}` here: {instead}"));
        }
    }
}
