//! Calls `tools.NAME(...)` against the schemas of the tools.

use ruff_python_ast::{Expr, ExprAttribute, ExprCall};
use ruff_text_size::Ranged as _;

use super::findings::Findings;
use crate::awaited::PLAIN;
use crate::literals;
use code_guest::tools::Tools;

/// Checks a call `tools.NAME(...)`.
pub(super) fn call(call: &ExprCall, name: &str, tools: &Tools, found: &mut Findings) {
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
                    found.call(mistake.range, format!("`{}` of tools.{name} {}", parameter.name, mistake.message));
                }
            }
            None if !tool.parameters.is_empty() => {
                let count = tool.parameters.len();
                found.call(argument.range(), format!("tools.{name} has only {count} parameters"));
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
                found.call(keyword.range(), format!("tools.{name} gets two values for `{argument}`"));
            }
            Some(parameter) => {
                given.push(&parameter.name);
                if let Some(mistake) = literals::mistake(&parameter.schema, &keyword.value) {
                    found.call(mistake.range, format!("`{argument}` of tools.{name} {}", mistake.message));
                }
            }
            None if tool.open => {}
            None => found.call(keyword.range(), tool.unknown_argument(argument)),
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
            found.call(call.range(), tool.missing_arguments(&missing));
        }
    }
}

/// Checks `tools.NAME`, wherever it stands.
pub(super) fn attribute(attribute: &ExprAttribute, tools: &Tools, found: &mut Findings) {
    let is_tool = attribute.value.as_name_expr().is_some_and(|object| object.id.as_str() == PLAIN);
    if is_tool && tools.get(attribute.attr.as_str()).is_none() {
        found.call(attribute.attr.range(), tools.unknown(attribute.attr.as_str()));
    }
}
