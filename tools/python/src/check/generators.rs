//! Generators and functions that the interpreter calls itself. A generator is a list that is computed at once, as are `map`,
//! `filter`, `zip`, `enumerate` and `reversed`; and the functions given to them, and sort keys, cannot call tools.

use ruff_python_ast::{Expr, ExprCall, ExprGenerator};
use ruff_text_size::Ranged as _;

use super::catalog::METHODS;
use super::findings::Findings;
use super::names::{BUILTINS, Names};
use crate::awaited::PLAIN;

/// Checks a call.
pub(super) fn call(call: &ExprCall, names: &Names<'_>, found: &mut Findings) {
    let first = call.arguments.find_positional(0);
    match names.origin(&call.func) {
        Some((BUILTINS, function @ ("any" | "all"))) => {
            if let Some(Expr::Generator(generator)) = first
                && is_caller(generator, names)
            {
                let message = format!(
                    "`{function}` does not stop early here: the tool would be called for every item; use a `for` loop \
                     with `break`"
                );
                found.feature(call.range(), message);
            }
        }
        Some((BUILTINS, "next")) if first.is_some_and(|first| is_list(first, names)) => {
            let message = "`next` of a generator, map, filter or zip does not work, since it is a list here: use \
                           `[x for x in xs if c][:1]`, or a `for` loop with `break`";
            found.feature(call.range(), message);
        }
        Some((BUILTINS, function @ ("map" | "filter" | "enumerate" | "sorted" | "list" | "set" | "sum"))) => {
            let source = if matches!(function, "map" | "filter") { 1 } else { 0 };
            let source = call.arguments.find_positional(source);
            if source.is_some_and(|source| is_endless(source, names))
                && call.arguments.args.len() == source_count(function)
            {
                found.feature(call.range(), endless());
            }
        }
        _ => {}
    }
    if let Some((function, description)) = callback(call, names) {
        callback_problem(function, &description, names, found);
    }
}

/// Checks a generator expression.
pub(super) fn generator(generator: &ExprGenerator, names: &Names<'_>, found: &mut Findings) {
    // An endless inner loop only matters if the outer one has items.
    if generator.generators.first().is_some_and(|first| is_endless(&first.iter, names)) {
        found.feature(generator.range, endless());
    }
}

fn endless() -> &'static str {
    "this would not end, since it is computed at once: use `while True` with `break`"
}

fn source_count(function: &str) -> usize {
    if matches!(function, "map" | "filter") { 2 } else { 1 }
}

/// Returns `true` if a generator calls a tool for each of its items.
fn is_caller(generator: &ExprGenerator, names: &Names<'_>) -> bool {
    let [only] = &generator.generators[..] else { return false };
    match only.ifs.first() {
        Some(condition) => names.makes_call(condition),
        None => names.makes_call(&generator.elt),
    }
}

/// Returns `true` if the value of an expression is a list here, but an iterator in Python.
fn is_list(expression: &Expr, names: &Names<'_>) -> bool {
    match expression {
        Expr::Generator(_) => true,
        Expr::Call(call) => {
            let lists = ["map", "filter", "zip", "enumerate", "reversed"];
            names.origin(&call.func).is_some_and(|(module, name)| module == BUILTINS && lists.contains(&name))
        }
        _ => false,
    }
}

/// Returns `true` if an iterator never ends.
fn is_endless(expression: &Expr, names: &Names<'_>) -> bool {
    let Expr::Call(call) = expression else { return false };
    match names.origin(&call.func) {
        Some(("itertools", "count")) => true,
        Some(("itertools", "repeat")) => call.arguments.len() == 1,
        _ => false,
    }
}

/// Function that a call passes to the interpreter, and the use it has there.
fn callback<'e>(call: &'e ExprCall, names: &Names<'_>) -> Option<(&'e Expr, String)> {
    let key = || call.arguments.find_keyword("key").map(|keyword| &keyword.value);
    match names.origin(&call.func) {
        Some((BUILTINS, name @ ("map" | "filter"))) => {
            Some((call.arguments.find_positional(0)?, format!("in `{name}`: use a comprehension")))
        }
        Some((BUILTINS, name @ ("sorted" | "min" | "max"))) => {
            Some((key()?, format!("in the key of `{name}`: collect the results first")))
        }
        Some(("functools", "reduce")) => {
            Some((call.arguments.find_positional(0)?, "in `reduce`: use a `for` loop".to_owned()))
        }
        Some(("collections", "defaultdict")) => {
            Some((call.arguments.find_positional(0)?, "in `defaultdict`: use `if key not in d`".to_owned()))
        }
        None | Some(_) => {
            let attribute = call.func.as_attribute_expr()?;
            let sorts = attribute.attr.as_str() == "sort" && !names.is_bound("sort") && names.is_first();
            sorts.then(key).flatten().map(|key| (key, "in the key of `sort`: collect the results first".to_owned()))
        }
    }
}

fn callback_problem(function: &Expr, place: &str, names: &Names<'_>, found: &mut Findings) {
    let is_tool = |object: &Expr| object.as_name_expr().is_some_and(|name| name.id.as_str() == PLAIN);
    match function {
        Expr::Attribute(attribute) if is_tool(&attribute.value) => {
            found.call(function.range(), format!("a tool cannot be called {place}"));
        }
        Expr::Attribute(attribute)
            if METHODS.contains(&attribute.attr.as_str())
                && !names.is_bound(attribute.attr.as_str())
                && (names.is_first() || attribute.value.is_string_literal_expr())
                && names.origin(function).is_none()
                && names.origin(&attribute.value).is_none_or(|(module, _)| module != BUILTINS) =>
        {
            let name = attribute.attr.as_str();
            let object = attribute.value.as_name_expr().map_or("value", |name| name.id.as_str());
            let item = if object == "x" { "item" } else { "x" };
            let message =
                format!("a method cannot be passed as a function: use `lambda {item}: {object}.{name}({item})`");
            found.feature(function.range(), message);
        }
        _ if names.calls_tool(function) => found.call(function.range(), format!("a tool cannot be called {place}")),
        _ => {}
    }
}
